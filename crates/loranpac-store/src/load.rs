//! From files to a learner: memory is mapped, and read when it is needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use faer::Mat;
use half::f16;
use loranpac::{Basis, Buffer, Editable, Factor, Gone, Infinite, Kept, Learner, LoRanPac, State, Statistics, Step};
use rayon::prelude::*;

use crate::error::Error;
use crate::manifest::{GonePart, GramStep, Manifest, Place};
use crate::model::table;
use crate::segment::{Element, Numbers, Segment};

/// The files of a model, mapped when it is opened: they stay readable, whatever a writer does in the meantime.
#[derive(Default)]
pub struct Files {
    folder: PathBuf,
    open: BTreeMap<String, Segment>,
}

impl Files {
    /// Maps everything that a manifest needs; sizes are compared, nothing is read.
    pub fn open(folder: &Path, manifest: &Manifest) -> Result<Files, Error> {
        let mut open = BTreeMap::new();
        for name in manifest.needs() {
            open.insert(name.to_owned(), segment(folder, manifest, name)?);
        }
        Ok(Files { folder: folder.to_owned(), open })
    }

    /// Compares all of them with their checksums, on all threads.
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

/// Whether every tensor that a manifest names is in its file, as the manifest describes it. No numbers are read.
pub fn check(files: &Files, manifest: &Manifest) -> Result<(), Error> {
    let (width, dim, rank) = (manifest.lift.width, manifest.lift.dim, manifest.rank());
    for part in &manifest.basis {
        files.get(&part.file)?.tensor::<f32>("basis", part.columns, width)?;
    }
    for step in &manifest.gram {
        gram_step(files, step)?;
    }
    for places in manifest.classes.iter().filter_map(|class| class.places.as_ref()) {
        let [rows, columns] = places.sums.shape;
        files.get(&places.sums.file)?.tensor::<f32>("sums", rows, columns)?;
        let [rows, columns] = places.cross.shape;
        files.get(&places.cross.file)?.tensor::<f64>("cross", rows, columns)?;
    }
    for part in &manifest.kept {
        let segment = files.get(&part.file)?;
        segment.tensor::<u32>("classes", 1, part.samples)?;
        match manifest.config.half {
            true => segment.tensor::<f16>("samples", part.samples, dim).map(|_| ())?,
            false => segment.tensor::<f32>("samples", part.samples, dim).map(|_| ())?,
        }
    }
    if let Some(GonePart { file, shape: [classes, n], .. }) = &manifest.gone {
        let segment = files.get(file)?;
        segment.tensor::<f64>("mass", 1, triangle(*n))?;
        segment.tensor::<f64>("sums", *classes, *n)?;
    }
    if let Some(weights) = &manifest.weights {
        let (segment, classes) = (files.get(&weights.file)?, manifest.classes.len());
        match manifest.is_infinite() {
            true => segment.tensor::<f64>("weights", classes, rank).map(|_| ())?,
            false => segment.tensor::<f32>("weights", classes, width).map(|_| ())?,
        }
    }
    Ok(())
}

/// Numbers in a triangle of so many columns.
fn triangle(n: usize) -> usize {
    n.saturating_mul(n.saturating_add(1)) / 2
}

fn gram_step(files: &Files, step: &GramStep) -> Result<Step, Error> {
    Ok(match step {
        GramStep::Whole { file, rank } => {
            Step::Whole { rank: *rank, upper: files.get(file)?.tensor("gram", 1, triangle(*rank))?.all() }
        }
        GramStep::Grow { file, index, rows, columns } => {
            let data = files.get(file)?.tensor(&format!("factor.{index}"), *columns, *rows)?.all();
            let factor = Factor::from_columns(*rows, *columns, data);
            Step::Grow(factor.ok_or_else(|| inconsistent(&files.folder))?)
        }
    })
}

/// A file of the model, of the right size.
pub fn segment(folder: &Path, manifest: &Manifest, name: &str) -> Result<Segment, Error> {
    let path = folder.join(name);
    match manifest.files.get(name) {
        Some(entry) => Segment::open(&path, entry),
        None => Err(Error::Damaged { path, reason: "it is not listed in the manifest".to_owned() }),
    }
}

/// The learner that a manifest describes, without its classifier.
pub fn learner(files: &Files, manifest: &Manifest) -> Result<Box<dyn Editable>, Error> {
    match manifest.is_infinite() {
        true => Ok(Box::new(infinite(files, manifest)?)),
        false => Ok(Box::new(explicit(files, manifest)?)),
    }
}

fn explicit(files: &Files, manifest: &Manifest) -> Result<LoRanPac, Error> {
    let folder = files.folder.as_path();
    let (width, rank) = (manifest.lift.width, manifest.rank());
    let basis = basis(files, manifest, width)?;
    let gram = manifest.gram.iter().map(|step| gram_step(files, step)).collect::<Result<Vec<_>, _>>()?;
    let (mut sums, mut rows) = (Vec::new(), Vec::new());
    for class in &manifest.classes {
        let places = class.places.as_ref().ok_or_else(|| inconsistent(folder))?;
        sums.push(files.row::<f32>("sums", &places.sums)?);
        rows.push(files.row::<f64>("cross", &places.cross)?);
    }
    let state = State {
        width,
        rank,
        basis,
        gram,
        cross: Mat::from_fn(rows.len(), rank, |i, j| rows[i].get(j).copied().unwrap_or(0.0)),
        sums,
        counts: manifest.classes.iter().map(|class| class.count).collect(),
        samples: manifest.samples,
        losses: manifest.losses,
        latest_cut: manifest.latest_cut,
        outside: manifest.outside,
        drop: manifest.config.drop,
    };
    let stats = Statistics::from_state(state).ok_or_else(|| inconsistent(folder))?;
    let lift = manifest.lift.build_lazily()?;
    let learner = LoRanPac::from_parts(lift, manifest.config, table(manifest), stats)?;
    learner.ok_or_else(|| inconsistent(folder))
}

fn infinite(files: &Files, manifest: &Manifest) -> Result<Infinite, Error> {
    let folder = files.folder.as_path();
    let dim = manifest.lift.dim;
    let mut kept = Kept { counts: manifest.classes.iter().map(|class| class.count).collect(), ..Kept::default() };
    for part in &manifest.kept {
        let segment = files.get(&part.file)?;
        if manifest.config.half {
            kept.samples.extend(segment.tensor::<f16>("samples", part.samples, dim)?.all().iter().map(|v| v.to_f32()));
        } else {
            kept.samples.extend_from_slice(&segment.tensor::<f32>("samples", part.samples, dim)?.all());
        }
        let classes = segment.tensor::<u32>("classes", 1, part.samples)?.all();
        kept.classes.extend(classes.iter().map(|class| *class as usize));
    }
    if let Some(part) = &manifest.gone {
        let [classes, n] = part.shape;
        let segment = files.get(&part.file)?;
        let upper = segment.tensor::<f64>("mass", 1, triangle(n))?.all();
        let sums = segment.tensor::<f64>("sums", classes, n)?.all();
        let at = |i: usize, j: usize| upper[j * (j + 1) / 2 + i];
        kept.gone = Some(Gone {
            mass: Mat::from_fn(n, n, |i, j| at(i.min(j), i.max(j))),
            sums: Mat::from_fn(classes, n, |c, j| sums[c * n + j]),
            samples: part.samples,
            orphans: part.orphans,
            times: part.times,
            error: part.error,
            latest: part.latest,
        });
    }
    let learner = Infinite::from_parts(manifest.lift.build(false)?, manifest.config, table(manifest), kept)?;
    learner.filter(|learner| learner.summary().samples == manifest.samples).ok_or_else(|| inconsistent(folder))
}

/// W, transposed (E x c), if it has been formed. It is compared with its checksum.
pub fn weights(files: &Files, manifest: &Manifest) -> Result<Option<Mat<f32>>, Error> {
    stored_weights(files, manifest, manifest.lift.width)
}

/// A, transposed (n x c), if it has been formed: what W is at infinite width. It is compared with its checksum.
pub fn coefficients(files: &Files, manifest: &Manifest) -> Result<Option<Mat<f64>>, Error> {
    stored_weights(files, manifest, manifest.rank())
}

fn stored_weights<T: Element + Copy>(files: &Files, manifest: &Manifest, rows: usize) -> Result<Option<Mat<T>>, Error> {
    let Some(entry) = &manifest.weights else { return Ok(None) };
    let classes = manifest.classes.len();
    let segment = files.get(&entry.file)?;
    manifest.files.get(&entry.file).map_or(Ok(()), |listed| segment.check(listed))?;
    let numbers = segment.tensor::<T>("weights", classes, rows)?.all();
    Ok(Some(Mat::from_fn(rows, classes, |i, j| numbers[j * rows + i])))
}

/// Q in blocks: where one file has all of a block, where it lies there; otherwise put together from several.
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
        Some(Buffer::Owned(whole))
    };
    Basis::<f32>::blocks_for(first).map(|block| take(block).ok_or_else(|| inconsistent(folder))).collect()
}

fn inconsistent(folder: &Path) -> Error {
    let reason = "the sizes of its parts do not fit together".to_owned();
    Error::Damaged { path: folder.to_owned(), reason }
}
