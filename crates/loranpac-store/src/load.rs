//! Loading a model: files are mapped, and read on demand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use faer::Mat;
use half::f16;
use loranpac::internals::{
    Basis, Buffer, Evicted, ExplicitModel, Factor, KeptWeights, KernelModel, KernelState, Rows, State, Statistics, Step,
};
use loranpac::{Classifier, FeatureSpace, Model};
use rayon::prelude::*;

use crate::error::Error;
use crate::manifest::{EvictedPart, GramStep, Manifest, Place};
use crate::segment::{Element, Numbers, Segment};

/// The mapped files of a model: they stay readable, even if a writer removes them.
#[derive(Default)]
pub struct Files {
    folder: PathBuf,
    open: BTreeMap<String, Segment>,
}

impl Files {
    /// Maps all files of a manifest; sizes are compared, nothing is read.
    pub fn open(folder: &Path, manifest: &Manifest) -> Result<Files, Error> {
        let mut open = BTreeMap::new();
        for name in manifest.needs() {
            open.insert(name.to_owned(), segment(folder, manifest, name)?);
        }
        Ok(Files { folder: folder.to_owned(), open })
    }

    /// Returns whether no file is mapped.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Compares all files with their checksums, on all threads.
    pub fn check(&self, manifest: &Manifest) -> Result<(), Error> {
        let listed: Vec<_> = self.open.iter().filter_map(|(name, s)| Some((s, manifest.files.get(name)?))).collect();
        listed.par_iter().try_for_each(|(segment, entry)| segment.check(entry))
    }

    fn get(&self, name: &str) -> Result<&Segment, Error> {
        let reason = "it is not listed in the manifest".to_owned();
        self.open.get(name).ok_or_else(|| Error::Damaged { path: self.folder.join(name), reason })
    }

    fn row<T: Element>(&self, tensor: &str, place: &Place) -> Result<Buffer<T>, Error> {
        let [rows, columns] = place.shape;
        let numbers: Numbers<T> = self.get(&place.file)?.tensor(tensor, rows, columns)?;
        let beyond = || {
            let reason = format!("there is no row {} in its tensor {tensor}", place.row);
            Error::Damaged { path: self.folder.join(&place.file), reason }
        };
        if place.row >= rows {
            return Err(beyond());
        }
        numbers.part(place.row.saturating_mul(columns), columns).ok_or_else(beyond)
    }
}

/// Checks that every tensor of a manifest is in its file, with the shape in the manifest. No numbers are read.
pub fn check(files: &Files, manifest: &Manifest) -> Result<(), Error> {
    let (width, dim, rank) = (manifest.lift.computed(), manifest.lift.dim, manifest.rank());
    for part in &manifest.basis {
        files.get(&part.file)?.tensor::<f32>("basis", part.columns, width)?;
    }
    for (part, numbers) in manifest.lower_parts() {
        files.get(&part.file)?.tensor::<f64>("lower", 1, numbers)?;
    }
    for step in &manifest.gram {
        match step {
            GramStep::Grow { file, index, rows, columns, single: true } => {
                files.get(file)?.tensor::<f32>(&format!("factor.{index}"), *columns, *rows).map(|_| ())?;
            }
            _ => gram_step(files, step).map(|_| ())?,
        }
    }
    for places in manifest.classes.iter().filter_map(|class| class.places.as_ref()) {
        if let Some(Place { file, shape: [rows, columns], .. }) = &places.sums {
            files.get(file)?.tensor::<f32>("sums", *rows, *columns)?;
        }
        let [rows, columns] = places.cross.shape;
        files.get(&places.cross.file)?.tensor::<f64>("cross", rows, columns)?;
    }
    for part in &manifest.kept {
        let segment = files.get(&part.file)?;
        segment.tensor::<u32>("classes", 1, part.samples)?;
        if part.weighted {
            segment.tensor::<f64>("weights", 1, part.samples)?;
        }
        match manifest.config.half {
            true => segment.tensor::<f16>("samples", part.samples, dim).map(|_| ())?,
            false => segment.tensor::<f32>("samples", part.samples, dim).map(|_| ())?,
        }
    }
    if let Some(EvictedPart { file, shape: [classes, n], .. }) = &manifest.evicted {
        let segment = files.get(file)?;
        segment.tensor::<f64>("mass", 1, triangle(*n))?;
        segment.tensor::<f64>("sums", *classes, *n)?;
    }
    if let Some(weights) = &manifest.weights {
        let (segment, classes) = (files.get(&weights.file)?, manifest.classes.len());
        match manifest.keeps_samples() {
            true => segment.tensor::<f64>("weights", classes, rank).map(|_| ())?,
            false => segment.tensor::<f32>("weights", classes, width).map(|_| ())?,
        }
    }
    Ok(())
}

/// Returns the number of values in a triangle of this size.
fn triangle(n: usize) -> usize {
    n.saturating_mul(n.saturating_add(1)) / 2
}

fn gram_step(files: &Files, step: &GramStep) -> Result<Step, Error> {
    Ok(match step {
        GramStep::Whole { file, rank } => {
            Step::Whole { rank: *rank, upper: files.get(file)?.tensor("gram", 1, triangle(*rank))?.all() }
        }
        GramStep::Grid { file, rank } => {
            let segment = files.get(file)?;
            let diagonal = segment.tensor("diagonal", 1, *rank)?.all();
            Step::Grid { diagonal, numbers: segment.tensor("gram", 1, triangle(rank.saturating_sub(1)))?.all() }
        }
        GramStep::Grow { file, index, rows, columns, single } => {
            let (segment, name) = (files.get(file)?, format!("factor.{index}"));
            let factor = match single {
                true => Factor::from_single(*rows, *columns, &segment.tensor(&name, *columns, *rows)?.all()),
                false => Factor::from_columns(*rows, *columns, segment.tensor(&name, *columns, *rows)?.all()),
            };
            Step::Grow(factor.ok_or_else(|| inconsistent(&files.folder))?)
        }
    })
}

/// Opens a file of the model, and checks its size.
pub fn segment(folder: &Path, manifest: &Manifest, name: &str) -> Result<Segment, Error> {
    let path = folder.join(name);
    match manifest.files.get(name) {
        Some(entry) => Segment::open(&path, entry),
        None => Err(Error::Damaged { path, reason: "it is not listed in the manifest".to_owned() }),
    }
}

/// Loads the model of a manifest, without its classifier.
pub fn model(files: &Files, manifest: &Manifest) -> Result<Model, Error> {
    let folder = files.folder.as_path();
    let table = manifest.table();
    let model = match manifest.lift.build_lazily()? {
        FeatureSpace::Explicit(map) => {
            let stats = statistics(files, manifest)?;
            ExplicitModel::from_parts(map, manifest.config, table, stats)?.map(Model::Explicit)
        }
        FeatureSpace::Kernel(kernel) => {
            let state = kernel_state(files, manifest)?;
            let known = state.learned() == manifest.samples;
            let model = KernelModel::from_parts(kernel, manifest.config, table, state)?;
            model.filter(|_| known).map(Model::Kernel)
        }
    };
    model.ok_or_else(|| inconsistent(folder))
}

/// Restores the classifier that was stored with a model, if there is one.
pub fn restore_classifier(files: &Files, manifest: &Manifest, model: &mut Model) -> Result<(), Error> {
    let Some(entry) = &manifest.weights else { return Ok(()) };
    let (classes, rows) = (manifest.classes.len(), manifest.lift.width.finite().unwrap_or(manifest.rank()));
    let fits = match model {
        Model::Explicit(model) => stored_weights::<f32>(files, manifest, rows)?
            .is_none_or(|w| model.set_classifier(Mat::from_fn(rows, classes, |i, j| w[j * rows + i]), entry.facts)),
        Model::Kernel(model) => stored_weights::<f64>(files, manifest, rows)?.is_none_or(|a| {
            let a = Mat::from_fn(rows, classes, |i, j| a[j * rows + i]);
            model.set_classifier(a, entry.facts, entry.lost.unwrap_or(0.0))
        }),
    };
    if fits { Ok(()) } else { Err(inconsistent(&files.folder)) }
}

/// Loads the stored classifier of a model of finite width, without the model itself: it cannot measure novelty.
pub fn classifier(files: &Files, manifest: &Manifest) -> Result<Option<Classifier>, Error> {
    if manifest.keeps_samples() {
        return Ok(None);
    }
    let Some(numbers) = stored_weights::<f32>(files, manifest, manifest.lift.computed())? else { return Ok(None) };
    let labels: Vec<_> = manifest.classes.iter().map(|class| class.label.clone()).collect();
    let fill = |class: usize, column: &mut [f32]| -> Result<(), Error> {
        let start = class * column.len();
        column.copy_from_slice(&numbers[start..start + column.len()]);
        Ok(())
    };
    Classifier::linear(manifest.lift.build_lazily()?, &labels, fill).map(Some)
}

fn statistics(files: &Files, manifest: &Manifest) -> Result<Statistics<f32>, Error> {
    let folder = files.folder.as_path();
    let (width, rank) = (manifest.lift.computed(), manifest.rank());
    let basis = basis(files, manifest, width)?;
    let lower = lower(files, manifest)?;
    let gram = manifest.gram.iter().map(|step| gram_step(files, step)).collect::<Result<Vec<_>, _>>()?;
    let (mut sums, mut rows) = (Vec::new(), Vec::new());
    for class in &manifest.classes {
        let places = class.places.as_ref().ok_or_else(|| inconsistent(folder))?;
        if !manifest.whole {
            let place = places.sums.as_ref().ok_or_else(|| inconsistent(folder))?;
            sums.push(files.row::<f32>("sums", place)?);
        }
        rows.push(files.row::<f64>("cross", &places.cross)?);
    }
    let state = State {
        width,
        rank,
        basis,
        rows: lower,
        gram,
        cross: Mat::from_fn(rows.len(), rank, |i, j| rows[i].get(j).copied().unwrap_or(0.0)),
        sums,
        counts: manifest.classes.iter().map(|class| class.count).collect(),
        samples: manifest.samples,
        masses: manifest.masses(),
        losses: manifest.losses,
        latest_cut: manifest.latest_cut,
        outside: manifest.outside,
        drop: manifest.config.drop,
    };
    Statistics::from_state(state).ok_or_else(|| inconsistent(folder))
}

fn kernel_state(files: &Files, manifest: &Manifest) -> Result<KernelState, Error> {
    let dim = manifest.lift.dim;
    let counts = manifest.classes.iter().map(|class| class.count).collect();
    let mut state = KernelState { counts, ..KernelState::default() };
    state.weighted = manifest.masses().map(|masses| KeptWeights { kept: Vec::new(), masses });
    for part in &manifest.kept {
        let segment = files.get(&part.file)?;
        if manifest.config.half {
            state.samples.extend(segment.tensor::<f16>("samples", part.samples, dim)?.all().iter().map(|v| v.to_f32()));
        } else {
            state.samples.extend_from_slice(&segment.tensor::<f32>("samples", part.samples, dim)?.all());
        }
        let classes = segment.tensor::<u32>("classes", 1, part.samples)?.all();
        state.classes.extend(classes.iter().map(|class| *class as usize));
        if let Some(weighted) = &mut state.weighted {
            match part.weighted {
                true => weighted.kept.extend_from_slice(&segment.tensor::<f64>("weights", 1, part.samples)?.all()),
                false => weighted.kept.resize(weighted.kept.len() + part.samples, 1.0),
            }
        }
    }
    if let Some(part) = &manifest.evicted {
        let [classes, n] = part.shape;
        let segment = files.get(&part.file)?;
        let upper = segment.tensor::<f64>("mass", 1, triangle(n))?.all();
        let sums = segment.tensor::<f64>("sums", classes, n)?.all();
        let at = |i: usize, j: usize| upper[j * (j + 1) / 2 + i];
        state.evicted = Some(Evicted {
            mass: Mat::from_fn(n, n, |i, j| at(i.min(j), i.max(j))),
            sums: Mat::from_fn(classes, n, |c, j| sums[c * n + j]),
            samples: part.samples,
            unlabelled: part.unlabelled,
            evictions: part.evictions,
            error: part.error,
            latest: part.latest,
        });
    }
    Ok(state)
}

/// Reads the numbers of the stored classifier, class after class, if it has been formed. They are compared with their
/// checksum.
fn stored_weights<T: Element + Copy>(
    files: &Files,
    manifest: &Manifest,
    rows: usize,
) -> Result<Option<Buffer<T>>, Error> {
    let Some(entry) = &manifest.weights else { return Ok(None) };
    let segment = files.get(&entry.file)?;
    manifest.files.get(&entry.file).map_or(Ok(()), |listed| segment.check(listed))?;
    Ok(Some(segment.tensor::<T>("weights", manifest.classes.len(), rows)?.all()))
}

/// Returns the rows of L.
fn lower(files: &Files, manifest: &Manifest) -> Result<Vec<Rows>, Error> {
    let mut rows: Vec<Rows> = manifest.basis.iter().map(|part| Rows { count: part.columns, packed: None }).collect();
    let places = manifest.basis.iter().enumerate().filter(|(_, part)| part.lower);
    for ((place, _), (part, numbers)) in places.zip(manifest.lower_parts()) {
        rows[place].packed = Some(files.get(&part.file)?.tensor::<f64>("lower", 1, numbers)?.all());
    }
    Ok(rows)
}

/// Returns B in blocks: mapped if one file holds all of a block, otherwise copied from several files.
fn basis(files: &Files, manifest: &Manifest, width: usize) -> Result<Vec<Buffer<f32>>, Error> {
    let mut parts = Vec::new();
    let mut first = 0;
    for part in &manifest.basis {
        let numbers = files.get(&part.file)?.tensor::<f32>("basis", part.columns, width)?;
        parts.push((first..first + part.columns, numbers));
        first += part.columns;
    }
    let folder = files.folder.as_path();
    let take = |block: std::ops::Range<usize>| -> Option<Buffer<f32>> {
        let over = parts.iter().filter(|(range, _)| range.start < block.end && block.start < range.end);
        let mut pieces = over.map(|(range, numbers)| {
            let (start, end) = (block.start.max(range.start), block.end.min(range.end));
            numbers.part((start - range.start) * width, (end - start) * width)
        });
        let first = pieces.next()??;
        let Some(second) = pieces.next() else { return Some(first) };
        let mut whole = first.to_vec();
        whole.extend_from_slice(&second?);
        for piece in pieces {
            whole.extend_from_slice(&piece?);
        }
        Some(Buffer::from(whole))
    };
    Basis::<f32>::blocks_for(first).map(|block| take(block).ok_or_else(|| inconsistent(folder))).collect()
}

fn inconsistent(folder: &Path) -> Error {
    let reason = "the sizes of its parts do not fit together".to_owned();
    Error::Damaged { path: folder.to_owned(), reason }
}
