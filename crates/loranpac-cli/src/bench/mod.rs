//! `loranpac bench`: recipes, including the paper's tables and figures, on a folder of feature files or images.

mod images;

use std::path::PathBuf;

use anyhow::{Result, bail};
use loranpac::registry;
use loranpac_bench::adapted::RunFeatures;
use loranpac_bench::cache::Cache;
use loranpac_bench::page::Report;
use loranpac_bench::pilot;
use loranpac_bench::preflight::Forecast;
use loranpac_bench::recipe::{self, RECIPES, Recipe, Scale};
use loranpac_bench::record::Record;
use loranpac_bench::run::SCHEMA;
use loranpac_bench::source::{self, Source};
use loranpac_bench::spec::Spec;
use loranpac_bench::sweep::Sweep;
use loranpac_data::text::escape;
use serde_json::json;

use crate::json::Json;
use crate::model::{pool, shown};
use crate::raw::RawArgs;
use crate::say::{self, note, say};
use crate::threads::threads;
use crate::words::count;
use crate::{command, sweep, table};

/// Options of `bench`.
#[derive(clap::Args)]
#[command(after_help = "Examples:  loranpac bench --list\n           \
    loranpac bench truncation-effect --quick\n           \
    loranpac bench truncation-effect --features FOLDER --data all --max-width 10000\n           \
    loranpac bench cil-vit --images FOLDER --encoder vit_base_patch16_224/ --preprocess unit   # the paper feeds [0, 1]\n           \
    loranpac bench pacs --images FOLDER --encoder image-basic\n\n\
    The word after --json is FILE: RECIPE comes before it, or write --json=-")]
pub struct Args {
    /// A recipe: a name from --list, a .toml file, or a LAMDA-PILOT configuration (.json)
    #[arg(required_unless_present = "list")]
    recipe: Option<String>,
    /// List the recipes inside the program, one for every table and figure of the paper
    #[arg(long)]
    list: bool,
    /// Folder of feature files: NAME.npz or NAME-ENCODER.npz (or .safetensors, or folders of .npy)
    #[arg(long, value_name = "DIR")]
    features: Option<PathBuf>,
    /// Folder of data sets as folders or archives of images, which --encoder encodes once into feature files below --out
    #[arg(long, value_name = "DIR", requires = "encoder", conflicts_with = "features")]
    images: Option<PathBuf>,
    /// Folder of reports and of finished runs, which are not repeated
    #[arg(long, value_name = "DIR", default_value = "loranpac-bench")]
    out: PathBuf,
    /// Use these data sets instead of the recipe's, separated by commas; all for every one in the folder
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    data: Vec<String>,
    /// Run only these methods of the recipe, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    method: Vec<String>,
    /// Leave out the runs that train inside the encoder
    #[arg(long)]
    frozen: bool,
    /// A smoke test in seconds: narrow, few samples, one seed; on the digits inside the program without --features
    #[arg(long)]
    quick: bool,
    /// Limit the width of lifts to this
    #[arg(long, value_name = "E")]
    max_width: Option<usize>,
    /// Use at most the first N training samples of each class
    #[arg(long, value_name = "N")]
    per_class: Option<usize>,
    /// Run only the first of a recipe's seeds
    #[arg(long)]
    one_seed: bool,
    #[command(flatten)]
    raw: RawArgs,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    json: Json<false>,
    /// Print only the path of the report
    #[arg(long, short)]
    quiet: bool,
}

pub fn main(args: Args) -> Result<()> {
    if args.list {
        return list();
    }
    let name = args.recipe.as_deref().unwrap_or_default();
    let (recipe, mut notes) = find_recipe(name)?;
    let mut scale = if args.quick { Scale::QUICK } else { Scale::default() };
    scale.max_width = args.max_width;
    scale.per_class = args.per_class.or(scale.per_class);
    scale.one_seed |= args.one_seed;
    notes.extend(scale.words());
    if args.max_width == Some(0) || args.per_class == Some(0) {
        bail!("--max-width and --per-class must be at least 1");
    }
    let threads = threads(args.threads)?;
    let pool = pool(threads)?;
    args.method.iter().try_for_each(|name| registry::find(name).map(|_| ()))?;
    let cache = Cache::open(args.out.join("runs"))?;
    let plan = |sources: &[Source]| -> Result<Vec<(Source, Vec<Spec>)>> {
        let mut plans = recipe.plans(sources, &scale)?;
        let is_wanted = |spec: &Spec| {
            (args.method.is_empty() || args.method.contains(&spec.method))
                && !(args.frozen && RunFeatures::trains(spec))
        };
        plans.iter_mut().for_each(|(_, specs)| specs.retain(is_wanted));
        match plans.iter().all(|(_, specs)| specs.is_empty()) {
            true => bail!("{} has no such runs (--method, --frozen)", recipe.name),
            false => Ok(plans),
        }
    };
    // What the runs cost is known from a listing: it is shown before images are encoded.
    let forecast = |sources: &[Source], left: usize| -> Result<()> {
        let forecast = Forecast::of(&plan(sources)?, Some(&cache), threads, left)?;
        if !args.quiet {
            forecast.words().iter().for_each(|words| note!("note: {}", escape(words)));
        }
        Ok(())
    };
    let (sources, more) = pool.install(|| sources(&args, &recipe, &forecast))?;
    notes.splice(0..0, more);
    let plans = plan(&sources)?;
    let runs = Sweep { plans: &plans, cache: Some(&cache), threads, beside_the_paper: true, forecast: false };
    let records = pool.install(|| sweep::run(&runs, args.quiet, &mut notes, Some(&args.out)))?;
    if records.is_empty() {
        bail!("nothing could be run: {}", notes.join("; "));
    }
    let folder = args.out.join(if args.quick { format!("{}-quick", recipe.name) } else { recipe.name.clone() });
    let command = format!("loranpac {}", command::line());
    let report = Report::new(&recipe, &records, &notes, &command);
    report.write(&folder)?;
    if args.json.is_wanted() {
        let runs: Vec<_> = records.iter().map(with_data).collect::<Result<_, _>>()?;
        let text = serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "runs": runs }))? + "\n";
        if args.json.to_stdout() {
            return Ok(say::json(&text)?);
        }
        args.json.save(&text)?;
    }
    if !args.quiet {
        for filled in report.tables() {
            say!("{}\n\n{}", escape(&filled.title), table::filled(filled))?;
        }
    }
    Ok(say!("{}, report: {}", count(records.len(), "run"), shown(&folder.join("report.html")))?)
}

/// Converts a run to the form of `loranpac run --json`, with its data set.
fn with_data(record: &Record) -> Result<serde_json::Value, serde_json::Error> {
    let mut run = serde_json::to_value(&record.run)?;
    run["data"] = serde_json::to_value(&record.data)?;
    Ok(run)
}

fn list() -> Result<()> {
    let mut rows = Vec::new();
    for (name, text) in RECIPES {
        let recipe = Recipe::parse(name, text)?;
        rows.push(vec![name.to_string(), recipe.paper.unwrap_or_default(), recipe.title]);
    }
    Ok(say::lines(&table::plain(&["recipe", "in the paper", "what"], &rows))?)
}

/// Returns the recipe, and notes about it.
fn find_recipe(name: &str) -> Result<(Recipe, Vec<String>)> {
    if let Some(recipe) = recipe::built_in(name) {
        return Ok((recipe?, Vec::new()));
    }
    let path = PathBuf::from(name);
    match path.extension().and_then(|e| e.to_str()) {
        Some("toml") => Ok((Recipe::open(&path)?, Vec::new())),
        Some("json") => {
            let (recipe, unknown) = pilot::open(&path)?;
            let note = || vec![format!("keys of {name} that have no effect here: {}", unknown.join(", "))];
            Ok((recipe, if unknown.is_empty() { Vec::new() } else { note() }))
        }
        _ => {
            bail!("there is no recipe {name:?}; loranpac bench --list lists the recipes, or give a .toml file")
        }
    }
}

/// Says how long runs on some data sets take, of which a number of samples is not encoded yet.
type Forecasting<'a> = &'a (dyn Fn(&[Source], usize) -> Result<()> + Sync);

/// Returns the data sets, and notes about missing ones.
fn sources(args: &Args, recipe: &Recipe, forecast: Forecasting<'_>) -> Result<(Vec<Source>, Vec<String>)> {
    let raw = args.raw.open(args.quiet)?;
    if let (Some(folder), Some(raw)) = (&args.images, &raw) {
        if args.raw.encoding.text.is_some() {
            bail!("--text has no effect on folders and archives");
        }
        let (sources, missing) = images::sources(args, folder, wanted(args, recipe)?, raw, forecast)?;
        return Ok((sources, skipped(&missing, "folder or archive")));
    }
    if raw.is_some() {
        bail!("--encoder has no effect without --images DIR, a folder of data sets");
    }
    let Some(folder) = &args.features else {
        if args.quick && args.data.is_empty() {
            return Ok((vec![Source::embedded()], Vec::new()));
        }
        bail!(
            "--features DIR is needed, a folder of feature files, or --images DIR, a folder of data sets (or --quick for \
             a smoke test on the digits)"
        );
    };
    let files = source::feature_files(folder)?;
    let names =
        || files.iter().filter_map(|f| f.file_stem()).map(|f| f.to_string_lossy()).collect::<Vec<_>>().join(", ");
    if args.data.iter().any(|name| name == "all") {
        if files.is_empty() {
            bail!("{} has no feature files", folder.display());
        }
        return Ok((source::all(&files), Vec::new()));
    }
    let wanted = wanted(args, recipe)?;
    let (sources, missing) = source::find(&files, wanted, recipe.backbone.as_deref());
    if sources.is_empty() {
        let found = if files.is_empty() { "no feature file".to_owned() } else { names() };
        bail!(
            "{} has no file for any of {}; it has {found}. --data all uses every file",
            folder.display(),
            wanted.join(", ")
        );
    }
    if !args.data.is_empty() && !missing.is_empty() {
        bail!("{} has no file for {}; it has {}", folder.display(), missing.join(", "), names());
    }
    Ok((sources, skipped(&missing, "file")))
}

/// Returns the names of the data sets.
fn wanted<'a>(args: &'a Args, recipe: &'a Recipe) -> Result<&'a [String]> {
    let wanted = if args.data.is_empty() { &recipe.data } else { &args.data };
    if wanted.is_empty() {
        bail!("{} names no data; name some with --data, or use --data all", recipe.name);
    }
    Ok(wanted)
}

/// Returns notes about data sets that are not there.
fn skipped(missing: &[String], what: &str) -> Vec<String> {
    missing.iter().map(|name| format!("{name} is skipped: there is no {what} for it")).collect()
}
