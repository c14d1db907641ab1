//! The modules of every crate form a directed acyclic graph.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The root of a crate, whose items other modules may not use.
const ROOT: &str = "lib";

/// The modules that each top-level module of a crate uses.
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
        if let Some(path) = cycle(&graph(&folder.join("src"))) {
            panic!("the modules of {name} form a cycle: {}", path.join(" -> "));
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

/// The Rust files of a library, without its tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs")
            && !["src/main.rs", "tests.rs"].iter().any(|name| path.ends_with(name))
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
    let text = text.split("\nmod tests {").next().unwrap_or_default();
    let text: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line} ")).collect();
    let mut names = Vec::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        let starts = text.match_indices(&root).filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
        });
        starts.for_each(|(at, _)| names.extend(first_names(&text[at + root.len()..])));
    }
    let place = |name: String| if modules.contains(&name) { name } else { ROOT.to_owned() };
    names.into_iter().filter(|name| name != "super").map(place).collect()
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
