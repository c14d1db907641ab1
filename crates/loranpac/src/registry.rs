//! The list of all methods, from which the command line, reports and conformance tests are made.

use crate::error::Error;
pub use crate::method::{Input, Method, MethodOptions, Promise};
#[cfg(test)]
use crate::methods::dummy;
use crate::methods::{
    air, anacp, ease, family, fecam, fly_cl, incremental_svd, klda, knn, lda, ogd, prompts, ranpac, ridge_truncated,
    rls, simplecil, softmax,
};

/// All methods; the first is the paper's. A method's entry is at the end of its own file.
pub const METHODS: &[Method] = &[
    family::LORANPAC,
    family::LORANPAC_SOFT,
    family::MIN_NORM,
    incremental_svd::WITHOUT_REORTHOGONALISATION,
    incremental_svd::JOINT,
    ranpac::RANPAC,
    ridge_truncated::RIDGE_TRUNCATED,
    rls::RLS,
    air::AIR,
    fly_cl::FLY_CL,
    anacp::ANACP,
    ogd::OGD,
    ogd::PCA_OGD,
    ogd::OR_FIT,
    lda::SLDA,
    lda::RANDUMB,
    klda::KLDA,
    fecam::FECAM,
    ranpac::LAYUP,
    simplecil::SIMPLECIL,
    simplecil::ADAM,
    knn::KNN,
    ease::EASE,
    prompts::L2P,
    prompts::DUALPROMPT,
    prompts::CODAPROMPT,
    softmax::LC_X,
    softmax::LC_H,
    #[cfg(test)]
    dummy::DUMMY,
];

/// Returns the entry of a method.
pub fn find(name: &str) -> Result<&'static Method, Error> {
    METHODS.iter().find(|method| method.name == name).ok_or_else(|| Error::UnknownMethod {
        name: name.to_owned(),
        known: METHODS.iter().map(|method| method.name).collect::<Vec<_>>().join(", "),
    })
}
