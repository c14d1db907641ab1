//! How values of settings are read and shown where several settings do the same.

use loranpac::Truncation;
use loranpac::lift;

use crate::spec::{Spec, When};
use crate::value::Value;

/// The words for [`When`].
pub(super) const TIMES: &[&str] = &["never", "final", "every"];

pub(super) fn is_drawn(spec: &Spec) -> bool {
    !spec.is_infinite() && lift::find(&spec.lift).is_ok_and(|lift| lift.projection.is_drawn())
}

pub(super) fn clear_unless(spec: &mut Spec, used: impl Fn(&Spec) -> bool, clear: impl Fn(&mut Spec)) {
    if !used(spec) {
        clear(spec);
    }
}

pub(super) fn positive(value: &Value) -> Result<f64, String> {
    let number = value.number()?;
    match number > 0.0 && number.is_finite() {
        true => Ok(number),
        false => Err("a positive number is expected".to_owned()),
    }
}

pub(super) fn truncate(spec: &mut Spec, rule: Truncation) -> Result<(), String> {
    spec.truncation = Some(rule.validate().map_err(reason)?);
    Ok(())
}

/// What is wrong with a value, without the value.
pub(super) fn reason(error: loranpac::Error) -> String {
    match error {
        loranpac::Error::Setting { reason, .. } => reason,
        other => other.to_string(),
    }
}

pub(super) fn when(field: &mut When, value: &Value) -> Result<(), String> {
    *field = [When::Never, When::Final, When::Every][value.word(TIMES)?];
    Ok(())
}

pub(super) fn time(when: When) -> Value {
    Value::from(match when {
        When::Never => TIMES[0],
        When::Final => TIMES[1],
        When::Every => TIMES[2],
    })
}
