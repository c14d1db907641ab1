//! The order of classes that NumPy's legacy generator gives for a seed.
//!
//! `numpy.random.seed(s); numpy.random.permutation(n)`: MT19937 seeded with one word, and a Fisher-Yates shuffle
//! from the end whose indices are drawn by masking and rejection. LAMDA-PILOT and the paper use seed 1993.

/// The permutation of `0..n` for a seed.
pub fn numpy_permutation(seed: u32, n: usize) -> Vec<usize> {
    let mut random = Mt19937::new(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below_or_equal(i as u32) as usize);
    }
    order
}

struct Mt19937 {
    state: [u32; 624],
    next: usize,
}

impl Mt19937 {
    fn new(seed: u32) -> Self {
        let mut state = [seed; 624];
        for i in 1..624 {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Mt19937 { state, next: 624 }
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == 624 {
            for i in 0..624 {
                let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
                let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % 624] ^ (joined >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Uniform in `0..=most`.
    fn below_or_equal(&mut self, most: u32) -> u32 {
        let mask = u32::MAX.checked_shr(most.leading_zeros()).unwrap_or(0);
        loop {
            let value = self.next_u32() & mask;
            if value <= most {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `np.random.seed(s); np.random.permutation(n)` printed by NumPy 2.4.
    #[test]
    fn numpy_class_order() {
        let check =
            |seed, n, expected: &[usize]| assert_eq!(numpy_permutation(seed, n), expected, "seed {seed}, n {n}");
        check(1993, 10, &[4, 2, 7, 6, 0, 3, 5, 8, 9, 1]);
        check(0, 7, &[6, 2, 1, 3, 0, 5, 4]);
        check(1993, 1, &[0]);
        check(u32::MAX, 12, &[11, 8, 5, 9, 1, 10, 6, 0, 4, 7, 2, 3]);
        check(1, 0, &[]);
        // Long ones by their beginning and `(p * np.arange(n)).sum()`: the generator refills after 624 words.
        let weighted = |p: &[usize]| p.iter().enumerate().map(|(i, v)| i * v).sum::<usize>();
        let p = numpy_permutation(1993, 200);
        assert_eq!((&p[..6], weighted(&p)), (&[168, 136, 51, 9, 183, 101][..], 2_044_957));
        let p = numpy_permutation(7, 1000);
        assert_eq!((&p[..5], weighted(&p)), (&[778, 334, 271, 802, 216][..], 246_202_311));
    }
}
