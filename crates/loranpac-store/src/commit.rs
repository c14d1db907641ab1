//! Commits of a model: new files are written first, then the manifest is replaced atomically, then unreferenced files
//! are removed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use half::f16;
use loranpac::internals::{Delta, ExplicitModel, Factor, Grid, KernelModel, Statistics};
use loranpac::{Label, Learner, Model};

use crate::disk::{Disk, remove_if_there};
use crate::error::Error;
use crate::folder::{self, MANIFEST};
use crate::load::{self, Files};
use crate::manifest::{BasisPart, ClassEntry, EvictedPart, GramStep, KeptPart, Manifest, Place, Places, WeightsEntry};
use crate::segment::{self, Tensor};

/// Parts of the basis with fewer columns than this are small.
const SMALL_PART: usize = 1024;
/// Number of consecutive small parts that are combined into one.
const SMALL_PARTS: usize = 32;
/// J and N are rewritten when they are spread over more files than this.
const CLASS_FILES: usize = 64;
/// S itself is written when its increments have this many times as many numbers, or, where there is no basis, the reciprocal:
/// S is then nearly all of the model.
const STEPS_PER_GRAM: usize = 2;
const GRAMS_PER_STEPS: usize = 8;

/// An uncommitted version: files that no manifest refers to yet.
struct Draft<'a> {
    disk: &'a dyn Disk,
    folder: &'a Path,
    manifest: Manifest,
    new: Vec<PathBuf>,
}

impl Draft<'_> {
    fn name(&self, kind: &str) -> String {
        folder::segment_name(self.manifest.version, kind)
    }

    /// Writes a file and adds it to the list.
    fn write(&mut self, kind: &str, tensors: Vec<Tensor<'_>>) -> Result<String, Error> {
        let name = self.name(kind);
        let path = self.folder.join(&name);
        self.new.push(path.clone());
        let entry = segment::write(self.disk, &path, tensors)?;
        self.manifest.files.insert(name.clone(), entry);
        Ok(name)
    }
}

/// Writes the changes of a model, and replaces the manifest. On an error the model on disk is unchanged.
pub fn write(
    disk: &dyn Disk,
    folder: &Path,
    mut manifest: Manifest,
    model: &mut Model,
    delta: &Delta,
) -> Result<Manifest, Error> {
    manifest.version += 1;
    let mut draft = Draft { disk, folder, manifest, new: Vec::new() };
    let filled = match model {
        Model::Explicit(model) => fill_explicit(&mut draft, model, delta),
        Model::Kernel(model) => fill_kernel(&mut draft, model, delta),
    };
    let outcome = filled.and_then(|()| finish(&mut draft));
    if outcome.is_err() {
        // No manifest refers to the files written so far.
        draft.new.iter().for_each(|path| drop(remove_if_there(disk, path)));
    }
    outcome.map(|()| draft.manifest)
}

/// Replaces the manifest alone.
pub fn write_manifest(disk: &dyn Disk, folder: &Path, mut manifest: Manifest) -> Result<Manifest, Error> {
    manifest.version += 1;
    let mut draft = Draft { disk, folder, manifest, new: Vec::new() };
    finish(&mut draft)?;
    Ok(draft.manifest)
}

fn fill_explicit(draft: &mut Draft<'_>, model: &mut ExplicitModel, delta: &Delta) -> Result<(), Error> {
    let labels = model.classes().labels();
    let stats = model.statistics();
    draft.manifest.samples = stats.samples();
    draft.manifest.mass = stats.is_weighted().then(|| stats.masses().all);
    draft.manifest.losses = stats.losses();
    draft.manifest.latest_cut = stats.latest_cut();
    draft.manifest.outside = stats.outside();
    let same_labels = draft.manifest.classes.iter().map(|class| &class.label).eq(labels);
    if !delta.is_empty() || !same_labels {
        draft.manifest.weights = None;
    }
    basis(draft, stats, delta.basis)?;
    classes(draft, model, delta)?;
    gram(draft, model, delta)?;
    if draft.manifest.weights.is_some() || !model.is_prepared() {
        return Ok(());
    }
    let classifier = model.classifier()?;
    if let (Some(facts), Some(w)) = (classifier.facts(), classifier.weights()) {
        let columns: Vec<_> = w.columns().collect();
        let tensor = Tensor::new("weights", w.classes(), w.width(), columns.iter().map(|column| &**column));
        let file = draft.write("weights", vec![tensor])?;
        draft.manifest.weights = Some(WeightsEntry { file, facts: *facts, lost: None });
    }
    Ok(())
}

/// Writes the new samples of a model of infinite width, or all of them; the contribution of evicted samples; and A.
fn fill_kernel(draft: &mut Draft<'_>, model: &mut KernelModel, delta: &Delta) -> Result<(), Error> {
    let labels = model.classes().labels();
    let all = delta.basis;
    if !delta.is_empty() || !draft.manifest.classes.iter().map(|class| &class.label).eq(labels) {
        draft.manifest.weights = None;
    }
    let masses = model.state().weighted.as_ref().map(|weighted| &weighted.masses);
    let entry = |(class, (label, count)): (usize, (&Label, &usize))| {
        let mass = masses.map(|masses| masses.classes[class]);
        ClassEntry { label: label.clone(), count: *count, mass, places: None }
    };
    draft.manifest.classes = labels.iter().zip(model.counts()).enumerate().map(entry).collect();
    draft.manifest.samples = model.state().learned();
    draft.manifest.mass = masses.map(|masses| masses.all);
    if !delta.is_empty() {
        samples(draft, model, all)?;
    }
    evicted(draft, model, all)?;
    if draft.manifest.weights.is_some() || !model.is_prepared() {
        return Ok(());
    }
    let classifier = model.classifier()?;
    if let (Some(facts), Some((a, lost))) = (classifier.facts(), classifier.coefficients()) {
        let columns: Vec<Vec<f64>> = a.col_iter().map(|column| column.iter().copied().collect()).collect();
        let tensor = Tensor::new("weights", a.ncols(), a.nrows(), columns.iter().map(Vec::as_slice));
        let file = draft.write("weights", vec![tensor])?;
        draft.manifest.weights = Some(WeightsEntry { file, facts: *facts, lost: Some(lost) });
    }
    Ok(())
}

/// Writes the samples that are not in a file yet, or all of them.
fn samples(draft: &mut Draft<'_>, model: &KernelModel, all: bool) -> Result<(), Error> {
    let (dim, half, state) = (model.space().dim(), model.config().half, model.state());
    // Many small tasks produce many small parts, which are combined from time to time.
    let small = draft.manifest.kept.iter().rev().take_while(|part| part.samples < SMALL_PART).count();
    let parts = draft.manifest.kept.len();
    draft.manifest.kept.truncate(match small >= SMALL_PARTS {
        _ if all => 0,
        true => parts - small,
        false => parts,
    });
    let first = draft.manifest.rank();
    let count = model.len() - first;
    if count == 0 {
        return Ok(());
    }
    let numbers = &state.samples[first * dim..];
    let halves: Vec<f16> = if half { numbers.iter().map(|v| f16::from_f32(*v)).collect() } else { Vec::new() };
    let classes: Vec<u32> = state.classes[first..].iter().map(|class| *class as u32).collect();
    let rows = match half {
        true => Tensor::new("samples", count, dim, [halves.as_slice()]),
        false => Tensor::new("samples", count, dim, [numbers]),
    };
    let weights = state.weighted.as_ref().map(|weighted| &weighted.kept[first..]);
    let weights = weights.filter(|weights| weights.iter().any(|weight| *weight != 1.0));
    let mut tensors: Vec<_> = weights.iter().map(|weights| Tensor::new("weights", 1, count, [*weights])).collect();
    tensors.extend([Tensor::new("classes", 1, count, [classes.as_slice()]), rows]);
    let file = draft.write("samples", tensors)?;
    draft.manifest.kept.push(KeptPart { file, samples: count, weighted: weights.is_some() });
    Ok(())
}

/// Writes the contribution of evicted samples. Its matrices change only together with all samples.
fn evicted(draft: &mut Draft<'_>, model: &KernelModel, all: bool) -> Result<(), Error> {
    let Some(evicted) = &model.state().evicted else {
        draft.manifest.evicted = None;
        return Ok(());
    };
    if let Some(part) = draft.manifest.evicted.as_mut().filter(|_| !all) {
        (part.error, part.latest) = (evicted.error, evicted.latest);
        return Ok(());
    }
    let n = evicted.mass.nrows();
    let upper: Vec<f64> = (0..n).flat_map(|j| (0..=j).map(move |i| (i, j))).map(|at| evicted.mass[at]).collect();
    let rows: Vec<Vec<f64>> = evicted.sums.row_iter().map(|row| row.iter().copied().collect()).collect();
    let tensors = vec![
        Tensor::new("mass", 1, upper.len(), [upper.as_slice()]),
        Tensor::new("sums", rows.len(), n, rows.iter().map(Vec::as_slice)),
    ];
    // The kind of file has had this name since format 1.
    let file = draft.write("gone", tensors)?;
    draft.manifest.evicted = Some(EvictedPart {
        file,
        shape: [rows.len(), n],
        samples: evicted.samples,
        unlabelled: evicted.unlabelled,
        evictions: evicted.evictions,
        error: evicted.error,
        latest: evicted.latest,
    });
    Ok(())
}

/// Writes the new columns of B and rows of L, or all of them.
fn basis(draft: &mut Draft<'_>, stats: &Statistics<f32>, all: bool) -> Result<(), Error> {
    draft.manifest.whole = stats.basis().is_whole();
    if all || draft.manifest.whole {
        draft.manifest.basis.clear();
    }
    let (width, rank) = (stats.basis().width(), stats.basis().rank());
    let mut first = draft.manifest.rank();
    if rank == first {
        return Ok(());
    }
    // Many small tasks produce many small parts, which cannot be mapped block by block: they are combined from time to
    // time.
    let small = draft.manifest.basis.iter().rev().take_while(|part| part.columns < SMALL_PART).count();
    if small >= SMALL_PARTS {
        draft.manifest.basis.truncate(draft.manifest.basis.len() - small);
        first = draft.manifest.rank();
    }
    let mut tensors = vec![Tensor::new("basis", rank - first, width, stats.basis().columns(first))];
    let rows = stats.basis().rows(first);
    tensors.extend(rows.as_ref().map(|rows| Tensor::new("lower", 1, rows.len(), [rows.as_slice()])));
    let file = draft.write("basis", tensors)?;
    draft.manifest.basis.push(BasisPart { file, columns: rank - first, lower: rows.is_some() });
    Ok(())
}

/// Writes the dirty columns of J and rows of N, or all of them. Where Q is the identity, N is J.
fn classes(draft: &mut Draft<'_>, model: &ExplicitModel, delta: &Delta) -> Result<(), Error> {
    let stats = model.statistics();
    let (width, rank, whole) = (stats.basis().width(), stats.basis().rank(), stats.basis().is_whole());
    let old: BTreeMap<_, _> = draft.manifest.classes.drain(..).map(|class| (class.label.clone(), class)).collect();
    let labels = model.classes().labels();
    let every = is_scattered(old.values().filter_map(|class| class.places.as_ref()), delta.cross.len(), labels.len());
    // A renamed class is new to the manifest, and is written again.
    let fresh = |class: &usize| every || !old.contains_key(&labels[*class]);
    let all = 0..labels.len();
    let sums: Vec<usize> = all.clone().filter(|class| !whole && (delta.sums.contains(class) || fresh(class))).collect();
    let cross: Vec<usize> = all.clone().filter(|class| delta.cross.contains(class) || fresh(class)).collect();
    let rows: Vec<Vec<f64>> = cross.iter().map(|&class| stats.cross().row(class).iter().copied().collect()).collect();
    let file = draft.name("classes");
    if !(sums.is_empty() && cross.is_empty()) {
        let mut tensors = vec![Tensor::new("cross", cross.len(), rank, rows.iter().map(Vec::as_slice))];
        if !whole {
            let columns = sums.iter().filter_map(|&class| stats.label_sum(class));
            tensors.push(Tensor::new("sums", sums.len(), width, columns));
        }
        draft.write("classes", tensors)?;
    }
    let place = |list: &[usize], class: usize, columns: usize| {
        let row = list.iter().position(|other| *other == class)?;
        Some(Place { file: file.clone(), row, shape: [list.len(), columns] })
    };
    for (class, label) in labels.iter().enumerate() {
        let before = old.get(label).and_then(|entry| entry.places.as_ref());
        let sums = place(&sums, class, width).or_else(|| before.and_then(|places| places.sums.clone()));
        let cross = place(&cross, class, rank).or_else(|| before.map(|places| places.cross.clone()));
        let places = cross.map(|cross| Places { sums: sums.filter(|_| !whole), cross });
        let (count, mass) = (stats.counts()[class], draft.manifest.mass.map(|_| stats.masses().classes[class]));
        draft.manifest.classes.push(ClassEntry { label: label.clone(), count, mass, places });
    }
    Ok(())
}

/// Returns whether J and N should be written again: they are spread over many files, or these will hold more superseded rows
/// than others once `new` rows have been written.
fn is_scattered<'a>(places: impl Iterator<Item = &'a Places>, new: usize, classes: usize) -> bool {
    let mut rows = BTreeMap::new();
    for place in places.flat_map(Places::all) {
        rows.insert(&*place.file, place.shape[0]);
    }
    rows.len() > CLASS_FILES || rows.values().sum::<usize>() + new > 2 * classes
}

/// Returns whether increments of S with this many numbers are too many to be kept beside it. `whole` is whether Q is the
/// identity.
pub fn outgrow(steps: usize, rank: usize, whole: bool) -> bool {
    let numbers = rank * (rank + 1) / 2;
    steps > if whole { numbers / GRAMS_PER_STEPS } else { numbers * STEPS_PER_GRAM }
}

/// Writes the increments of S, or S itself.
fn gram(draft: &mut Draft<'_>, model: &mut ExplicitModel, delta: &Delta) -> Result<(), Error> {
    let (rank, whole) = (model.statistics().basis().rank(), model.statistics().basis().is_whole());
    let before = draft.manifest.gram.iter().map(|step| match step {
        GramStep::Whole { .. } | GramStep::Grid { .. } => 0,
        GramStep::Grow { rows, columns, .. } => rows * columns,
    });
    if delta.gram || outgrow(before.sum::<usize>() + delta.factor_len(), rank, whole) {
        draft.manifest.gram = vec![whole_gram(draft, model)?];
        return Ok(());
    }
    if delta.factors.is_empty() {
        return Ok(());
    }
    let shape = |factor: &Factor| (factor.matrix().nrows(), factor.matrix().ncols());
    let singles: Vec<Option<Vec<f32>>> = delta.factors.iter().map(Factor::single).collect();
    let mut tensors = Vec::new();
    for (index, (factor, single)) in delta.factors.iter().zip(&singles).enumerate() {
        let ((rows, columns), name) = (shape(factor), format!("factor.{index}"));
        tensors.push(match single {
            Some(single) => Tensor::new(&name, columns, rows, [single.as_slice()]),
            None => Tensor::new(&name, columns, rows, [factor.data()]),
        });
    }
    let file = draft.write("factors", tensors)?;
    for (index, factor) in delta.factors.iter().enumerate() {
        let ((rows, columns), single) = (shape(factor), factor.is_single());
        draft.manifest.gram.push(GramStep::Grow { file: file.clone(), index, rows, columns, single });
    }
    Ok(())
}

/// Writes S itself: in fixed point, or else its upper triangle.
fn whole_gram(draft: &mut Draft<'_>, model: &mut ExplicitModel) -> Result<GramStep, Error> {
    let rank = model.statistics().basis().rank();
    if let Some(Grid { diagonal, numbers }) = model.fixed_gram() {
        let diagonal = Tensor::new("diagonal", 1, rank, [diagonal.as_slice()]);
        let numbers = Tensor::new("gram", 1, numbers.len(), [numbers.as_slice()]);
        return Ok(GramStep::Grid { file: draft.write("gram", vec![diagonal, numbers])?, rank });
    }
    let upper = model.packed_gram();
    let file = draft.write("gram", vec![Tensor::new("gram", 1, upper.len(), [upper.as_slice()])])?;
    Ok(GramStep::Whole { file, rank })
}

/// Lists the referenced files, keeps the old manifest if versions are kept, and replaces it.
fn finish(draft: &mut Draft<'_>) -> Result<(), Error> {
    let needed: BTreeSet<String> = draft.manifest.needs().into_iter().map(str::to_owned).collect();
    draft.manifest.files.retain(|name, _| needed.contains(name));
    draft.manifest.software = env!("CARGO_PKG_VERSION").to_owned();
    // The new manifest is read back as every reader will read it.
    let bytes = draft.manifest.to_bytes()?;
    load::check(&Files::open(draft.folder, &draft.manifest)?, &draft.manifest)?;
    let current = draft.folder.join(MANIFEST);
    // An unreadable manifest is being replaced by an earlier one, and is not kept.
    if draft.manifest.keep > 0 && Manifest::read(&current).is_ok() {
        let old = std::fs::read(&current).map_err(Error::read(&current))?;
        let path = folder::kept_manifest(draft.folder, draft.manifest.version - 1);
        draft.new.push(path.clone());
        segment::write_bytes(draft.disk, &path, [old.as_slice()])?;
    }
    let outcome = replace(draft.disk, draft.folder, &bytes);
    if matches!(outcome, Ok(()) | Err(Error::NotDurable { .. })) {
        // From here on the new version is current: its files must not be removed.
        draft.new.clear();
    }
    outcome?;
    // Files that cannot be removed now are removed by the next writer.
    let _ = collect(draft.disk, draft.folder, &draft.manifest);
    Ok(())
}

/// Writes the first manifest of an empty model.
pub fn begin(disk: &dyn Disk, folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    replace(disk, folder, &manifest.to_bytes()?)
}

/// Replaces the manifest atomically. The files that it refers to are already synced.
fn replace(disk: &dyn Disk, folder: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (next, current) = (folder::next_manifest(folder), folder.join(MANIFEST));
    let failed = |source| Error::Write { path: current.clone(), source };
    let written = segment::write_bytes(disk, &next, [bytes])
        .and_then(|_| disk.sync_folder(folder).map_err(failed))
        .and_then(|()| disk.rename(&next, &current).map_err(failed));
    if let Err(error) = written {
        let _ = disk.remove(&next);
        return Err(error);
    }
    // The model has changed, whether or not the change is durable.
    disk.sync_folder(folder).map_err(|source| Error::NotDurable { path: folder.to_owned(), source })
}

/// Removes versions that are not kept, and files that no version refers to.
///
/// Versions with the same contents count once, and the contents of the current version do not count: a rollback removes
/// nothing that a further rollback needs. A change after a rollback discards the versions that were rolled back.
pub fn collect(disk: &dyn Disk, folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let mut old: Vec<(u64, PathBuf, Result<Manifest, Error>)> = Vec::new();
    for (version, path) in folder::history(folder)? {
        // A manifest of this version or a later one was left by an interrupted commit.
        if version >= manifest.version {
            remove_if_there(disk, &path).map_err(Error::write(&path))?;
            continue;
        }
        let read = Manifest::read_kept(&path, version);
        old.push((read.as_ref().map_or(version, Manifest::state), path, read));
    }
    let (current, newest) = (manifest.state(), old.first().map_or(0, |(state, ..)| *state));
    let limit = if manifest.restored.is_some() { u64::MAX } else { newest };
    // The latest contents first; of versions with the same contents, one that can be read.
    old.sort_by_key(|(state, _, read)| (Reverse(*state), read.is_err()));
    let mut needed: BTreeSet<String> = manifest.files.keys().cloned().collect();
    let (mut kept, mut last, mut unreadable) = (0, None, None);
    for (state, path, read) in old {
        if kept == manifest.keep || state > limit || state == current || last == Some(state) {
            // Files are removed after the manifest that refers to them.
            remove_if_there(disk, &path).map_err(Error::write(&path))?;
            continue;
        }
        (kept, last) = (kept + 1, Some(state));
        match read {
            Ok(read) => needed.extend(read.files.into_keys()),
            Err(error) => unreadable = Some(error),
        }
    }
    // If a manifest cannot be read, its files are unknown, and none is removed; verify reports the problem.
    unreadable.map_or(Ok(()), Err)?;
    // An interrupted commit may have left files of the next version.
    folder::sweep(disk, folder, manifest.version + 1, |name| needed.contains(name))
}
