//! `loranpac init`: a new model.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{ArgGroup, ValueEnum};
use loranpac::auto::{self, Choice, Expected};
use loranpac::lift::{self, Rows};
use loranpac::{Config, Filter, Model, Prior, Ridge, Schedule, StreamSizes, Truncation, Width};
use loranpac_data::text::escape;
use loranpac_data::{Reader, Split, system};
use loranpac_encode::input::looks_raw;
use loranpac_encode::{encoded_by, is_encoder};
use loranpac_store::{Error, Identity, LiftRecord, Manifest, Session, Settings};

use super::samples::identity_of;
use super::{ROWS, Samples, new_folder, on_threads, shown};
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
    /// Width of the lifted features; `infinite`: exact by their kernel, but the model keeps the samples; or `auto`: three to five times
    /// the samples expected, from 10000 to 100000 and as far as memory allows. It never changes afterwards
    #[arg(long, default_value = "auto", value_name = "E")]
    width: WidthArg,
    /// Samples that the model will learn in all, for an automatic width [default: those in the file of --like]
    #[arg(long, value_name = "N")]
    expect: Option<usize>,
    /// Samples may be kept: an automatic width is then infinite for up to 20000 samples
    #[arg(long)]
    keep_samples: bool,
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

/// A width on the command line.
#[derive(Clone, Copy)]
enum WidthArg {
    Auto,
    Given(Width),
}

impl std::str::FromStr for WidthArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(WidthArg::Auto),
            _ => text.parse().map(WidthArg::Given).map_err(|reason| format!("{reason}, or auto")),
        }
    }
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
    let automatic =
        matches!(args.width, WidthArg::Auto) && (lift::has_width(&args.lift) || lift::find(&args.lift).is_err());
    if !automatic && (args.expect.is_some() || args.keep_samples) {
        bail!("--expect and --keep-samples have no effect on a width that is not automatic");
    }
    let like = args.like.as_ref().map(|path| features(path, args, automatic && args.expect.is_none())).transpose()?;
    let (given, like, held) = match like {
        Some(Like { dim, encoder, samples }) => (Some(dim), encoder, samples),
        None => (args.dim, None, None),
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
    if matches!(args.width, WidthArg::Given(Width::Infinite))
        && (args.lift_seed != 0 || args.gamma != lift::DEFAULT_GAMMA)
    {
        bail!("--lift-seed and --gamma have no effect at infinite width, which draws nothing at random");
    }
    let settings_of = |width: Width| -> Result<Settings> {
        let lift = LiftRecord::new(&args.lift, dim, width, args.lift_seed, args.gamma)?;
        let max_rank = args.max_rank.unwrap_or(Config::cap(width));
        let config = Config { filter, max_rank, schedule, half: args.half, ..Config::default() };
        let (encoder, prior) = (encoder.clone(), args.prior.clone());
        Ok(Settings { lift, width_choice: None, config, keep: args.keep, encoder, prior })
    };
    let settings = match args.width {
        WidthArg::Given(width) => settings_of(width)?,
        WidthArg::Auto if !automatic => settings_of(Width::Finite(dim))?,
        WidthArg::Auto => {
            let choice = choose(args, args.expect.or(held), dim, settings_of)?;
            Settings { width_choice: Some(choice), ..settings_of(choice.width)? }
        }
    };
    // Invalid combinations are refused before the folder is created.
    Model::new(settings.lift.build(false)?, settings.config)?;
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
    let why = settings.width_choice.map_or(String::new(), |choice| format!("\n{}", words(&choice)));
    Ok(changed(say!("{name}: {dim}{encoder}, {what}{why}\nNext: loranpac learn {name} {files}"))?)
}

/// Chooses the width for a number of samples, if it is known.
fn choose(
    args: &Args,
    samples: Option<usize>,
    dim: usize,
    settings_of: impl Fn(Width) -> Result<Settings>,
) -> Result<Choice> {
    let entry = lift::find(&args.lift)?;
    let inside = if entry.projection == Rows::WidthMinusDim { dim } else { 0 };
    let has_limit = entry.limit.is_some() && args.lift_seed == 0;
    let room = system::room();
    let learned = samples.unwrap_or(FEW);
    let sizes = StreamSizes { samples: learned, largest_task: learned, classes: learned.div_ceil(PER_CLASS) };
    let fits = |width: Width| -> Result<bool> {
        let needed = Manifest::new(&settings_of(width)?)?.learn_bytes(&sizes)?;
        Ok(room.suffices(needed))
    };
    let expected = Expected { samples, may_keep: args.keep_samples, has_limit, inside };
    // What is wrong apart from memory is refused afterwards, with its reason.
    Ok(auto::choose(expected, |width| fits(width).unwrap_or(!width.is_infinite())))
}

/// The samples for which memory has to suffice where their number is not known.
const FEW: usize = 3_333;
/// Samples per class where the number of classes is not known.
const PER_CLASS: usize = 20;

/// Returns the reason for a width, with what to give if more samples will come.
fn words(choice: &Choice) -> String {
    let advice = match (choice.width, choice.samples) {
        (Width::Infinite, _) => "",
        (_, None) => "; if there will be more, start with --expect N",
        (_, Some(_)) => "; if there will be many more, start with a larger --expect",
    };
    format!("{choice}{advice}")
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

/// The file of `--like`.
struct Like {
    dim: usize,
    encoder: Option<Identity>,
    /// Its number of samples, if it is wanted and all of them can be read.
    samples: Option<usize>,
}

/// Reads the number of features of the samples in a file, of which the first must be readable, their encoder, and their number.
fn features(path: &Path, args: &Args, counted: bool) -> Result<Like> {
    if args.samples.features.is_none() && looks_raw(path, args.samples.encoding.text.as_deref()) {
        let advice = match args.samples.encoder {
            Some(_) => "leave out --like: the encoder decides the number of features",
            None => "give an encoder instead of --like, such as --encoder text-ngrams",
        };
        bail!("{}: images or texts, not features; {advice}", shown(path));
    }
    let mut reader = Reader::open(path, &args.samples.options(Split::Train))?;
    let first = reader.next(1)?;
    let (dim, encoder) = (reader.dim(), reader.encoder().map(identity_of));
    let known = reader.len().filter(|_| counted);
    let samples =
        known.or_else(|| if counted { rest(&mut reader, first.map_or(0, |batch| batch.rows.len())) } else { None });
    Ok(Like { dim, encoder, samples })
}

/// Counts the samples that are left, and adds those read before; None if one of them cannot be read.
fn rest(reader: &mut Reader, mut samples: usize) -> Option<usize> {
    while let Some(batch) = reader.next(ROWS).ok()? {
        samples += batch.rows.len();
    }
    Some(samples)
}
