//! CORe50: objects that were filmed in eleven sessions, `sN/OBJECT/*`.

use std::path::Path;

use loranpac::Label;
use loranpac_data::Split;

use super::{above, label};
use crate::error::Error;
use crate::input::Tags;

/// The sessions.
const SESSIONS: std::ops::RangeInclusive<i64> = 1..=11;
/// Those whose samples are tested.
const TESTED: [i64; 3] = [3, 7, 10];

/// The tags of files, by their names. Folders above the sessions have no meaning.
pub(super) fn tags(path: &Path, names: &[&str]) -> Result<Vec<Tags>, Error> {
    let tags = |name: &&str| {
        let refuse = |reason: &str| {
            let reason = format!("{reason}; the layout of CORe50 is s1/OBJECT/* to s11/OBJECT/*");
            Error::Layout { path: path.to_owned(), name: (*name).to_owned(), reason }
        };
        let [.., session, object] = above(name)[..] else {
            return Err(refuse("it does not lie in the folder of a session and an object"));
        };
        let number = session.strip_prefix(['s', 'S']).and_then(|number| number.parse::<i64>().ok());
        let number = number.filter(|number| SESSIONS.contains(number));
        let number = number.ok_or_else(|| refuse(&format!("{session:?} is not a session")))?;
        let split = if TESTED.contains(&number) { Split::Test } else { Split::Train };
        Ok(Tags { label: Some(label(object)), split: Some(split), domain: Some(Label::Integer(number)) })
    };
    names.iter().map(tags).collect()
}
