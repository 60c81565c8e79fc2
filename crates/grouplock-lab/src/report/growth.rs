//! How a count grows with the number of processes.

use grouplock_algorithms::claims::Growth;

/// The growth that `points` (processes, count) suggest: from how fast the count rises over the upper half of the
/// sizes, on logarithmic scales, where N² has slope 2, N has slope 1 and a constant slope 0.
///
/// Nothing if fewer than three sizes were counted, or they do not span a factor of eight: two small sizes tell no
/// growth.
///
/// ```
/// use grouplock_algorithms::claims::Growth;
/// use grouplock_lab::report::growth::suggested;
///
/// assert_eq!(suggested(&[(2, 10), (8, 12), (64, 12)]), Some(Growth::Constant));
/// assert_eq!(suggested(&[(2, 7), (8, 25), (64, 193)]), Some(Growth::Linear));
/// assert_eq!(suggested(&[(2, 7), (3, 8)]), None);
/// ```
pub fn suggested(points: &[(usize, u64)]) -> Option<Growth> {
    let mut points = points.to_vec();
    points.sort_unstable();
    points.dedup_by_key(|point| point.0);
    let (first, last) = (*points.first()?, *points.last()?);
    if points.len() < 3 || last.0 < 8 * first.0 {
        return None;
    }
    let middle = points[(points.len() - 1) / 2];
    let rise = |(n, count): (usize, u64)| ((n as f64).ln(), (count.max(1) as f64).ln());
    let ((x0, y0), (x1, y1)) = (rise(middle), rise(last));
    Some(match (y1 - y0) / (x1 - x0) {
        slope if slope < 0.1 => Growth::Constant,
        slope if slope < 0.6 => Growth::Logarithmic,
        slope if slope < 1.5 => Growth::Linear,
        _ => Growth::Quadratic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_growth_is_told_from_its_points() {
        let at = |f: fn(u64) -> u64| [2, 4, 8, 16, 32, 64, 128, 256].map(|n| (n as usize, f(n)));
        assert_eq!(suggested(&at(|_| 28)), Some(Growth::Constant));
        assert_eq!(suggested(&at(|n| 5 + 6 * u64::from(n.ilog2()))), Some(Growth::Logarithmic));
        assert_eq!(suggested(&at(|n| 4 * n + 9)), Some(Growth::Linear));
        assert_eq!(suggested(&at(|n| n * n + 3 * n)), Some(Growth::Quadratic));
    }
}
