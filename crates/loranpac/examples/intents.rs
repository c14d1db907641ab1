//! Classes that keep coming: `cargo run --release -p loranpac --example intents`.
//!
//! Embeddings of three intents arrive one after the other. Here they are points around random centres; in practice they come
//! from a sentence encoder.

use loranpac::{Error, Model};

const DIM: usize = 32;

fn main() -> Result<(), Error> {
    let mut model = Model::builder(DIM).width(2_000).build()?;
    for (seed, intent) in ["refund", "delivery", "complaint"].into_iter().enumerate() {
        let messages = embeddings(seed as u64, 40);
        model.learn(&messages, &[intent; 40])?;
        let classifier = model.classifier()?;
        println!("{} classes after {intent}", classifier.labels().len());
    }

    // A classifier is a value: clone it, send it to other threads, keep it while the model learns on.
    let classifier = model.classifier()?;
    let queries = embeddings(1, 3);
    for (best, novelty) in classifier.top(&queries, 2)?.iter().zip(classifier.novelty(&queries)?.unwrap_or_default()) {
        let named = best.iter().map(|(label, score)| format!("{label} {score:.2}")).collect::<Vec<_>>();
        println!("{} (novelty {novelty:.2})", named.join(", "));
    }
    if let Some(verdict) = model.summary().verdict() {
        println!("{}", verdict.line);
    }
    Ok(())
}

/// Points around a centre that the seed decides.
fn embeddings(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let centre: Vec<f32> = (0..DIM).map(|_| next()).collect();
    (0..count * DIM).map(|i| centre[i % DIM] + 0.3 * next()).collect()
}
