//! `loranpac bench --images`: data sets of raw images become feature files, each once.

use std::path::Path;

use anyhow::{Result, bail};
use loranpac_bench::images::{self, FeatureFolder, ImageSet};
use loranpac_bench::preflight::sketch;
use loranpac_bench::raw::RawPlace;
use loranpac_bench::source::Source;
use loranpac_encode::{Inputs, Needs};

use super::{Args, Forecasting};
use crate::model::shown;
use crate::raw::Raw;
use crate::say::note;
use crate::words::count;

/// Returns the feature files of the wanted data sets below a folder, and the names of missing ones. Every data set is
/// listed before the first is encoded, so that a wrong layout is found before hours of work.
pub fn sources(
    args: &Args,
    folder: &Path,
    wanted: &[String],
    raw: &Raw<'_>,
    forecast: Forecasting<'_>,
) -> Result<(Vec<Source>, Vec<String>)> {
    let (sets, missing) = match wanted.iter().any(|name| name == "all") {
        true => (images::all(folder)?, Vec::new()),
        false => images::named(folder, wanted)?,
    };
    if sets.is_empty() {
        bail!("{} has no folder or archive for any of {}{}", shown(folder), wanted.join(", "), beside(folder)?);
    }
    if !args.data.is_empty() && !missing.is_empty() {
        bail!("{} has no folder or archive for {}{}", shown(folder), missing.join(", "), beside(folder)?);
    }
    let files = FeatureFolder::new(&args.out, &*raw.encoder, raw.layers);
    let mut work: Vec<(&ImageSet, Inputs)> = Vec::new();
    for set in &sets {
        let inputs = set.open(&raw.inputs(None))?;
        if !files.holds(set, &inputs, raw.encoding.skip_bad) {
            // Once the file is there, the sweep notes the difference.
            if let Some(words) = set.unlike_the_paper(&inputs) {
                note!("note: {words}");
            }
            work.push((set, inputs));
        }
    }
    // The encoder is opened once to see whether it can be adapted.
    let usual = raw.place(Vec::new(), raw.inputs(None));
    let place = |set: &ImageSet| {
        let (path, options) = set.place(&raw.inputs(None));
        usual.clone().map(|usual| RawPlace { inputs: vec![path], options, ..usual })
    };
    let source = |set: &ImageSet| match place(set) {
        Some(place) => files.source(set).with_raw(place),
        None => files.source(set),
    };
    let outline =
        |set: &ImageSet| work.iter().find(|(other, _)| *other == set).and_then(|(_, inputs)| inputs.outline());
    let known = |set: &ImageSet| match (outline(set), place(set)) {
        (Some(outline), Some(place)) => {
            let dataset = sketch(&set.key, outline, raw.encoder.dim());
            Source::encoded(&set.path, Vec::new(), dataset).called(&set.key).with_raw(place)
        }
        _ => source(set),
    };
    let left = work.iter().filter_map(|(_, inputs)| inputs.count_hint()).sum();
    forecast(&sets.iter().map(known).collect::<Vec<_>>(), left)?;
    for (set, inputs) in work {
        let Some(listing) = inputs.outline().map(|outline| outline.digest) else { continue };
        let features = raw.gather(inputs, Needs::Experiment)?;
        let (computed, all) = (features.computed(), features.len());
        files.write(set, &listing, features)?;
        if !args.quiet {
            note!("{}: {computed} of {} encoded, {} from the cache", set.key, count(all, "sample"), all - computed);
        }
    }
    Ok((sets.iter().map(source).collect(), missing))
}

/// What a folder has instead, as the end of a message.
fn beside(folder: &Path) -> Result<String> {
    let names: Vec<String> = images::all(folder)?.into_iter().map(|set| set.key).collect();
    Ok(match names.is_empty() {
        true => "; it has no folders and no archives".to_owned(),
        false => format!("; it has {}. --data all uses all of them", names.join(", ")),
    })
}
