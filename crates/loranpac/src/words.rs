//! Numbers in messages.

/// Formats a number with its noun: `1 task`, `2 tasks`, `3 classes`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with('s') => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "class"), "1 class");
        assert_eq!(count(0, "class"), "0 classes");
        assert_eq!(count(2, "direction"), "2 directions");
    }
}
