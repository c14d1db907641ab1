//! Values that are kept for further runs as long as there is room.

/// A list of values with a limit on their bytes. The oldest go first; the last one stays in any case.
pub(crate) struct Kept<K, V> {
    most: usize,
    /// Key, value and bytes, oldest first.
    items: Vec<(K, V, usize)>,
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    /// An empty list.
    pub fn new(most: usize) -> Kept<K, V> {
        Kept { most, items: Vec::new() }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<V> {
        self.items.iter().find(|(known, ..)| known == key).map(|(_, value, _)| value.clone())
    }

    /// Adds a value.
    pub fn put(&mut self, key: K, value: V, bytes: usize) {
        self.items.push((key, value, bytes));
        while self.items.len() > 1 && self.items.iter().map(|(.., bytes)| bytes).sum::<usize>() > self.most {
            self.items.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_values_make_room_and_the_last_one_stays() {
        let mut kept = Kept::new(10);
        kept.put("a", 1, 4);
        kept.put("b", 2, 6);
        assert_eq!((kept.get(&"a"), kept.get(&"b"), kept.get(&"c")), (Some(1), Some(2), None));
        kept.put("c", 3, 1);
        assert_eq!((kept.get(&"a"), kept.get(&"b"), kept.get(&"c")), (None, Some(2), Some(3)));
        kept.put("d", 4, 11);
        assert_eq!((kept.get(&"c"), kept.get(&"d")), (None, Some(4)));
    }
}
