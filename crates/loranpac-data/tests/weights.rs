//! Weights of samples in files.

use std::io::Cursor;
use std::path::Path;

use loranpac::Label;
use loranpac_data::error::Error;
use loranpac_data::{Batch, Options, Reader, formats};

fn read(name: &str, bytes: &[u8], weights: Option<&str>) -> Result<Vec<Batch>, Error> {
    let format = formats::find(name.rsplit('.').next().unwrap()).unwrap();
    let options = Options { weights: weights.map(str::to_owned), ..Options::default() };
    let mut reader = Reader::from_source(Path::new(name), Cursor::new(bytes.to_vec()), format, &options)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next(2)? {
        batches.push(batch);
    }
    Ok(batches)
}

/// Features, labels, weights and rows of all batches.
type All = (Vec<f32>, Vec<Label>, Vec<f64>, Vec<usize>);

fn joined(batches: Vec<Batch>) -> All {
    let mut all = All::default();
    for batch in batches {
        all.0.extend(batch.x);
        all.1.extend(batch.labels.unwrap());
        all.2.extend(batch.weights.unwrap());
        all.3.extend(batch.rows);
    }
    all
}

fn expected() -> All {
    let labels = ["a", "b", "c"].map(Label::from).to_vec();
    (vec![1.0, 2.0, 3.0, 4.0, 7.0, 8.0], labels, vec![0.1, 2.0, 1e-3], vec![0, 1, 3])
}

const CSV: &str = "f0,w,f1,label\n1,0.1,2,a\n3,2,4,b\n5,0,6,b\n7,1e-3,8,c\n";
const JSONL: &str = r#"{"x": [1, 2], "y": "a", "w": 0.1}
{"w": 2, "x": [3, 4], "y": "b"}
{"x": [5, 6], "y": "b", "w": 0.0}
{"x": [7, 8], "y": "c", "w": 0.001}
"#;

#[test]
fn a_named_column_has_the_weights_and_samples_of_weight_zero_are_left_out() {
    assert_eq!(joined(read("a.csv", CSV.as_bytes(), Some("w")).unwrap()), expected());
    assert_eq!(joined(read("a.jsonl", JSONL.as_bytes(), Some("w")).unwrap()), expected());
    // Without its name, a column of numbers is a feature.
    assert_eq!(read("a.csv", CSV.as_bytes(), None).unwrap()[0].x.len(), 6);
    assert!(read("a.jsonl", JSONL.as_bytes(), None).unwrap()[0].weights.is_none());
}

#[test]
fn wrong_weights_are_named_by_their_row() {
    let message = |bytes: &str| read("a.csv", bytes.as_bytes(), Some("w")).unwrap_err().to_string();
    let negative = message(&CSV.replace("1e-3", "-1"));
    assert!(negative.contains("row 3") && negative.contains("-1"), "{negative}");
    assert!(message(&CSV.replace("1e-3", "nan")).contains("NaN"));
    assert!(message(&CSV.replace("0.1", "much")).contains("much"));
    assert!(message("f0,w,label\n1,0,a\n2,0,b\n").contains("all weights are zero"));
    let missing = read("a.csv", CSV.as_bytes(), Some("v")).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    let gap = read("a.jsonl", JSONL.replace(", \"w\": 0.001", "").as_bytes(), Some("w")).unwrap_err().to_string();
    assert!(gap.contains("missing key w"), "{gap}");
}
