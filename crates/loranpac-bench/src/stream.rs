//! Streams: which samples arrive in which task.

use std::collections::{BTreeSet, HashMap};

use loranpac::StreamSizes;

use crate::error::Error;
use crate::order::numpy_permutation;
use crate::spec::{Order, Scenario, Spec};
use loranpac_data::dataset::Dataset;

/// One task: indices into the data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Training samples.
    pub train: Vec<usize>,
    /// Test samples.
    pub test: Vec<usize>,
}

/// The order of classes for a seed, as NumPy's legacy generator gives it.
pub fn class_order(dataset: &Dataset, seed: u32) -> Vec<usize> {
    numpy_permutation(seed, dataset.classes.len())
}

/// The order of classes of a run.
pub fn order_of(dataset: &Dataset, spec: &Spec) -> Result<Vec<usize>, Error> {
    match &spec.order {
        None => Ok(class_order(dataset, spec.seed)),
        Some(Order::Sorted) => Ok((0..dataset.classes.len()).collect()),
        Some(Order::Labels(labels)) => order_by_labels(dataset, labels),
    }
}

/// The order in which labels are listed: every class once.
pub fn order_by_labels(dataset: &Dataset, labels: &[String]) -> Result<Vec<usize>, Error> {
    let place: HashMap<String, usize> =
        dataset.classes.iter().enumerate().map(|(class, label)| (label.to_string(), class)).collect();
    let mut order = Vec::with_capacity(labels.len());
    for (at, label) in labels.iter().enumerate() {
        let refuse = |what: &str| Err(Error::ClassOrder(format!("class order, entry {}: {label:?} {what}", at + 1)));
        match place.get(label) {
            None => return refuse("is not a class of the data"),
            Some(class) if order.contains(class) => return refuse("is named twice"),
            Some(&class) => order.push(class),
        }
    }
    match dataset.classes.iter().enumerate().find(|(class, _)| !order.contains(class)) {
        None => Ok(order),
        Some((_, label)) => Err(Error::ClassOrder(format!("the class order does not name class {label}"))),
    }
}

/// The training samples of a run, if they are not all: the first ones of each class, up to the limit per class and the limits of
/// a long tail.
pub fn training_rows(dataset: &Dataset, spec: &Spec) -> Result<Option<Vec<usize>>, Error> {
    if (spec.per_class, spec.long_tail) == (None, None) {
        return Ok(None);
    }
    let most = spec.per_class.unwrap_or(usize::MAX);
    let mut limits = vec![most; dataset.classes.len()];
    if let Some(ratio) = spec.long_tail {
        let order = order_of(dataset, spec)?;
        let largest = dataset.class_sizes().into_iter().map(|size| size.min(most)).max().unwrap_or(0);
        for (place, &class) in order.iter().enumerate() {
            let share = ratio.powf(-(place as f64) / (order.len() - 1).max(1) as f64);
            // Rounded down, as the literature does, but not by an error of rounding.
            limits[class] = ((largest as f64 * share + 1e-9) as usize).max(1);
        }
    }
    Ok(Some(dataset.first_of_classes(&limits)))
}

/// How much there is to learn in a stream.
pub fn sizes(dataset: &Dataset, tasks: &[Task]) -> StreamSizes {
    StreamSizes {
        samples: dataset.train.len(),
        largest_task: tasks.iter().map(|task| task.train.len()).max().unwrap_or(0),
        classes: dataset.classes.len(),
    }
}

/// The tasks of a run, in their order.
pub fn of(dataset: &Dataset, spec: &Spec) -> Result<Vec<Task>, Error> {
    tasks(dataset, spec.scenario, &order_of(dataset, spec)?)
}

/// Divides a data set into tasks. `order` lists all classes.
pub fn tasks(dataset: &Dataset, scenario: Scenario, order: &[usize]) -> Result<Vec<Task>, Error> {
    let place_of = |groups: Vec<Vec<usize>>, count: usize| {
        let mut place = vec![usize::MAX; count];
        groups.iter().enumerate().for_each(|(task, group)| group.iter().for_each(|&class| place[class] = task));
        (groups.len(), place)
    };
    let (count, train, test) = match scenario {
        Scenario::Class { increment: 0, .. } => {
            return Err(loranpac::Error::setting("inc", 0, "each task needs at least 1 class").into());
        }
        Scenario::Class { base, increment } => {
            let first = if base == 0 { increment } else { base }.min(order.len());
            let (head, tail) = order.split_at(first);
            let groups: Vec<Vec<usize>> =
                std::iter::once(head).chain(tail.chunks(increment)).map(<[usize]>::to_vec).collect();
            let (count, place) = place_of(groups, dataset.classes.len());
            let of = |y: &[usize]| y.iter().map(|&class| place[class]).collect::<Vec<_>>();
            (count, of(&dataset.train.y), of(&dataset.test.y))
        }
        Scenario::Joint => (1, vec![0; dataset.train.len()], vec![0; dataset.test.len()]),
        Scenario::Domain => {
            let (Some(train), Some(test)) = (&dataset.train.domain, &dataset.test.domain) else {
                let missing = "a domain-incremental stream needs arrays domain_train and domain_test in the file";
                return Err(Error::Experiment(missing.to_owned()));
            };
            let mut domains: Vec<_> = train.iter().chain(test).collect();
            domains.sort_unstable();
            domains.dedup();
            let of = |labels: &[loranpac::Label]| {
                labels.iter().map(|label| domains.partition_point(|d| *d < label)).collect::<Vec<_>>()
            };
            let (train, mut test) = (of(train), of(test));
            // Domains that are only tested (CORe50 has some) are tested from the first task on.
            let learned: BTreeSet<usize> = train.iter().copied().collect();
            let first = learned.first().copied().unwrap_or(0);
            test.iter_mut().filter(|domain| !learned.contains(domain)).for_each(|domain| *domain = first);
            (domains.len(), train, test)
        }
    };
    let mut tasks = vec![Task { train: Vec::new(), test: Vec::new() }; count];
    train.into_iter().enumerate().for_each(|(row, task)| tasks[task].train.push(row));
    test.into_iter().enumerate().for_each(|(row, task)| tasks[task].test.push(row));
    tasks.retain(|task| !task.train.is_empty());
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loranpac_data::embedded;

    #[test]
    fn a_long_tail_keeps_the_first_samples_of_each_class_in_the_order_of_the_stream() {
        let digits = embedded::digits();
        for (per_class, ratio) in [(None, 10.0), (Some(50), 100.0), (None, 1.0)] {
            let spec = Spec { long_tail: Some(ratio), per_class, ..Spec::new("loranpac") };
            let rows = training_rows(&digits, &spec).unwrap().unwrap();
            let available = digits.class_sizes();
            let largest = available.iter().map(|size| *size.min(&per_class.unwrap_or(usize::MAX))).max().unwrap();
            for (place, class) in order_of(&digits, &spec).unwrap().into_iter().enumerate() {
                let own: Vec<usize> = (0..digits.train.len()).filter(|row| digits.train.y[*row] == class).collect();
                let kept: Vec<usize> = rows.iter().copied().filter(|row| digits.train.y[*row] == class).collect();
                let exact = largest as f64 / ratio.powf(place as f64 / 9.0);
                let expected = ((exact + 1e-6).floor() as usize).max(1).min(own.len());
                assert_eq!(kept, own[..expected], "class {class} at place {place}");
            }
        }
        assert_eq!(training_rows(&digits, &Spec::new("loranpac")).unwrap(), None);
    }
}
