//! Feature maps in memory, which runs share.

use std::path::{Path, PathBuf};

use loranpac::internals::count;
use loranpac::lift::{self, LiftSpec};
use loranpac::{FeatureSpace, Width};
use loranpac_data::formats;

use crate::error::Error;
use crate::run::LiftFacts;
use crate::spec::Spec;

/// A projection from a file.
pub struct Given {
    path: PathBuf,
    /// Name of the lift that it is for.
    lift: String,
    rows: usize,
    dim: usize,
    /// P, in C order, until the lift is made.
    values: Vec<f32>,
}

impl Given {
    /// Reads the projection of a lift from a `.npy` file, one row per direction.
    pub fn open(path: &Path, lift: &str) -> Result<Given, Error> {
        let unreadable =
            |problem| loranpac_data::Error::Array { path: path.to_owned(), array: "projection".to_owned(), problem };
        let (values, rows, dim) = formats::read_npy(path)?.into_features().map_err(unreadable)?;
        Ok(Given { path: path.to_owned(), lift: lift.to_owned(), rows, dim, values })
    }
}

/// Feature maps, made when they are first needed and shared by runs that agree on them.
pub struct Maps {
    /// Whether projections stay in memory.
    keep: bool,
    given: Option<Given>,
    maps: Vec<(Key, FeatureSpace)>,
}

/// What a map depends on.
type Key = (String, usize, Width, u64, u64);

fn key(spec: &Spec, dim: usize) -> Key {
    (spec.lift.clone(), dim, spec.width, spec.lift_seed, spec.gamma.to_bits())
}

impl Default for Maps {
    fn default() -> Self {
        Maps::new(true, None)
    }
}

impl Maps {
    /// Maps by seed, and one from a file if it is given. Without `keep`, projections are drawn again for every batch.
    pub fn new(keep: bool, given: Option<Given>) -> Self {
        Maps { keep, given, maps: Vec::new() }
    }

    /// Drops all maps that none of these runs needs.
    pub(crate) fn keep_only<'a>(&mut self, runs: impl Iterator<Item = (&'a Spec, usize)>) {
        let wanted: Vec<Key> = runs.map(|(spec, dim)| key(spec, dim)).collect();
        self.maps.retain(|(key, _)| wanted.contains(key));
    }

    /// Gives a run the width of the projection from a file.
    pub(crate) fn adapt(&self, spec: &mut Spec, dim: usize) -> Result<(), Error> {
        let (Some(given), true) = (&self.given, spec.computed_width() != 0 || spec.is_open()) else { return Ok(()) };
        let (rows, columns) = (given.rows, given.dim);
        if given.lift == spec.lift && columns != dim {
            let (path, dim) = (given.path.display(), count(dim, "feature"));
            return Err(Error::Experiment(format!("{path} is {rows} x {columns}, but the data has {dim}")));
        }
        spec.width = Width::Finite(lift::find(&given.lift)?.projection.width(columns, rows));
        Ok(())
    }

    /// Bytes of the projection of a run.
    pub(crate) fn bytes(&self, spec: &Spec, dim: usize, width: Width) -> Result<usize, Error> {
        let rows = lift::find(&spec.lift)?.projection.count(dim, width.finite().unwrap_or(0));
        Ok(if self.keep { rows.saturating_mul(4 * dim) } else { 0 })
    }

    /// The map of a run on `dim` features.
    pub(crate) fn get(&mut self, spec: &Spec, dim: usize) -> Result<FeatureSpace, Error> {
        let wanted = key(spec, dim);
        if let Some((_, map)) = self.maps.iter().find(|(key, _)| *key == wanted) {
            return Ok(map.clone());
        }
        let given = self.given.as_mut().filter(|given| given.lift == spec.lift);
        let projection = given.map(|given| std::mem::take(&mut given.values));
        let map = match projection {
            Some(_) => lift::build(&spec.lift, LiftSpec { projection, ..spec.lift_spec(dim, self.keep) })?.into(),
            None => spec.space(dim, self.keep)?,
        };
        self.maps.push((wanted, map.clone()));
        Ok(map)
    }

    /// What is recorded about the lift of a run, if it has one.
    pub(crate) fn facts(&self, spec: &Spec, space: &FeatureSpace) -> Result<Option<LiftFacts>, Error> {
        if !spec.method()?.input.lifted() {
            return Ok(None);
        }
        let given = self.given.as_ref().is_some_and(|given| given.lift == spec.lift);
        let width = space.width().finite();
        let projects = width.is_some() && lift::find(&spec.lift)?.projection.is_drawn();
        let seed = (projects && !given).then_some(spec.lift_seed);
        Ok(Some(LiftFacts { name: space.name().to_owned(), width, seed }))
    }
}
