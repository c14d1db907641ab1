//! Files that NumPy, pandas and PyArrow write. Needs Python 3 and these packages from PyPI.

#[path = "../../loranpac-store/tests/exports/python.rs"]
mod python;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

use loranpac::Label;
use loranpac_data::{Options, Reader};
use tempfile::TempDir;

const SCRIPT: &str = r#"
import sys, numpy as np, pandas as pd, pyarrow as pa, pyarrow.parquet as pq
to = sys.argv[1] + "/"
x = np.arange(2100, dtype=np.float32).reshape(700, 3) / 8
y = np.array(["cat", "dog"])[np.arange(700) % 2]
np.savez(to + "stored.npz", x=x, y=y)
np.savez_compressed(to + "columns.npz", x_train=np.asfortranarray(x), y_train=y)
np.save(to + "double.npy", x.astype(np.float64))
frame = pd.DataFrame(x)
frame.to_csv(to + "counted.csv", index=False)
frame["label"] = y
frame.to_csv(to + "named.csv", index=False)
frame.to_csv(to + "semicolons.csv", index=False, sep=";")
frame.to_csv(to + "tabs.tsv", index=False, sep="\t")
frame.to_csv(to + "index.csv")
lists = pd.DataFrame({"embedding": list(x), "label": y})
lists.to_parquet(to + "pandas.parquet")
lists["label"] = lists["label"].astype("category")
lists.to_parquet(to + "category.parquet")
lists.to_json(to + "pandas.jsonl", orient="records", lines=True)
fixed = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 3)
table = pa.table({"id": np.arange(700), "x": fixed, "y": pa.array(y).dictionary_encode()})
for name in ["none", "snappy", "gzip", "lz4", "zstd"]:
    pq.write_table(table, to + name + ".parquet", compression=name, row_group_size=300, data_page_size=500)
pq.write_table(table, to + "second.parquet", data_page_version="2.0", version="2.6", use_dictionary=False)
"#;

#[test]
fn what_other_programs_write_is_read() {
    let packages = ["numpy", "pandas", "pyarrow"];
    let python = match python::environment("python-writers", &packages, "import numpy, pandas, pyarrow.parquet") {
        Ok(python) => python,
        Err(why) => return skip::skipped("NumPy, pandas and PyArrow", "what_other_programs_write_is_read", &why),
    };
    let folder = TempDir::new().unwrap();
    let output = Command::new(python).args(["-c", SCRIPT]).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names = vec!["stored.npz", "columns.npz", "double.npy", "counted.csv", "named.csv", "semicolons.csv"];
    names.extend(["tabs.tsv", "pandas.jsonl"]);
    if cfg!(feature = "parquet") {
        names.extend(["pandas.parquet", "category.parquet", "none.parquet", "snappy.parquet", "gzip.parquet"]);
        names.extend(["lz4.parquet", "second.parquet"]);
    }
    for name in names {
        check(&folder.path().join(name));
    }
    let message = |name: &str| {
        let mut reader = match Reader::open(&folder.path().join(name), &Options::default()) {
            Ok(reader) => reader,
            Err(error) => return error.to_string(),
        };
        reader.next(10).unwrap_err().to_string()
    };
    assert!(message("index.csv").contains("index=False"));
    assert!(!cfg!(feature = "parquet") || message("zstd.parquet").contains("compressed with zstd"));
}

fn check(path: &Path) {
    let name = path.display();
    let mut reader = Reader::open(path, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(reader.dim(), 3, "{name}");
    let mut row = 0;
    while let Some(batch) = reader.next(64).unwrap_or_else(|e| panic!("{e}")) {
        for (at, x) in batch.x.chunks(3).enumerate() {
            let expected = |column: usize| ((row + at) * 3 + column) as f32 / 8.0;
            assert_eq!(x, [expected(0), expected(1), expected(2)], "{name}");
            if let Some(labels) = &batch.labels {
                assert_eq!(labels[at], Label::from(["cat", "dog"][(row + at) % 2]), "{name}");
            }
        }
        row += batch.x.len() / 3;
    }
    assert_eq!(row, 700, "{name}");
    let labels = !(name.to_string().contains("double") || name.to_string().contains("counted"));
    assert_eq!(reader.has_labels(), labels, "{name}");
}
