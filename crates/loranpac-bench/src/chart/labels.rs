//! Labels beside the ends of lines: as near as they can be without overlapping.

/// Distance between the lines of a text.
pub(super) const LEADING: f64 = 17.0;

/// Centres near the wanted ones of labels with these heights, between `low` and `high` as far as they fit.
pub(super) fn apart(wanted: &[f64], heights: &[f64], low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.to_vec();
    // Down from above, then up from below: what was pushed beyond the end comes back.
    let mut least = low;
    for &i in &order {
        places[i] = places[i].max(least + heights[i] / 2.0);
        least = places[i] + heights[i] / 2.0;
    }
    let mut most = high;
    for &i in order.iter().rev() {
        places[i] = places[i].min(most - heights[i] / 2.0);
        most = places[i] - heights[i] / 2.0;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_overlap() {
        let heights = [17.0, 34.0, 17.0, 17.0];
        let places = apart(&[100.0, 101.0, 99.0, 320.0], &heights, 48.0, 330.0);
        let mut boxes: Vec<(f64, f64)> = places.iter().zip(heights).map(|(p, h)| (p - h / 2.0, p + h / 2.0)).collect();
        boxes.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(boxes.windows(2).all(|w| w[0].1 <= w[1].0 + 1e-9), "{boxes:?}");
        assert!(boxes[0].0 >= 48.0 && boxes[3].1 <= 330.0, "{boxes:?}");
    }
}
