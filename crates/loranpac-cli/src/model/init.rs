//! `loranpac init`: a new model.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{ArgGroup, ValueEnum};
use loranpac::{Config, Filter, Model, Prior, Ridge, Schedule, Truncation, Width, lift};
use loranpac_data::text::escape;
use loranpac_data::{Reader, Split};
use loranpac_encode::input::looks_raw;
use loranpac_encode::{encoded_by, is_encoder};
use loranpac_store::{Error, Identity, LiftRecord, Session, Settings};

use super::samples::identity_of;
use super::{Samples, new_folder, on_threads, shown};
use crate::prior;
use crate::say::{changed, say};
use crate::words::count;

/// Options of `init`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  \
        loranpac init tickets.lrp --encoder text-ngrams            # learns texts; nothing to download\n  \
        loranpac init birds.lrp --encoder vit/                     # learns images, with the weights in vit/\n  \
        loranpac init intents.lrp --like monday.npz --encoder all-MiniLM-L6-v2    # learns features of that name",
    group = ArgGroup::new("size").args(["dim", "like"]),
    group = ArgGroup::new("cut").args(["truncate", "threshold", "rank", "ridge"]),
)]
pub struct Args {
    /// Folder of the new model, NAME.lrp
    model: PathBuf,
    /// Features per sample [default: those of the encoder]
    #[arg(long, value_name = "D")]
    dim: Option<usize>,
    /// A file whose samples have the number of features of the new model
    #[arg(long, value_name = "FILE")]
    like: Option<PathBuf>,
    /// Width of the lifted features, or `infinite`: exact by their kernel, but the model keeps the samples
    #[arg(long, default_value = "10000", value_name = "E")]
    width: Width,
    /// Feature map
    #[arg(long, default_value = "relu-random", value_name = "NAME")]
    lift: String,
    /// Seed of the random projection; only models with the same lift and settings can be merged
    #[arg(long, default_value_t = 0, value_name = "S")]
    lift_seed: u64,
    /// Inverse width of the kernel behind fourier features
    #[arg(long, default_value_t = lift::DEFAULT_GAMMA, value_name = "G")]
    gamma: f64,
    /// A ridge read off the spectrum, or the paper's cut
    #[arg(long, value_enum, default_value = "soft")]
    filter: FilterArg,
    /// Hard filter: cut this share of the directions [default: 0.25]. Soft filter: use the eigenvalue at that cut as ridge
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    truncate: Option<f64>,
    /// Like --truncate, but cut eigenvalues below D
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Like --truncate, but keep K directions
    #[arg(long, value_name = "K")]
    rank: Option<usize>,
    /// The ridge itself; `loo` (infinite width): the best of six decades by leave-one-out accuracy
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    ridge: Option<RidgeArg>,
    /// Infinite width: keep samples in half precision
    #[arg(long)]
    half: bool,
    /// Hard: cut when the classifier is formed, or after every task as in the paper
    #[arg(long, value_enum, default_value = "late")]
    schedule: ScheduleArg,
    /// Cut to R directions (samples at infinite width); up to 1.6 R are kept between cuts, fewer above 9000 [default: 10000;
    /// at infinite width all samples]
    #[arg(long, value_name = "R")]
    max_rank: Option<usize>,
    /// How often classes are expected in queries: none (scores as they are), train (as in training), uniform (equally often), or a
    /// CSV or JSON file with a number for each class; matters if classes differ in size
    #[arg(long, value_parser = prior::read, default_value = "none", value_name = "PRIOR")]
    prior: Prior,
    /// Earlier versions to keep, for rollback
    #[arg(long, default_value_t = 1, value_name = "N")]
    keep: usize,
    #[command(flatten)]
    samples: Samples,
}

#[derive(Clone, Copy, ValueEnum)]
enum FilterArg {
    Soft,
    Hard,
}

/// A ridge on the command line.
#[derive(Clone, Copy)]
enum RidgeArg {
    LeaveOneOut,
    Number(f64),
}

impl std::str::FromStr for RidgeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "loo" => Ok(RidgeArg::LeaveOneOut),
            _ => text.parse().map(RidgeArg::Number).map_err(|_| "a number or the word loo is expected".to_owned()),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum ScheduleArg {
    Late,
    Paper,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(None, || init(&args))
}

fn init(args: &Args) -> Result<()> {
    if args.samples.encoder.is_none() && args.samples.encoding.adapter.is_some() {
        bail!("--adapter needs the encoder that it belongs to; give it with --encoder");
    }
    let folder = new_folder(&args.model)?;
    let (given, like) = match (&args.like, args.dim) {
        (Some(path), _) => {
            let (dim, like) = features(path, args)?;
            (Some(dim), like)
        }
        (None, dim) => (dim, None),
    };
    let (encoder, dim) = match (encoder(args, like)?, given) {
        (Some((_, Some(own))), Some(given)) if own != given => {
            bail!("the encoder computes {}, but samples should have {given}", count(own, "feature"))
        }
        (Some((encoder, Some(own))), _) => (Some(encoder), own),
        (encoder, Some(given)) => (encoder.map(|(encoder, _)| encoder), given),
        (Some((encoder, None)), None) => bail!(
            "there is no encoder {encoder}: give a folder with model.safetensors and config.json, a .onnx file, the address \
             of an embedding server, text-ngrams or image-basic; or, for features, their number with --dim or a file with \
             --like"
        ),
        (None, None) => {
            bail!("give an encoder with --encoder, or the number of features with --dim or a file with --like")
        }
    };
    let truncation = match (args.truncate, args.threshold, args.rank) {
        (Some(zeta), ..) => Some(Truncation::Fraction(zeta)),
        (_, Some(delta), _) => Some(Truncation::Threshold(delta)),
        (.., Some(rank)) => Some(Truncation::Rank(rank)),
        _ => None,
    };
    let filter = match (args.filter, truncation, args.ridge) {
        (FilterArg::Hard, _, Some(RidgeArg::LeaveOneOut)) => {
            bail!("--ridge loo needs --filter soft, where leave-one-out is exact")
        }
        (FilterArg::Hard, truncation, ridge) => {
            let ridge = if let Some(RidgeArg::Number(ridge)) = ridge { ridge } else { 0.0 };
            Filter::Hard { truncation: truncation.unwrap_or_default(), ridge }
        }
        (FilterArg::Soft, Some(truncation), _) => Filter::Soft(Ridge::Eigenvalue(truncation)),
        (FilterArg::Soft, None, Some(RidgeArg::LeaveOneOut)) => Filter::Soft(Ridge::LeaveOneOut),
        (FilterArg::Soft, None, Some(RidgeArg::Number(ridge))) => Filter::Soft(Ridge::Fixed(ridge)),
        (FilterArg::Soft, None, None) => Filter::Soft(Ridge::GeometricMean),
    };
    let schedule = match args.schedule {
        ScheduleArg::Late => Schedule::Late,
        ScheduleArg::Paper => Schedule::Paper,
    };
    if args.width == Width::Infinite && (args.lift_seed != 0 || args.gamma != lift::DEFAULT_GAMMA) {
        bail!("--lift-seed and --gamma have no effect at infinite width, which draws nothing at random");
    }
    let lift = LiftRecord::new(&args.lift, dim, args.width, args.lift_seed, args.gamma)?;
    let max_rank = args.max_rank.unwrap_or(Config::cap(args.width));
    let config = Config { filter, max_rank, schedule, half: args.half, ..Config::default() };
    // Invalid combinations are refused before the folder is created.
    Model::new(lift.build(false)?, config)?;
    let settings = Settings { lift, config, keep: args.keep, encoder, prior: args.prior.clone() };
    match Session::create(&folder, &settings) {
        Err(Error::Exists { .. }) if Session::is_new(&folder, &settings) => {
            return Ok(say!("{} exists already, as a new model with these settings", shown(&folder))?);
        }
        outcome => drop(outcome?),
    }
    let lift = &settings.lift;
    let (name, dim) = (shown(&folder), count(lift.dim, "feature"));
    let what = match lift.width.is_infinite() {
        false => format!("lifted to {} by {}", lift.width, lift.name),
        true => "infinite width; the model keeps the samples that it learns".to_owned(),
    };
    let (encoder, files) = match settings.encoder.as_ref().filter(|encoder| encoder.reference.is_some()) {
        Some(encoder) => {
            let found = encoder.reference.as_ref().is_some_and(|reference| reference.location.is_some());
            (format!(" of {}", escape(&encoder.to_string())), if found { "IMAGES-OR-TEXTS..." } else { "FILE..." })
        }
        None => (String::new(), "FILE..."),
    };
    Ok(changed(say!("{name}: {dim}{encoder}, {what}\nNext: loranpac learn {name} {files}"))?)
}

/// Returns the encoder of the arguments, with its number of features if it is more than a name.
fn encoder(args: &Args, like: Option<Identity>) -> Result<Option<(Identity, Option<usize>)>> {
    let Samples { encoder: Some(name), encoding, .. } = &args.samples else { return Ok(like.map(|like| (like, None))) };
    if !is_encoder(name) {
        let reference = like.and_then(|like| like.reference);
        return Ok(Some((Identity { name: Some(name.clone()), reference }, None)));
    }
    let encoder = encoding.open(name)?;
    if let Some(difference) = like.and_then(|like| like.differs(&identity_of(&encoded_by(&*encoder)))) {
        bail!("--like: its features are of another encoder: {}", escape(&difference));
    }
    Ok(Some((encoding.identity(&*encoder, name)?, Some(encoder.dim()))))
}

/// Returns the number of features of the samples in a file, of which the first must be readable, and their encoder.
fn features(path: &Path, args: &Args) -> Result<(usize, Option<Identity>)> {
    if args.samples.features.is_none() && looks_raw(path, args.samples.encoding.text.as_deref()) {
        let advice = match args.samples.encoder {
            Some(_) => "leave out --like: the encoder decides the number of features",
            None => "give an encoder instead of --like, such as --encoder text-ngrams",
        };
        bail!("{}: images or texts, not features; {advice}", shown(path));
    }
    let mut reader = Reader::open(path, &args.samples.options(Split::Train))?;
    reader.next(1)?;
    Ok((reader.dim(), reader.encoder().map(identity_of)))
}
