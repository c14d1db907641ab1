//! Conversion of samples and labels from Python.

use loranpac::{Features, Label};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;

/// A label from Python: a whole number or a text.
pub struct PyLabel(pub Label);

impl<'a, 'py> FromPyObject<'a, 'py> for PyLabel {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = value.extract::<i64>() {
            return Ok(PyLabel(Label::Integer(number)));
        }
        let text: String = value.extract().map_err(|_| PyTypeError::new_err("a label is a whole number or a text"))?;
        Ok(PyLabel(Label::Text(text)))
    }
}

impl<'py> IntoPyObject<'py> for PyLabel {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0 {
            Label::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
            Label::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
        }
    }
}

/// The labels of samples from Python: indices into a list of names, and the list.
pub type Coded<'py> = (PyReadonlyArray1<'py, i64>, Vec<PyLabel>);

/// The labels of samples.
pub fn labels_of((codes, names): &Coded<'_>) -> PyResult<Vec<Label>> {
    let name = |code: &i64| usize::try_from(*code).ok().and_then(|code| names.get(code)).map(|name| name.0.clone());
    let labels = codes.as_slice()?.iter().map(name).collect::<Option<Vec<Label>>>();
    labels.ok_or_else(|| PyValueError::new_err("y: an index of a label is out of range"))
}

/// The weights of samples from Python.
pub type Weights<'py> = PyReadonlyArray1<'py, f64>;

/// The samples of an array with their weights, if they have any; without a copy.
pub fn weighted_features<'a>(
    x: &'a PyReadonlyArray2<'_, f32>,
    weights: Option<&'a Weights<'_>>,
) -> PyResult<Features<'a>> {
    match weights {
        Some(weights) => features(x)?.weighted(weights.as_slice()?).map_err(errors::engine),
        None => features(x),
    }
}

/// The samples of an array, without a copy.
pub fn features<'a>(x: &'a PyReadonlyArray2<'_, f32>) -> PyResult<Features<'a>> {
    if !x.is_c_contiguous() {
        return Err(PyValueError::new_err("X must be in C order"));
    }
    Features::new(x.as_slice()?, x.shape()[1]).map_err(errors::engine)
}
