//! CDDB-Hard: real and generated images of five generators,
//! `GENERATOR/{train,val,test}/[OBJECT/]{0_real,1_fake}/*`.

use std::collections::BTreeSet;
use std::path::Path;

use loranpac::Label;
use loranpac_data::Split;

use super::above;
use crate::error::Error;
use crate::input::Tags;

/// The generators, each with the names of its folder in lower case. The public data set has others besides.
const GENERATORS: [&[&str]; 5] =
    [&["gaugan"], &["biggan"], &["wild", "wilddeepfake"], &["whichfaceisreal", "whichfacereal"], &["san"]];
/// The classes, each with the names of its folder in lower case.
const CLASSES: [&[&str]; 2] = [&["real", "0_real"], &["fake", "1_fake"]];

/// Whether a file belongs to one of the generators.
pub(super) fn concerns(name: &str) -> bool {
    above(name).into_iter().any(|folder| find(&GENERATORS, folder).is_some())
}

/// The tags of files that belong to one of the generators, by their names.
pub(super) fn tags(path: &Path, names: &[&str]) -> Result<Vec<Tags>, Error> {
    let parts: Vec<Parts<'_>> = names.iter().map(|name| Parts::of(path, name)).collect::<Result<_, _>>()?;
    // The images of `val` are tested, unless there are others to test.
    let with_test: BTreeSet<&str> = parts.iter().filter(|p| p.split == "test").map(|p| p.generator).collect();
    let split = |p: &Parts<'_>| match p.split.as_str() {
        "train" => Split::Train,
        "test" => Split::Test,
        _ if with_test.contains(p.generator) => Split::Train,
        _ => Split::Test,
    };
    let tags = |p: &Parts<'_>| Tags {
        label: Some(Label::from(p.class)),
        split: Some(split(p)),
        domain: Some(Label::from(p.generator)),
    };
    Ok(parts.iter().map(tags).collect())
}

/// What the folders above a file stand for.
struct Parts<'a> {
    generator: &'a str,
    split: String,
    class: &'a str,
}

impl<'a> Parts<'a> {
    fn of(path: &Path, name: &str) -> Result<Parts<'a>, Error> {
        let refuse = |reason: &str| {
            let layout = "the layout of CDDB-Hard is GENERATOR/{train,val}/[OBJECT/]{0_real,1_fake}/*";
            let reason = format!("{reason}; {layout}");
            Error::Layout { path: path.to_owned(), name: name.to_owned(), reason }
        };
        let folders = above(name);
        let place = folders.iter().position(|folder| find(&GENERATORS, folder).is_some()).unwrap_or(folders.len());
        let generator = folders.get(place).and_then(|folder| find(&GENERATORS, folder));
        let generator = generator.ok_or_else(|| refuse("it does not lie in the folder of a generator"))?;
        let split = folders.get(place + 1).filter(|folder| Split::from_name(folder).is_some());
        let split = split.ok_or_else(|| refuse("it lies in no folder train, val or test of its generator"))?;
        let class = folders[place + 2..].last().and_then(|folder| find(&CLASSES, folder));
        let class = class.ok_or_else(|| refuse("it lies neither in 0_real nor in 1_fake"))?;
        if folders.len() > place + 4 {
            return Err(refuse("it lies too deep"));
        }
        Ok(Parts { generator, split: split.to_ascii_lowercase(), class })
    }
}

/// The first of the names that a folder may have.
fn find(all: &[&[&'static str]], folder: &str) -> Option<&'static str> {
    let folder = folder.to_ascii_lowercase();
    all.iter().find(|names| names.contains(&folder.as_str())).map(|names| names[0])
}
