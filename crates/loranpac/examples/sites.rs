//! Several sites learn on their own, and their models become one: `cargo run --release -p loranpac --example sites`.
//!
//! No sample leaves a site: models of the same feature space are merged by their statistics.

use loranpac::{Error, Model};

const DIM: usize = 8;

fn main() -> Result<(), Error> {
    let mut sites = Vec::new();
    for site in 0..3u8 {
        let mut model = new_model()?;
        for class in [site, site + 1] {
            model.learn(&samples(class, site), &[i64::from(class); 20])?;
        }
        sites.push(model);
    }
    let mut all = new_model()?;
    all.merge(&mut sites)?;

    let classifier = all.classifier()?;
    for class in 0..4u8 {
        let right =
            classifier.predict(&samples(class, 9))?.iter().filter(|label| **label == i64::from(class).into()).count();
        println!("class {class}: {right} of 20 right");
    }
    println!("{} samples of {} classes", all.summary().samples, all.summary().classes);
    Ok(())
}

/// Models can be merged if they have the same lift: kind, width and seed.
fn new_model() -> Result<Model, Error> {
    Model::builder(DIM).width(500).seed(7).build()
}

/// Twenty samples of a class, different at every site.
fn samples(class: u8, site: u8) -> Vec<f32> {
    let value = |i: usize| {
        let (row, column) = (i / DIM, i % DIM);
        let centre = f32::from(u8::from(column == usize::from(class)));
        centre + 0.2 * ((row * 7 + column * 3 + usize::from(site) * 5) % 11) as f32 / 11.0
    };
    (0..20 * DIM).map(value).collect()
}
