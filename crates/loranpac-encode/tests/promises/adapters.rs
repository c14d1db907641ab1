//! Adapters and checkpoints from any bytes. An adapter that is read must encode, and a checkpoint that is continued must train.

use std::path::Path;
use std::sync::OnceLock;

use loranpac::Label;
use loranpac_encode::adapt::{SampleOptions, Samples, Settings, Trainer};
use loranpac_encode::internals::{read_unsealed, resume_unsealed};
use loranpac_encode::{
    Batch, Data, Encoder, Image, Input, Inputs, Modality, ModuleKind, Tags, Transformer, open_transformer,
};

use crate::made;

/// A vision transformer and a text encoder, and samples of both.
static WORLDS: OnceLock<[World; 2]> = OnceLock::new();

/// Modules whose checkpoints are continued.
const CONTINUED: [ModuleKind; 2] = [ModuleKind::VptShallow { tokens: 1 }, ModuleKind::Ssf];

/// An encoder with samples.
pub struct World {
    encoder: Transformer,
    samples: Samples,
}

impl World {
    /// Both encoders, with files in `folder`.
    pub fn all(folder: &Path) -> &'static [World; 2] {
        WORLDS.get_or_init(|| {
            [("vit-adapter", made::write_vit as fn(&Path)), ("bert-adapter", made::write_bert)].map(|(name, write)| {
                let folder = folder.join(name);
                write(&folder);
                let encoder = open_transformer(folder.to_str().unwrap(), None).unwrap();
                let samples = samples(&encoder);
                World { encoder, samples }
            })
        })
    }

    /// A trainer with few epochs.
    pub fn trainer(&self, module: ModuleKind) -> Trainer {
        let module = module.sized(1).unwrap_or(module);
        let settings = Settings { module, epochs: 3, batch: 3, held_out: 3, ..Settings::default() };
        let all: Vec<usize> = (0..self.samples.len()).collect();
        Trainer::new(self.encoder.clone(), self.samples.part(&all), settings, 0).unwrap()
    }
}

fn samples(encoder: &Transformer) -> Samples {
    let data = |i: usize| match encoder.modality() {
        Modality::Image => Data::Pixels(Image { width: 4, height: 5, pixels: vec![(i * 40) as u8; 60] }),
        Modality::Text => Data::Text(["hello", "refund", "a b", "ab, a", "b b a", ""][i].to_owned()),
    };
    let input = |i: usize| {
        let tags = Tags { label: Some(Label::Integer(i as i64 % 2)), ..Tags::default() };
        Ok(Input { tags, ..Input::new(i.to_string(), data(i)) })
    };
    let inputs: Vec<_> = (0..6).map(input).collect();
    Samples::read(Inputs::of(inputs.into_iter()), encoder, SampleOptions::default()).unwrap()
}

/// The bytes are an adapter, and a checkpoint, of a vision transformer and of a text encoder.
pub fn adapter(folder: &Path, data: &[u8]) {
    let out = folder.join("x.safetensors");
    made::write(folder, &[("x.safetensors", data), (".x.safetensors.checkpoint", data)]);
    for world in World::all(folder) {
        // The digests of a file that was changed are wrong; without them, the code behind the check is reached.
        let _ = loranpac_encode::adapt::Adapter::read(&out, &world.encoder);
        if let Ok(adapter) = read_unsealed(&out, &world.encoder) {
            encode(&adapter.apply(&world.encoder).unwrap());
        }
        if data.windows(8).any(|window| window == b"progress") {
            CONTINUED.iter().for_each(|module| train(world, *module, &out));
        }
    }
}

/// Continues from a checkpoint, if it is one of this module.
fn train(world: &World, module: ModuleKind, out: &Path) {
    let mut trainer = world.trainer(module);
    if resume_unsealed(&mut trainer, out) > 0 && (trainer.is_done() || trainer.epoch(|_| {}).is_ok()) {
        encode(&trainer.finish().apply(&world.encoder).unwrap());
    }
}

fn encode(encoder: &Transformer) {
    let image = Image { width: 3, height: 2, pixels: vec![90; 18] };
    let layers: Vec<usize> = (0..encoder.layers()).collect();
    let features = match encoder.modality() {
        Modality::Image => encoder.encode(Batch::Images(&[image]), &layers),
        Modality::Text => encoder.encode(Batch::Texts(&["hello, refund"]), &layers),
    };
    if let Ok(features) = features {
        assert_eq!(features.len(), layers.len() * encoder.dim());
    }
}
