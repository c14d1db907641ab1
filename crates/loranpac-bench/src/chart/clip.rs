//! Lines that fall far below all others leave the axis at its lower end, so that the others can be told apart.

use super::panel::Line;

/// The lines, by index, that a vertical axis need not hold: those that fall below four fifths of the lowest
/// value of all others, and further than twice the range of these, if at least two others remain and they are the majority.
pub(super) fn fallen(lines: &[Line]) -> Vec<usize> {
    let ends = |line: &Line| {
        let values = line.points.iter().map(|point| point.y).filter(|y| y.is_finite());
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)))
    };
    let mut rest: Vec<(usize, (f64, f64))> = lines.iter().map(ends).enumerate().filter(|(_, e)| e.0 <= e.1).collect();
    rest.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let (count, mut fallen) = (rest.len(), Vec::new());
    while let Some((lowest, others)) = rest.split_last() {
        let low = others.iter().fold(f64::INFINITY, |low, (_, ends)| low.min(ends.0));
        let high = others.iter().fold(f64::NEG_INFINITY, |high, (_, ends)| high.max(ends.1));
        let far = lowest.1.0 < 0.8 * low && low - lowest.1.0 > 2.0 * (high - low);
        if others.len() < 2 || 2 * others.len() <= count || !far {
            break;
        }
        fallen.push(lowest.0);
        rest.pop();
    }
    fallen
}

/// A line in pieces that lie above (in pixels: less than) the floor; where it crosses the floor, pieces end on it.
pub(super) fn above(points: &[(f64, f64)], floor: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (i, &(x, y)) in points.iter().enumerate() {
        let inside = y <= floor;
        if let Some(&(before_x, before_y)) = i.checked_sub(1).map(|i| &points[i])
            && (before_y <= floor) != inside
        {
            let crossing = (before_x + (x - before_x) * (floor - before_y) / (y - before_y), floor);
            if inside {
                pieces.push(Vec::new());
            }
            pieces.last_mut().into_iter().for_each(|piece| piece.push(crossing));
        }
        if inside {
            pieces.last_mut().into_iter().for_each(|piece| piece.push((x, y)));
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::panel::Point;
    use super::super::style::Style;
    use super::*;

    fn line(ys: &[f64]) -> Line {
        let points = ys.iter().enumerate().map(|(x, y)| Point::new(x as f64, *y)).collect();
        Line { name: String::new(), style: Style::nth(0), points }
    }

    #[test]
    fn only_what_falls_far_below_a_majority_is_cut_off() {
        let (a, b, c) = (line(&[99.0, 92.0]), line(&[98.0, 90.0]), line(&[97.0, 89.0]));
        let collapsed = line(&[98.0, 1.0]);
        assert_eq!(fallen(&[a.clone(), collapsed.clone(), b.clone(), c]), [1]);
        assert!(fallen(&[a.clone(), collapsed.clone()]).is_empty(), "one line is no company");
        assert!(fallen(&[a.clone(), b.clone(), line(&[97.0, 75.0])]).is_empty(), "not far enough");
        let level = [line(&[92.0, 92.0]), line(&[92.1, 92.1]), line(&[89.0, 89.0])];
        assert!(fallen(&level).is_empty(), "three points are not far, however close the others are");
        assert!(fallen(&[a, b, collapsed.clone(), collapsed]).is_empty(), "half of the lines");
    }

    #[test]
    fn lines_end_where_they_cross_the_floor() {
        let pieces = above(&[(0.0, 0.0), (1.0, 20.0), (2.0, 20.0), (3.0, 0.0)], 10.0);
        assert_eq!(pieces, [vec![(0.0, 0.0), (0.5, 10.0)], vec![(2.5, 10.0), (3.0, 0.0)]]);
    }
}
