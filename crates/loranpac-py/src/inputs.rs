//! Raw inputs from Python: texts, paths, files and pixels.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use loranpac_data::text::escape;
use loranpac_encode::input::read_file;
use loranpac_encode::{Data, Error, Input, InputOptions, Limits, Modality, image};
use numpy::{PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use crate::errors;

/// The exception that ended the inputs.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// Takes the exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// The inputs of a Python iterator.
pub struct PyInputs {
    items: Py<PyIterator>,
    what: String,
    modality: Modality,
    place: usize,
    failure: Failure,
}

impl PyInputs {
    /// Inputs of a kind. `what` stands for them in messages; an exception is put into `failure`.
    pub fn new(items: Bound<'_, PyIterator>, what: String, modality: Modality, failure: Failure) -> PyInputs {
        PyInputs { items: items.unbind(), what, modality, place: 0, failure }
    }

    /// The input at a place.
    fn input(&self, py: Python<'_>, name: String, item: &Bound<'_, PyAny>) -> PyResult<Input> {
        let data = match self.modality {
            Modality::Text => {
                let invalid = |_| PyValueError::new_err(format!("{name}: the text is not valid Unicode"));
                Data::Text(item.extract().map_err(invalid)?)
            }
            Modality::Image => return image_of(py, name, item),
        };
        Ok(Input::new(name, data))
    }
}

impl Iterator for PyInputs {
    type Item = Result<Input, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Python::attach(|py| {
            let name = format!("{}[{}]", self.what, self.place);
            let item = self.items.bind(py).clone().next()?;
            self.place += 1;
            let input = item.and_then(|item| self.input(py, name.clone(), &item));
            Some(input.map_err(|error| {
                // The caller raises the exception itself.
                self.failure.set(error);
                Error::Input { name, reason: "an exception was raised".to_owned() }
            }))
        })
    }
}

/// An image: a path, the contents of a file, or pixels (height, width, 3).
fn image_of(py: Python<'_>, name: String, item: &Bound<'_, PyAny>) -> PyResult<Input> {
    if let Ok(path) = item.extract::<PathBuf>() {
        let name = format!("{name} ({})", escape(&path.to_string_lossy()));
        let options = InputOptions::new(Modality::Image);
        let data = py.detach(|| read_file(&name, &path, &options)).map_err(|error| match error {
            Error::Read { source, .. } => errors::io(source.kind(), format!("{name}: cannot be read: {source}")),
            other => errors::encode(other),
        })?;
        return Ok(Input::new(name, data));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(Input::new(name, Data::Image(bytes.as_bytes().to_vec())));
    }
    let pixels = item.extract::<PyReadonlyArray3<'_, u8>>();
    let pixels = pixels.map_err(|_| PyTypeError::new_err(format!("{name}: not an image")))?;
    let &[height, width, _] = pixels.shape() else { unreachable!("an array of three dimensions") };
    let image = image::from_pixels(&name, (width, height), pixels.as_slice()?.to_vec(), &Limits::default());
    Ok(Input::new(name, Data::Pixels(image.map_err(errors::encode)?)))
}
