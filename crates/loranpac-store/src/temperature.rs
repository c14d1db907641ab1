//! Calibration of probabilities: softmax(scores / T), with T fitted on held-out samples.

/// The interval of temperatures that are tried.
const RANGE: (f64, f64) = (1e-4, 1e2);

/// Returns the mean negative log-likelihood of the true classes.
pub fn negative_log_likelihood<'a>(samples: impl Iterator<Item = (&'a [f32], usize)>, temperature: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    for (scores, class) in samples {
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
        let total: f64 = scores.iter().map(|score| ((*score as f64 - highest) / temperature).exp()).sum();
        sum += total.ln() - (scores[class] as f64 - highest) / temperature;
        count += 1;
    }
    sum / count.max(1) as f64
}

/// Returns the temperature with the smallest negative log-likelihood, by golden-section search over its logarithm:
/// there is one minimum in 1/T.
pub fn fit(samples: &[(Vec<f32>, usize)]) -> f64 {
    let loss = |log: f64| negative_log_likelihood(samples.iter().map(|(s, c)| (s.as_slice(), *c)), log.exp());
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (RANGE.0.ln(), RANGE.1.ln());
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_a, mut at_b) = (loss(a), loss(b));
    while high - low > 1e-4 {
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - ratio * (high - low);
            at_a = loss(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + ratio * (high - low);
            at_b = loss(b);
        }
    }
    ((low + high) / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fitted_temperature_beats_its_neighbours() {
        // Two classes whose scores differ by 0.2, in three of four cases in favour of the right one: T = 0.2 / ln 3.
        let sample = |right: bool| (vec![0.5, if right { 0.3 } else { 0.7 }], 0);
        let samples: Vec<_> = (0..400).map(|i| sample(i % 4 != 0)).collect();
        let fitted = fit(&samples);
        assert!((fitted - 0.2 / 3f64.ln()).abs() < 1e-3, "{fitted}");
        assert!((loranpac::softmax(&samples[1].0, fitted)[0] - 0.75).abs() < 1e-3);
    }
}
