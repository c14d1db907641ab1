//! Class priors on the command line: a name, or a file with a number for each class.

use std::path::Path;

use loranpac::Prior;

/// The values of `--prior`, for messages.
const VALUES: &str = "none, train, uniform, or a file with columns label and weight (CSV), or a JSON object of them";

/// Reads a prior: a name, the name of a file, or a JSON object.
pub fn read(text: &str) -> Result<Prior, String> {
    if let Some(prior) = Prior::named(text) {
        return Ok(prior);
    }
    if text.trim_start().starts_with('{') {
        return text.parse::<Prior>().map_err(|error| error.to_string());
    }
    let contents = match std::fs::read_to_string(Path::new(text)) {
        Ok(contents) => contents,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(format!("give {VALUES}")),
        Err(error) => return Err(format!("cannot read it: {error}")),
    };
    match contents.trim_start().starts_with('{') {
        true => contents.parse::<Prior>().map_err(|error| error.to_string()),
        false => table(&contents),
    }
}

/// Reads a table with two columns, with or without a header.
fn table(contents: &str) -> Result<Prior, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(contents.as_bytes());
    let mut entries = Vec::new();
    for (row, record) in reader.records().enumerate() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(row as u64 + 1, |position| position.line());
        let [label, weight] = [record.get(0), record.get(1)].map(Option::unwrap_or_default);
        match weight.parse::<f64>() {
            Ok(weight) if record.len() == 2 => entries.push((label.to_owned(), weight)),
            Err(_) if row == 0 && record.len() == 2 => {}
            _ => return Err(format!("line {line}: a label and a number are expected")),
        }
    }
    if entries.is_empty() {
        return Err(format!("it lists no classes; give {VALUES}"));
    }
    Prior::table(entries).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_with_and_without_a_header() {
        let expected = Prior::table([("a, b".to_owned(), 0.5), ("7".to_owned(), 2.0)]).unwrap();
        assert_eq!(table("label,weight\n\"a, b\",0.5\n7, 2\n").unwrap(), expected);
        assert_eq!(table("\"a, b\",0.5\n7,2").unwrap(), expected);
        assert_eq!(read("{\"a, b\": 0.5, \"7\": 2}").unwrap(), expected);
    }

    #[test]
    fn malformed_tables_are_refused_with_their_line() {
        for (text, words) in [
            ("", "no classes"),
            ("label,weight\n", "no classes"),
            ("a,1\nb,x\n", "line 2"),
            ("a,1\na,2\n", "twice"),
            ("a,1\nb,-1\n", "class b"),
            ("a,1\nb,0\n", "class b"),
            ("a,1\nb,nan\n", "class b"),
            ("a,b,1\n", "line 1"),
        ] {
            let error = table(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
        assert!(read("unifrom").unwrap_err().contains("uniform"));
    }
}
