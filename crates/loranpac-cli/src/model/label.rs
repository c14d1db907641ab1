//! Classes as the user writes them. `7` is the number or the text, whichever the model has; `number:7` and `text:7` tell them
//! apart.

use anyhow::{Result, bail};
use loranpac::Label;
use loranpac_data::text::integer;

use crate::words::count;

/// The label of `number:7` or `text:7`. Behind the colon is what could be either.
fn of_kind(text: &str) -> Option<Label> {
    let (kind, name) = text.split_once(':')?;
    let number = integer(name)?;
    match kind {
        "number" => Some(Label::Integer(number)),
        "text" => Some(Label::Text(name.to_owned())),
        _ => None,
    }
}

/// Returns the labels that a word on the command line may denote.
pub fn written_as(text: &str) -> impl Iterator<Item = Label> {
    [Some(Label::from(text)), integer(text).map(Label::Integer), of_kind(text)].into_iter().flatten()
}

/// Finds a class of the model, if it has one of this name.
fn existing(known: &[Label], text: &str) -> Result<Option<Label>> {
    let mut found = written_as(text).filter(|label| known.contains(label));
    match (found.next(), found.next()) {
        (Some(Label::Text(_)), Some(Label::Integer(number))) => {
            bail!("the model has {number} both as a number and as a text; write number:{number} or text:{number}")
        }
        (label, _) => Ok(label),
    }
}

/// Finds the class with a label, which must exist.
pub fn find_label(known: &[Label], text: &str) -> Result<Label> {
    if let Some(label) = existing(known, text)? {
        return Ok(label);
    }
    let mut near: Vec<&Label> = known.iter().filter(|label| label.to_string().contains(text)).collect();
    near.truncate(5);
    let near = near.iter().map(|label| label.to_string()).collect::<Vec<_>>().join(", ");
    let near = if near.is_empty() { String::new() } else { format!("; did you mean one of {near}?") };
    bail!("there is no class {text:?} among the model's {}{near}", count(known.len(), "class"))
}

/// Finds the class with a label, or makes a new label: a number if the model's labels are numbers.
pub fn find_or_new(known: &[Label], text: &str) -> Result<Label> {
    let numbers = known.iter().all(|label| matches!(label, Label::Integer(_)));
    let new = || of_kind(text).or_else(|| integer(text).filter(|_| numbers).map(Label::Integer));
    Ok(existing(known, text)?.or_else(new).unwrap_or_else(|| Label::from(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_text_that_look_the_same_have_names_of_their_own() {
        let (number, text) = (Label::Integer(7), Label::from("7"));
        let both = [number.clone(), text.clone(), Label::from("number:cat")];
        let error = find_label(&both, "7").unwrap_err().to_string();
        assert!(error.contains("number:7 or text:7"), "{error}");
        assert!(find_or_new(&both, "7").is_err());
        for (name, label) in [("number:7", &number), ("text:7", &text), ("number:cat", &both[2])] {
            assert_eq!(
                (find_label(&both, name).unwrap(), find_or_new(&both, name).unwrap()),
                (label.clone(), label.clone())
            );
        }
        for one in [&number, &text] {
            assert_eq!(find_label(std::slice::from_ref(one), "7").unwrap(), *one);
        }
        assert!(find_label(std::slice::from_ref(&text), "number:7").is_err());
    }

    #[test]
    fn a_new_label_is_a_number_among_numbers() {
        let (numbers, texts) = ([Label::Integer(1)], [Label::from("a")]);
        assert_eq!(find_or_new(&numbers, "2").unwrap(), Label::Integer(2));
        assert_eq!(find_or_new(&texts, "2").unwrap(), Label::from("2"));
        assert_eq!(find_or_new(&numbers, "text:1").unwrap(), Label::from("1"));
        assert_eq!(find_or_new(&texts, "number:2").unwrap(), Label::Integer(2));
        assert_eq!(find_or_new(&numbers, "text:a").unwrap(), Label::from("text:a"));
    }
}
