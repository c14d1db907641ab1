//! `loranpac init`: a new model.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{ArgGroup, ValueEnum};
use loranpac::{Config, Filter, Ridge, Schedule, Truncation, lift};
use loranpac_eval::samples::{Half, Reader};
use loranpac_store::{LiftRecord, Model, Settings};

use super::{Samples, new_folder, shown};

/// Options of `init`.
#[derive(clap::Args)]
#[command(
    after_help = "Example:  loranpac init intents.lrp --like monday.npz --encoder all-MiniLM-L6-v2",
    group = ArgGroup::new("size").args(["dim", "like"]).required(true),
    group = ArgGroup::new("cut").args(["truncate", "threshold", "rank", "ridge"]),
)]
pub struct Args {
    /// Folder of the new model, NAME.lrp
    model: PathBuf,
    /// Features per sample
    #[arg(long, value_name = "D")]
    dim: Option<usize>,
    /// A file whose samples have as many features as the model shall take
    #[arg(long, value_name = "FILE")]
    like: Option<PathBuf>,
    /// What the encoder is called; samples that are said to come from another are noticed
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// Width of the lifted features, E
    #[arg(long, default_value_t = 10_000, value_name = "E")]
    width: usize,
    /// Feature map
    #[arg(long, default_value = "relu-random", value_name = "NAME")]
    lift: String,
    /// Seed of the random projection; models with the same seed and width can be merged
    #[arg(long, default_value_t = 0, value_name = "S")]
    lift_seed: u64,
    /// Inverse width of the kernel behind fourier features
    #[arg(long, default_value_t = lift::DEFAULT_GAMMA, value_name = "G")]
    gamma: f64,
    /// A ridge read off the spectrum, or the paper's cut
    #[arg(long, value_enum, default_value = "soft")]
    filter: FilterArg,
    /// Hard: cut this share of the directions [default: 0.25]; soft: the ridge is the eigenvalue there
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    truncate: Option<f64>,
    /// The same with an eigenvalue
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// The same with a number of directions
    #[arg(long, value_name = "K")]
    rank: Option<usize>,
    /// The ridge itself
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    ridge: Option<f64>,
    /// Hard: cut when the classifier is formed, or after every task as in the paper
    #[arg(long, value_enum, default_value = "late")]
    schedule: ScheduleArg,
    /// Keep at most R directions
    #[arg(long, default_value_t = Config::default().max_rank, value_name = "R")]
    max_rank: usize,
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

#[derive(Clone, Copy, ValueEnum)]
enum ScheduleArg {
    Late,
    Paper,
}

pub fn main(args: Args) -> Result<()> {
    let folder = new_folder(&args.model)?;
    let dim = match (&args.like, args.dim) {
        (Some(path), _) => Reader::open(path, &args.samples.options(Half::Train))?.dim(),
        (None, Some(dim)) => dim,
        (None, None) => bail!("give the number of features with --dim, or a file with --like"),
    };
    let truncation = match (args.truncate, args.threshold, args.rank) {
        (Some(zeta), ..) => Some(Truncation::Fraction(zeta)),
        (_, Some(delta), _) => Some(Truncation::Threshold(delta)),
        (.., Some(rank)) => Some(Truncation::Rank(rank)),
        _ => None,
    };
    let filter = match (args.filter, truncation, args.ridge) {
        (FilterArg::Hard, truncation, ridge) => {
            Filter::Hard { truncation: truncation.unwrap_or_default(), ridge: ridge.unwrap_or(0.0) }
        }
        (FilterArg::Soft, Some(truncation), _) => Filter::Soft(Ridge::Eigenvalue(truncation)),
        (FilterArg::Soft, None, Some(ridge)) => Filter::Soft(Ridge::Fixed(ridge)),
        (FilterArg::Soft, None, None) => Filter::Soft(Ridge::GeometricMean),
    };
    let schedule = match args.schedule {
        ScheduleArg::Late => Schedule::Late,
        ScheduleArg::Paper => Schedule::Paper,
    };
    let mut lift = LiftRecord { name: args.lift, dim, width: args.width, seed: args.lift_seed, gamma: args.gamma };
    // Some maps choose their own width.
    lift.width = lift.build(false)?.width();
    let config = Config { filter, max_rank: args.max_rank, schedule, ..Config::default() };
    let settings = Settings { lift, config, keep: args.keep, encoder: args.encoder };
    let model = Model::create(&folder, &settings)?;
    let lift = &model.manifest().lift;
    println!("{}: {} features, lifted to {} by {}", shown(&folder), lift.dim, lift.width, lift.name);
    println!("Next: loranpac learn {} FILE...", shown(&folder));
    Ok(())
}
