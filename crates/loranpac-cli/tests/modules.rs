//! The modules of every crate form a directed acyclic graph, and so do those of every folder of modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The root of a crate, whose items other modules may not use.
const ROOT: &str = "lib";

/// The modules of a folder that each of them uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_have_no_cycles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if !folder.join("src").is_dir() {
            continue;
        }
        found.insert(name.clone());
        let source = folder.join("src");
        if let Some(path) = cycle(&graph(&source)) {
            panic!("the modules of {name} form a cycle: {}", path.join(" -> "));
        }
        for folder in folders(&source) {
            if let Some(path) = cycle(&siblings(&source, &folder)) {
                panic!("the modules of {} form a cycle: {}", folder.display(), path.join(" -> "));
            }
        }
    }
    assert!(["loranpac", "loranpac-store", "loranpac-bench"].iter().all(|name| found.contains(*name)), "{found:?}");
}

#[test]
fn paths_of_every_form_are_found() {
    let modules: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let check = |text: &str, depth: usize, expected: &[&str]| {
        let used = used(text, depth, &modules);
        assert_eq!(used.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
    };
    check("use crate::a::X;", 1, &["a"]);
    check("use crate::{a::{self, X}, b, c::Y};", 1, &["a", "b", "c"]);
    check("fn f() -> crate::d::X { super::b::g() }", 1, &["b", "d"]);
    check("use super::{a, b::X};", 2, &[]);
    check("use super::super::{a, b::X};", 2, &["a", "b"]);
    check("use crate::Error;", 1, &[ROOT]);
    check("// crate::a\n/// [`crate::b`]\nlet x = 1;\n#[cfg(all(test, unix))]\nmod tests { use crate::c; }", 1, &[]);
    let exported = exports("pub use a::X;\npub(crate) use b::{Y, Z};\nuse c::{self, W};", &modules);
    assert_eq!(
        exported.iter().map(|(name, at)| format!("{name} {at}")).collect::<Vec<_>>(),
        ["W c", "X a", "Y b", "Z b"]
    );
    let two = |a: &str, b: &str| Graph::from([("a".into(), [a.into()].into()), ("b".into(), [b.into()].into())]);
    assert_eq!(cycle(&two("b", "a")).unwrap(), ["a", "b", "a"]);
    assert_eq!(cycle(&two("b", "c")), None);
}

/// The uses of every file below a crate's source folder.
fn graph(source: &Path) -> Graph {
    let files = files(source);
    let modules: BTreeSet<String> = files.iter().map(|file| module(source, file).0).collect();
    let mut graph = Graph::new();
    for file in &files {
        let (name, depth) = module(source, file);
        let text = fs::read_to_string(file).unwrap();
        let uses = match name == ROOT {
            true => modules.iter().filter(|module| text.contains(&format!("{module}::"))).cloned().collect(),
            false => used(&text, depth, &modules),
        };
        graph.entry(name).or_default().extend(uses);
    }
    for (name, uses) in &mut graph {
        uses.remove(name);
    }
    graph
}

/// The folders of modules below a crate's source folder.
fn folders(source: &Path) -> BTreeSet<PathBuf> {
    let parents = files(source).into_iter().filter_map(|file| file.parent().map(Path::to_owned));
    parents.filter(|folder| folder != source).collect()
}

/// The uses of the modules of a folder among themselves. A name that the folder's `mod.rs` exports stands for the module that has it; what
/// `mod.rs` itself defines belongs to no module.
fn siblings(source: &Path, folder: &Path) -> Graph {
    let own = folder.join("mod.rs");
    let files: Vec<PathBuf> = files(folder).into_iter().filter(|file| *file != own).collect();
    let modules: BTreeSet<String> = files.iter().map(|file| module(folder, file).0).collect();
    let exports = exports(&fs::read_to_string(own).unwrap(), &modules);
    let inside: Vec<_> = folder.strip_prefix(source).unwrap().iter().map(|part| part.to_string_lossy()).collect();
    let absolute = format!("crate::{}::", inside.join("::"));
    let mut graph = Graph::new();
    for file in &files {
        let (name, depth) = module(folder, file);
        let uses = names(&fs::read_to_string(file).unwrap(), &[absolute.clone(), "super::".repeat(depth)]);
        let uses = uses.into_iter().filter_map(|used| match modules.contains(&used) {
            true => Some(used),
            false => exports.get(&used).cloned(),
        });
        graph.entry(name).or_default().extend(uses);
    }
    for (name, uses) in &mut graph {
        uses.remove(name);
    }
    graph
}

/// The names that a `mod.rs` exports, with the modules that have them.
fn exports(text: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for module in modules {
        let root = format!("use {module}::");
        for (at, _) in text.match_indices(&root) {
            all.extend(first_names(&text[at + root.len()..]).into_iter().map(|name| (name, module.clone())));
        }
    }
    all
}

/// The Rust files of a library, without its tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs")
            && !["src/main.rs", "tests.rs"].iter().any(|name| path.ends_with(name))
            && !path.to_string_lossy().ends_with("_tests.rs")
        {
            all.push(path);
        }
    }
    all
}

/// The top-level module of a file, and how far its own module is below the root.
fn module(source: &Path, file: &Path) -> (String, usize) {
    let parts: Vec<String> = file
        .strip_prefix(source)
        .unwrap()
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .filter(|part| part != "mod")
        .collect();
    (parts[0].clone(), parts.len())
}

/// The top-level modules that a text uses outside its comments and tests.
fn used(text: &str, depth: usize, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let place = |name: String| if modules.contains(&name) { name } else { ROOT.to_owned() };
    names(text, &["crate::".to_owned(), "super::".repeat(depth)]).into_iter().map(place).collect()
}

/// The first names of the paths that begin with one of the roots, outside comments and tests.
fn names(text: &str, roots: &[String]) -> BTreeSet<String> {
    let text = ["\nmod tests {", "\npub(crate) mod tests {"]
        .iter()
        .fold(text, |text, start| text.split(start).next().unwrap());
    let text: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line} ")).collect();
    let mut names = BTreeSet::new();
    for root in roots {
        let starts = text.match_indices(root).filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
        });
        starts.for_each(|(at, _)| names.extend(first_names(&text[at + root.len()..])));
    }
    names.remove("super");
    names
}

/// The first names of a path: one, or those of a group in braces.
fn first_names(path: &str) -> Vec<String> {
    let ident =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.strip_prefix('{') else { return vec![ident(path)] };
    let (mut depth, mut names, mut start) = (0, vec![ident(group)], true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                names.push(ident(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty() && name != "self");
    names
}

/// A cycle, if there is one: its modules in order, the first again at the end.
fn cycle(graph: &Graph) -> Option<Vec<String>> {
    fn visit(at: &str, graph: &Graph, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|name| name == at) {
            return Some(path[start..].iter().cloned().chain([at.to_owned()]).collect());
        }
        if !done.insert(at.to_owned()) {
            return None;
        }
        path.push(at.to_owned());
        let found = graph.get(at).into_iter().flatten().find_map(|next| visit(next, graph, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|name| visit(name, graph, &mut Vec::new(), &mut done))
}
