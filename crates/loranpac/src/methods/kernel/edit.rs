//! Edits of a model of infinite width. Samples are kept, so that edits are exact.

use std::collections::HashMap;

use faer::Mat;

use super::KernelModel;
use crate::config::Config;
use crate::delta::Delta;
use crate::error::Error;
use crate::features::Features;
use crate::label::Label;
use crate::learner::check_weighted_task;
use crate::lift::FeatureSpace;
use crate::methods::Edited;
use crate::methods::lifted::indices;

impl KernelModel {
    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the feature space.
    pub fn space(&self) -> FeatureSpace {
        FeatureSpace::Kernel(self.space)
    }

    /// Returns the number of samples of each class.
    pub fn counts(&self) -> &[usize] {
        &self.state.counts
    }

    /// Returns whether the classifier has been formed since the model last changed.
    pub fn is_prepared(&self) -> bool {
        self.classifier.is_some()
    }

    /// Merges other models, as if everything had been learned here. Models for other features are refused, and then
    /// nothing changes.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a mut KernelModel>) -> Result<Delta, Error> {
        let others: Vec<&mut KernelModel> = others.into_iter().collect();
        others.iter().try_for_each(|other| self.space().require_same(&other.space()))?;
        self.classifier = None;
        for other in others {
            let places = indices(&mut self.table, other.table.labels());
            self.join(&other.state, &places);
            self.evict();
        }
        Ok(Delta::everything(self.table.len()))
    }

    /// Removes a class and its samples, as if they had never been learned. The contribution of evicted samples stays.
    pub fn forget(&mut self, label: &Label) -> Result<Delta, Error> {
        let class = self.table.removable(label)?;
        let stay: Vec<bool> = self.state.classes.iter().map(|other| *other != class).collect();
        let own = stay.iter().filter(|stays| !**stays).count();
        if own == stay.len() {
            return Err(Error::NothingLeft { samples: own });
        }
        let kept: f64 = (0..stay.len()).filter(|i| !stay[*i]).map(|i| self.state.weights().map_or(1.0, |w| w[i])).sum();
        self.remove(&stay)?;
        if let Some(weighted) = &mut self.state.weighted {
            weighted.masses.subtract(class, kept);
        }
        if let Some(evicted) = &mut self.state.evicted {
            evicted.unlabelled += self.state.counts[class] - own;
        }
        self.drop_class(class);
        Ok(Delta::everything(self.table.len()))
    }

    /// Gives a class another name.
    pub fn rename(&mut self, from: &Label, to: Label) -> Result<Delta, Error> {
        let class = self.table.renamed(from, to)?;
        self.classifier = self.classifier.take().map(|classifier| classifier.with_labels(&self.table));
        Ok(Delta::of_classes([class], self.table.len()))
    }

    /// Moves samples that were learned under `from` to other labels.
    pub fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label]) -> Result<Edited, Error> {
        check_weighted_task(x, from, self.space.dim())?;
        check_weighted_task(x, to, self.space.dim())?;
        if let Some(present) = x.present() {
            return self.relabel(present.features(), &present.of(from), &present.of(to));
        }
        let places = self.find(x, from)?;
        let new = indices(&mut self.table, to);
        self.state.counts.resize(self.table.len(), 0);
        if let Some(weighted) = &mut self.state.weighted {
            weighted.masses.classes.resize(self.table.len(), 0.0);
            for (place, class) in places.iter().zip(&new) {
                weighted.masses.subtract(self.state.classes[*place], weighted.kept[*place]);
                weighted.masses.add(*class, weighted.kept[*place]);
            }
        }
        for (place, class) in places.into_iter().zip(new) {
            self.state.counts[self.state.classes[place]] -= 1;
            self.state.counts[class] += 1;
            self.state.classes[place] = class;
        }
        self.classifier = None;
        self.remove_empty_classes();
        Ok(Edited { unchecked: 0, delta: Delta::everything(self.table.len()) })
    }

    /// Removes samples that were learned under these labels, as if they had never been learned.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<Edited, Error> {
        check_weighted_task(x, labels, self.space.dim())?;
        if let Some(present) = x.present() {
            return self.unlearn(present.features(), &present.of(labels));
        }
        if x.len() >= self.len() {
            return Err(Error::NothingLeft { samples: x.len() });
        }
        let mut stay = vec![true; self.len()];
        let places = self.find(x, labels)?;
        places.iter().for_each(|place| stay[*place] = false);
        let classes: Vec<usize> = places.iter().map(|place| self.state.classes[*place]).collect();
        let weights: Vec<f64> = places.iter().map(|place| self.state.weights().map_or(1.0, |w| w[*place])).collect();
        self.remove(&stay)?;
        if let Some(weighted) = &mut self.state.weighted {
            classes.iter().zip(weights).for_each(|(class, weight)| weighted.masses.subtract(*class, weight));
        }
        classes.iter().for_each(|class| self.state.counts[*class] -= 1);
        self.remove_empty_classes();
        Ok(Edited { unchecked: 0, delta: Delta::everything(self.table.len()) })
    }

    /// Returns the indices of samples that were learned under these labels, with the same weights.
    fn find(&self, x: Features<'_>, labels: &[Label]) -> Result<Vec<usize>, Error> {
        let dim = self.space.dim();
        let rounded = self.rounded(x);
        let bits = |row: &[f32]| row.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
        let weight = |weights: Option<&[f64]>, i: usize| weights.map_or(1.0, |weights| weights[i]).to_bits();
        let mut places: HashMap<(Vec<u32>, usize, u64), Vec<usize>> = HashMap::new();
        for (i, row) in self.state.samples.chunks_exact(dim).enumerate().rev() {
            let key = (bits(row), self.state.classes[i], weight(self.state.weights(), i));
            places.entry(key).or_default().push(i);
        }
        let find = |(row, (sample, label)): (usize, (&[f32], &Label))| {
            let class = self.table.find(label)?;
            let place = places.get_mut(&(bits(sample), class, weight(x.weights(), row))).and_then(Vec::pop);
            place.ok_or(match &self.state.evicted {
                Some(evicted) => Error::NotExact { cuts: evicted.evictions },
                None => Error::NeverLearned { row },
            })
        };
        rounded.chunks_exact(dim).zip(labels).enumerate().map(find).collect()
    }

    fn remove_empty_classes(&mut self) {
        while let Some(class) = self.state.counts.iter().position(|count| *count == 0) {
            self.drop_class(class);
        }
    }

    /// Removes a class that has no samples left.
    fn drop_class(&mut self, class: usize) {
        self.table.remove(class);
        self.state.counts.remove(class);
        if let Some(weighted) = &mut self.state.weighted {
            weighted.masses.classes.remove(class);
        }
        self.state.classes.iter_mut().filter(|other| **other > class).for_each(|other| *other -= 1);
        if let Some(evicted) = &mut self.state.evicted
            && class < evicted.sums.nrows()
        {
            evicted.sums = Mat::from_fn(evicted.sums.nrows() - 1, evicted.sums.ncols(), |c, j| {
                evicted.sums[(if c < class { c } else { c + 1 }, j)]
            });
        }
        self.classifier = None;
    }
}
