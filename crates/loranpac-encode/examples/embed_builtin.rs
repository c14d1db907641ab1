//! Features of raw data by an encoder without weights, to measure what it is worth:
//!
//! ```text
//! embed_builtin texts.jsonl OUT.npz      # text-ngrams
//! embed_builtin images.tar OUT.npz       # image-basic
//! loranpac run --data OUT.npz --method loranpac-soft --width infinite --scenario joint
//! ```
//!
//! Inputs with the label `oos` (out of scope) are left out. A limit on the training texts per class, in their order, can be
//! given as a third argument.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

use loranpac::Label;
use loranpac_data::Split;
use loranpac_data::formats::{Column, to_npz};
use loranpac_encode::input::{Data, Input, InputOptions, Inputs};
use loranpac_encode::{Batch, Encoder, ImageBasic, Modality, TextNgrams, image};

/// Inputs that are encoded together.
const BATCH: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, out) = match &arguments[..] {
        [path, out, ..] => (PathBuf::from(path), out),
        _ => return Err("usage: embed_builtin INPUT OUT.npz [PER_CLASS]".into()),
    };
    let most: usize = arguments.get(2).map_or(Ok(usize::MAX), |most| most.parse())?;
    let table = path.extension().is_some_and(|extension| extension == "jsonl" || extension == "csv");
    let encoder: &dyn Encoder = if table { &TextNgrams } else { &ImageBasic };
    let modality = if table { Modality::Text } else { Modality::Image };
    let mut inputs = Inputs::open(&[path], &InputOptions::new(modality))?;
    // Features and labels of training and test samples.
    let mut parts: [(Vec<f32>, Vec<Label>); 2] = Default::default();
    let mut counts: HashMap<Label, usize> = HashMap::new();
    loop {
        let batch: Vec<Input> = inputs.by_ref().take(BATCH).collect::<Result<_, _>>()?;
        if batch.is_empty() {
            break;
        }
        let x = encode(encoder, &batch)?;
        for (input, row) in batch.iter().zip(x.chunks_exact(encoder.dim())) {
            let label = input.tags.label.clone().ok_or("an input has no label")?;
            let test = input.tags.split == Some(Split::Test);
            let count = counts.entry(label.clone()).or_default();
            *count += usize::from(!test);
            if label != Label::from("oos") && (test || *count <= most) {
                let part = &mut parts[usize::from(test)];
                part.0.extend_from_slice(row);
                part.1.push(label);
            }
        }
    }
    let [(x_train, y_train), (x_test, y_test)] = parts;
    let matrix = |x| Column::Matrix(encoder.dim(), x);
    let (y_train, y_test) = (Column::Labels(y_train), Column::Labels(y_test));
    let columns = [("x_train", matrix(x_train)), ("y_train", y_train), ("x_test", matrix(x_test)), ("y_test", y_test)];
    std::fs::write(out, to_npz(&columns)?)?;
    Ok(())
}

fn encode(encoder: &dyn Encoder, batch: &[Input]) -> Result<Vec<f32>, loranpac_encode::Error> {
    let (mut images, mut texts) = (Vec::new(), Vec::new());
    for input in batch {
        match &input.data {
            Data::Image(bytes) => images.push(image::decode(&input.name, bytes, &image::Limits::default())?),
            Data::Text(text) => texts.push(text.as_str()),
        }
    }
    encoder.encode(if images.is_empty() { Batch::Texts(&texts) } else { Batch::Images(&images) }, &[0])
}
