//! Conversion of the values and levels of Parquet's columns to features and labels.

use half::f16;
use loranpac::Label;
use loranpac::internals::count;
use parquet::basic::{LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

use super::super::text;
use crate::fence::fenced;

/// Refuses a column that is not one list of numbers per row.
pub(super) fn check_features(about: &ColumnDescriptor) -> Result<(), String> {
    if about.max_rep_level() != 1 {
        return Err("it is not a list of numbers; features need a column of lists".to_owned());
    }
    match about.physical_type() {
        Type::FLOAT | Type::DOUBLE | Type::INT32 | Type::INT64 => Ok(()),
        Type::FIXED_LEN_BYTE_ARRAY if is_half(about) => Ok(()),
        other => Err(format!("it has lists of {other}; features need float16, float32, float64 or integers")),
    }
}

/// Refuses a column that does not have one label, split or domain per row.
pub(super) fn check_label(about: &ColumnDescriptor) -> Result<(), String> {
    if about.max_rep_level() != 0 {
        return Err("it has lists; labels need one value per row".to_owned());
    }
    match about.physical_type() {
        Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => {
            Err("its type is unsupported; integers and strings can be labels".to_owned())
        }
        _ => Ok(()),
    }
}

/// Appends rows of features: (first row, number of rows, features per row).
pub(super) fn read_features(
    reader: &mut ColumnReader,
    about: &ColumnDescriptor,
    (first, rows, dim): (usize, usize, usize),
    out: &mut Vec<f32>,
) -> Result<(), String> {
    let mut levels = Levels::default();
    match reader {
        ColumnReader::FloatColumnReader(r) => levels.read(r, rows, |values| out.extend_from_slice(values)),
        ColumnReader::DoubleColumnReader(r) => {
            levels.read(r, rows, |values| out.extend(values.iter().map(|&v| v as f32)))
        }
        ColumnReader::Int32ColumnReader(r) => {
            levels.read(r, rows, |values| out.extend(values.iter().map(|&v| v as f32)))
        }
        ColumnReader::Int64ColumnReader(r) => {
            levels.read(r, rows, |values| out.extend(values.iter().map(|&v| v as f32)))
        }
        ColumnReader::FixedLenByteArrayColumnReader(r) => levels.read(r, rows, |values| {
            // The crate has checked that each value has two bytes.
            out.extend(values.iter().map(|v| match *v.data() {
                [low, high] => f16::from_le_bytes([low, high]).to_f32(),
                _ => f32::NAN,
            }))
        }),
        _ => Err("its type is unsupported for features".to_owned()),
    }?;
    // A row begins where nothing is repeated.
    let begins = |at: usize| levels.repetition[at] == 0;
    let values = levels.repetition.len();
    let uneven = |row: usize| format!("row {row}: not {}, as the rows before it have", count(dim, "feature"));
    if let Some(at) = (0..values).find(|&at| levels.definition.get(at).is_some_and(|&d| d < about.max_def_level())) {
        return Err(format!("row {}: a feature, or the whole list, is missing (null)", first + at / dim));
    }
    if let Some(at) = (0..values).find(|&at| begins(at) != (at % dim == 0)) {
        return Err(uneven(first + at.saturating_sub(1) / dim));
    }
    if Some(values) != rows.checked_mul(dim) {
        return Err(uneven(first + values / dim));
    }
    Ok(())
}

/// Appends labels: (first row, number of rows).
pub(super) fn read_labels(
    reader: &mut ColumnReader,
    about: &ColumnDescriptor,
    (first, rows): (usize, usize),
    out: &mut Vec<Label>,
) -> Result<(), String> {
    let mut levels = Levels::default();
    let unsigned = matches!(about.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed);
    let mut labels: Vec<Result<Label, String>> = Vec::new();
    match reader {
        ColumnReader::BoolColumnReader(r) => {
            levels.read(r, rows, |values| labels.extend(values.iter().map(|&v| Ok(text::truth(v)))))
        }
        ColumnReader::Int32ColumnReader(r) => levels.read(r, rows, |values| {
            let widen = |v: i32| if unsigned { i64::from(v as u32) } else { v.into() };
            labels.extend(values.iter().map(|&v| Ok(Label::Integer(widen(v)))))
        }),
        ColumnReader::Int64ColumnReader(r) => levels.read(r, rows, |values| {
            labels.extend(values.iter().map(|&v| match v {
                v if unsigned && v < 0 => Err(format!("{} does not fit into a signed integer of 64 bits", v as u64)),
                v => Ok(Label::Integer(v)),
            }))
        }),
        ColumnReader::FloatColumnReader(r) => {
            levels.read(r, rows, |values| labels.extend(values.iter().map(|&v| whole(v.into()))))
        }
        ColumnReader::DoubleColumnReader(r) => {
            levels.read(r, rows, |values| labels.extend(values.iter().map(|&v| whole(v))))
        }
        ColumnReader::ByteArrayColumnReader(r) => {
            levels.read(r, rows, |values| labels.extend(values.iter().map(|v| to_text(v.data()))))
        }
        _ => Err("its type is unsupported for labels".to_owned()),
    }?;
    if let Some(at) = levels.definition.iter().position(|&d| d < about.max_def_level()) {
        return Err(format!("row {}: the value is missing (null)", first + at));
    }
    if labels.len() != rows {
        return Err(format!("row {}: the column ends", first + labels.len()));
    }
    for (at, label) in labels.into_iter().enumerate() {
        out.push(label.map_err(|reason| format!("row {}: {reason}", first + at))?);
    }
    Ok(())
}

/// Appends weights: (first row, number of rows).
pub(super) fn read_weights(
    reader: &mut ColumnReader,
    about: &ColumnDescriptor,
    (first, rows): (usize, usize),
    out: &mut Vec<f64>,
) -> Result<(), String> {
    let (mut levels, before) = (Levels::default(), out.len());
    match reader {
        ColumnReader::FloatColumnReader(r) => {
            levels.read(r, rows, |values| out.extend(values.iter().map(|&v| f64::from(v))))
        }
        ColumnReader::DoubleColumnReader(r) => levels.read(r, rows, |values| out.extend_from_slice(values)),
        ColumnReader::Int32ColumnReader(r) => {
            levels.read(r, rows, |values| out.extend(values.iter().map(|&v| f64::from(v))))
        }
        ColumnReader::Int64ColumnReader(r) => {
            levels.read(r, rows, |values| out.extend(values.iter().map(|&v| v as f64)))
        }
        _ => Err("its type is unsupported for weights; float32, float64, int32 and int64 are supported".to_owned()),
    }?;
    if let Some(at) = levels.definition.iter().position(|&d| d < about.max_def_level()) {
        return Err(format!("row {}: the weight is missing (null)", first + at));
    }
    match out.len() - before == rows {
        true => Ok(()),
        false => Err(format!("row {}: the column ends", first + out.len() - before)),
    }
}

/// Where rows begin, and which values are null.
#[derive(Default)]
struct Levels {
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

impl Levels {
    /// Reads some rows and passes their values to `take`.
    fn read<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        take: impl FnOnce(&[T::T]),
    ) -> Result<(), String> {
        let mut values = Vec::new();
        let (definition, repetition) = (&mut self.definition, &mut self.repetition);
        decoded(|| reader.read_records(rows, Some(definition), Some(repetition), &mut values))?;
        take(&values);
        Ok(())
    }
}

/// Calls the decoder, which panics on some damaged pages.
pub(super) fn decoded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    fenced(call).map_err(|e| e.to_string())?.map_err(|e| e.to_string())
}

fn is_half(about: &ColumnDescriptor) -> bool {
    about.type_length() == 2 && matches!(about.logical_type_ref(), Some(LogicalType::Float16))
}

fn to_text(bytes: &[u8]) -> Result<Label, String> {
    if bytes.len() > text::LONGEST_LINE {
        return Err(format!("the value is longer than {} MiB", text::LONGEST_LINE >> 20));
    }
    std::str::from_utf8(bytes).map(Label::from).map_err(|_| "not valid UTF-8".to_owned())
}

fn whole(value: f64) -> Result<Label, String> {
    text::whole(value).ok_or_else(|| format!("the label {value} is not a whole number"))
}
