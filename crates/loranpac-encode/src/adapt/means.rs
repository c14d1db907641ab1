//! Nearest class mean: the accuracy that features have without any training of a classifier.

/// The share of queries, in percent, whose nearest class mean by cosine is that of their class. None without queries.
pub(super) fn accuracy(
    d: usize,
    means: (&[f32], &[usize]),
    queries: (&[f32], &[usize]),
    classes: usize,
) -> Option<f64> {
    let mut sums = vec![0.0f64; classes * d];
    let mut seen = vec![false; classes];
    for (feature, class) in means.0.chunks(d).zip(means.1) {
        seen[*class] = true;
        // A mean and a sum have the same direction.
        sums[class * d..][..d].iter_mut().zip(feature).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    for sum in sums.chunks_mut(d) {
        let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
        sum.iter_mut().for_each(|x| *x /= length);
    }
    let right = queries.0.chunks(d).zip(queries.1).filter(|(feature, class)| {
        let score = |class: usize| -> f64 {
            sums[class * d..][..d].iter().zip(*feature).map(|(mean, x)| mean * f64::from(*x)).sum()
        };
        let nearest = (0..classes).filter(|class| seen[*class]).map(|class| (score(class), class));
        // Of equal scores, the first.
        let best = nearest.fold(None, |best: Option<(f64, usize)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        });
        best.is_some_and(|(_, best)| best == **class)
    });
    let right = right.count();
    (!queries.1.is_empty()).then(|| 100.0 * right as f64 / queries.1.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mean_wins() {
        let means = [1.0, 0.1, 0.9, 0.0, 0.0, 2.0];
        let queries = [5.0, 1.0, 0.1, 0.3, 1.0, 0.9];
        let found = accuracy(2, (&means, &[0, 0, 1]), (&queries, &[0, 1, 1]), 2);
        assert!((found.unwrap() - 200.0 / 3.0).abs() < 1e-9);
        assert_eq!(accuracy(2, (&means, &[0, 0, 1]), (&[], &[]), 2), None);
    }
}
