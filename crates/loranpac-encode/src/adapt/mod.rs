//! Adapting a pre-trained transformer to the classes of a first session: small modules are trained inside it, its own weights stay as they are.
//!
//! [`Samples`] are labelled images or texts in memory. A [`Trainer`] trains modules on them, epoch after epoch, and can continue from a
//! checkpoint. The result is an [`Adapter`], a small file that belongs to one encoder. A [`Job`] does all of it, as the command line and
//! Python do.
//!
//! Everything is a function of the samples, the settings and the seed: the same file to the last bit, for any number of threads, and
//! wherever training was interrupted.

mod adapter;
mod augment;
mod beside;
mod checkpoint;
#[cfg(test)]
mod damage;
mod head;
mod job;
mod loss;
mod means;
mod optimise;
pub(crate) mod pace;
mod probe;
mod samples;
mod settings;
mod step;
#[cfg(test)]
pub(crate) mod tests;
mod trainer;

pub use adapter::{Adapter, Outcome};
pub use beside::SideBySide;
pub use checkpoint::Epoch;
pub(crate) use head::Head;
pub use head::HeadKind;
pub use job::{Event, Job, Trained};
pub use loss::cross_entropy;
pub use optimise::Optimiser;
pub use pace::Pace;
#[doc(hidden)]
pub use probe::{Probe, ProbeInput, read_unsealed, resume_unsealed};
pub use samples::{SampleOptions, Samples};
pub use settings::Settings;
pub use trainer::{Progress, Trainer};
