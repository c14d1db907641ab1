//! Tables: mean and spread over the seeds, with the paper's numbers.

use serde::Deserialize;

use super::axis::{Axis, width_of};
use super::group::{check_groups, known, with_data};
use super::paper;
use crate::measure::{Kind, Metric};
use crate::metrics::{mean, spread, with_spread};
use crate::record::Record;
use crate::spec::Spec;

/// A table of a recipe: which runs in which row and column, and what is shown of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// What tells rows apart.
    pub rows: Vec<Axis>,
    /// What tells columns apart.
    pub columns: Vec<Axis>,
    /// What is in the cells.
    pub value: Metric,
    /// The paper's table to show beside it.
    #[serde(default)]
    pub paper: Option<String>,
}

/// A cell: mean and spread over the seeds, and what the paper has there.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Mean over the runs; none where only the paper has a number.
    pub mean: Option<f64>,
    /// Standard deviation over two runs or more.
    pub spread: Option<f64>,
    /// Runs.
    pub runs: usize,
    /// The paper's number, where data set, encoder and setting are the same.
    pub paper: Option<f64>,
    /// Its spread.
    pub paper_spread: Option<f64>,
}

/// A table, filled in.
#[derive(Debug, Clone)]
pub struct Filled {
    /// Its title.
    pub title: String,
    /// What is in the cells.
    pub value: Metric,
    /// Names of the columns of row labels.
    pub row_names: Vec<String>,
    /// Heads of the other columns.
    pub columns: Vec<String>,
    /// Row labels and cells.
    pub rows: Vec<(Vec<String>, Vec<Option<Cell>>)>,
}

/// The labels of a row, and its runs with their columns.
type Members<'a> = (Vec<String>, Vec<(usize, &'a Record)>);

impl Table {
    /// Whether it can be made from these runs.
    pub fn check(&self, specs: &[Spec]) -> Result<(), String> {
        let title = &self.title;
        if let Some(name) = &self.paper {
            paper::table(name).ok_or_else(|| format!("{title}: the paper has no table {name}"))?;
        }
        if self.value.kind() == Kind::Spectrum {
            return Err(format!("{title}: {} are many numbers, and a cell holds one", self.value.label()));
        }
        let axes: Vec<Axis> = self.rows.iter().chain(&self.columns).cloned().collect();
        axes.iter().try_for_each(|axis| known(axis, specs, title))?;
        check_groups(&axes, specs.iter(), title)
    }

    /// Fills it in.
    pub fn fill(&self, records: &[Record]) -> Filled {
        let paper = self.paper.as_deref().and_then(paper::table).unwrap_or_default();
        let row_axes = with_data(&self.rows, &self.columns);
        let places = |axes: &[Axis], record: &Record| axes.iter().map(|axis| axis.place(record).text).collect();
        let mut columns: Vec<Vec<String>> = Vec::new();
        let mut heads: Vec<&Record> = Vec::new();
        let mut rows: Vec<Members<'_>> = Vec::new();
        for record in records.iter().filter(|record| self.value.of(&record.run).is_some()) {
            let (row, column) = (places(&row_axes, record), places(&self.columns, record));
            let at = find_or_push(&mut columns, column);
            if at == heads.len() {
                heads.push(record);
            }
            match rows.iter_mut().find(|(labels, _)| *labels == row) {
                Some((_, members)) => members.push((at, record)),
                None => rows.push((row, vec![(at, record)])),
            }
        }
        let cell = |records: Vec<&Record>| {
            let first = records.first()?;
            let numbers: Vec<f64> = records.iter().filter_map(|record| self.value.of(&record.run)).collect();
            let theirs = paper.iter().find(|entry| entry.matches(first, self.value));
            Some(Cell {
                mean: mean(&numbers),
                spread: spread(&numbers),
                runs: numbers.len(),
                paper: theirs.map(|entry| entry.value),
                paper_spread: theirs.and_then(|entry| entry.spread),
            })
        };
        let fill = |(labels, members): Members<'_>| {
            let of =
                |column: usize| members.iter().filter(|(at, _)| *at == column).map(|(_, record)| *record).collect();
            (labels, (0..columns.len()).map(|column| cell(of(column))).collect())
        };
        let widths: Vec<String> = rows.iter().map(|(_, members)| widths(members)).collect();
        let mut rows: Vec<_> = rows.into_iter().map(fill).collect();
        rows.extend(self.others(&paper, &heads, records));
        let mut row_names: Vec<String> = row_axes.iter().map(|axis| axis.name().to_owned()).collect();
        let named = self.rows.iter().chain(&self.columns).any(|axis| *axis == Axis::Width);
        if !named && widths.iter().any(|width| *width != widths[0]) {
            row_names.push("width E".to_owned());
            let all = widths.into_iter().chain(std::iter::repeat(String::new()));
            rows.iter_mut().zip(all).for_each(|((labels, _), width)| labels.push(width));
        }
        Filled {
            title: self.title.clone(),
            value: self.value,
            row_names,
            columns: columns.iter().map(|labels| labels.join(" ")).collect(),
            rows,
        }
    }
}

impl Table {
    /// Rows of methods that only the paper has, in the columns of the runs that stand at their heads.
    fn others(
        &self,
        paper: &[paper::Entry],
        heads: &[&Record],
        records: &[Record],
    ) -> Vec<(Vec<String>, Vec<Option<Cell>>)> {
        let by_method = self.rows == [Axis::Method] || self.rows == [Axis::Method, Axis::Adapt];
        if !by_method || self.columns.contains(&Axis::Method) {
            return Vec::new();
        }
        let mut names: Vec<String> = Vec::new();
        let ours = |entry: &paper::Entry| records.iter().any(|record| entry.matches(record, self.value));
        let have: Vec<String> = paper.iter().filter(|entry| ours(entry)).map(paper::Entry::title).collect();
        for entry in paper.iter().filter(|entry| entry.foreign() && !have.contains(&entry.title())) {
            find_or_push(&mut names, entry.title());
        }
        let cell = |name: &str, head: &Record| {
            let fits = |entry: &&paper::Entry| {
                entry.foreign() && entry.title() == name && entry.same_stream(head) && entry.metric == self.value
            };
            let entry = paper.iter().find(fits)?;
            Some(Cell { mean: None, spread: None, runs: 0, paper: Some(entry.value), paper_spread: entry.spread })
        };
        let row = |name: String| {
            let cells: Vec<Option<Cell>> = heads.iter().map(|head| cell(&name, head)).collect();
            cells.iter().any(Option::is_some).then(|| (vec![format!("{name} (paper only)")], cells))
        };
        names.into_iter().filter_map(row).collect()
    }
}

impl Cell {
    /// Ours minus the paper's.
    pub fn difference(&self) -> Option<f64> {
        Some(self.mean? - self.paper?)
    }

    /// Mean and spread as text.
    pub fn text(&self, value: Metric) -> String {
        with_spread(self.mean, self.spread, value.digits())
    }

    /// Ours, and in brackets the paper's with the difference, where there are any.
    pub fn beside_the_paper(&self, value: Metric) -> String {
        match (self.paper, self.difference()) {
            (None, _) => self.text(value),
            (Some(_), None) => format!("(paper {})", self.paper_text()),
            (Some(_), Some(d)) => format!("{} (paper {}, {d:+.2})", self.text(value), self.paper_text()),
        }
    }

    /// The paper's number as text.
    pub fn paper_text(&self) -> String {
        with_spread(self.paper, self.paper_spread, 2)
    }
}

/// The widths of the runs of a row, each once.
fn widths(members: &[(usize, &Record)]) -> String {
    let mut all: Vec<String> = Vec::new();
    for (_, record) in members {
        find_or_push(&mut all, width_of(&record.run.config.spec));
    }
    all.join(", ")
}

fn find_or_push<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}
