//! Encoders: images and texts in, features out.
//!
//! An [`Encoder`] turns a [`Batch`] of images or texts into rows of features.

mod cache;
mod encoder;
mod error;
mod server;

pub use cache::{Cache, Key};
pub use encoder::{Batch, Encoder, Image, Modality};
pub use error::{Error, ServerProblem};
pub use server::Server;
