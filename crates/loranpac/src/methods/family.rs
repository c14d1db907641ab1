//! The entries of LoRanPAC and its variants in the list of methods.

use super::Model;
use crate::classifier::CHUNK;
use crate::config::Config;
use crate::error::Error;
use crate::filter::{Filter, Ridge};
use crate::learner::Learner;
use crate::method::{Input, Method, MethodOptions, Promise, Settings};
use crate::statistics::DEFAULT_DROP;
use crate::truncation::Truncation;

const RIDGE: (&str, &str) = ("ridge", "lambda, added to the eigenvalues");
const RIDGE_OR_LOO: (&str, &str) = (
    "ridge",
    "lambda, added to the eigenvalues; loo (infinite width): the best of six decades by leave-one-out accuracy",
);
const SAMPLES: (&str, &str) = ("samples", "f16 or f32, how samples are kept at infinite width");
pub(super) const DROP: (&str, &str) = ("drop", "rounding units below which a residual adds no direction; 0 keeps all");
pub(super) const CHUNK_SIZE: (&str, &str) = ("chunk", "samples absorbed at a time");

/// The paper's method.
pub(crate) const LORANPAC: Method = Method {
    name: "loranpac",
    summary: "the paper: truncated least squares on lifted features",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: true,
    cuts: true,
    settings: &[RIDGE, DROP, CHUNK_SIZE, SAMPLES],
    exempt: &[],
    infinite: true,
    build,
    config: Some(|options, settings| {
        let ridge = settings.ridge()?.unwrap_or(0.0);
        let filter = Filter::Hard { truncation: options.truncation.unwrap_or_default(), ridge };
        configure(options, settings, filter, DEFAULT_DROP)
    }),
};

/// A variant without cuts.
pub(crate) const LORANPAC_SOFT: Method = Method {
    name: "loranpac-soft",
    summary: "a ridge read off the spectrum (its geometric mean) instead of a cut",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: true,
    cuts: false,
    settings: &[RIDGE_OR_LOO, DROP, CHUNK_SIZE, SAMPLES],
    exempt: &[],
    infinite: true,
    build,
    config: Some(|options, settings| {
        let ridge = match (settings.get("ridge"), options.truncation) {
            (Some("loo"), _) => Ridge::LeaveOneOut,
            (Some(_), _) => Ridge::Fixed(settings.ridge()?.unwrap_or(0.0)),
            (None, Some(truncation)) => Ridge::Eigenvalue(truncation),
            (None, None) => Ridge::GeometricMean,
        };
        configure(options, settings, Filter::Soft(ridge), DEFAULT_DROP)
    }),
};

/// Minimum-norm least squares (ICL), in the form of the paper's Figure 1.
pub(crate) const MIN_NORM: Method = Method {
    name: "min-norm",
    summary: "no truncation (zeta = 0), null directions kept: what the paper shows to be unstable",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: true,
    settings: &[DROP, CHUNK_SIZE],
    exempt: UNSTABLE,
    infinite: false,
    build,
    config: Some(|options, settings| {
        let filter = Filter::Hard { truncation: Truncation::Fraction(0.0), ridge: 0.0 };
        configure(options, settings, filter, 0.0)
    }),
};

/// The promises that no method can make that divides by eigenvalues of rounding size.
pub(super) const UNSTABLE: &[(Promise, &str)] = &[
    (Promise::SampleOrder, "it divides by eigenvalues of rounding size, and rounding depends on the order"),
    (Promise::Halves, "it divides by eigenvalues of rounding size, and rounding depends on the division"),
    (Promise::Stability, "it divides by eigenvalues of rounding size: this is what the paper shows"),
];

/// Creates a model with the settings of the method's entry.
fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let config = settings.method().config(options)?.unwrap_or_default();
    Ok(Box::new(Model::new(options.space.clone(), config)?))
}

/// Returns the settings that the methods of the family share.
pub(super) fn configure(
    options: &MethodOptions,
    settings: &Settings<'_>,
    filter: Filter,
    drop: f64,
) -> Result<Config, Error> {
    Ok(Config {
        filter,
        max_rank: options.max_rank,
        schedule: options.schedule,
        drop: settings.number("drop", drop)?,
        chunk: settings.number("chunk", CHUNK)?,
        half: match settings.get("samples") {
            None | Some("f32") => false,
            Some("f16") => true,
            Some(other) => return Err(Error::setting("samples", other, "f16 or f32 is expected")),
        },
    })
}
