//! Random orders that are the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Returns a random order of `0..n`, a pure function of seed and stream (Fisher and Yates).
pub(super) fn permutation(n: usize, seed: u64, stream: u64) -> Vec<usize> {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(stream);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        // The bias of a 64-bit remainder is negligible.
        order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_permutation_that_depends_on_seed_and_stream_alone() {
        let order = permutation(100, 1993, 3);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_eq!(order, permutation(100, 1993, 3));
        assert_ne!(order, permutation(100, 1993, 4));
        assert_ne!(order, permutation(100, 1994, 3));
    }
}
