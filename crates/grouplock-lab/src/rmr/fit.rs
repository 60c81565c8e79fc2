//! How a cost grows, judged from a few points.

use grouplock_algorithms::claims::Growth;

/// A function of the number of processes.
type Curve = fn(f64) -> f64;

/// With fewer processes there is little contention: costs rise with their number even if they have
/// a bound.
const SETTLED: f64 = 8.0;

/// The growth that explains the points (processes, cost) best.
///
/// * If the cost rises by less than one half for each doubling of the processes, from eight on if
///   there are two such sizes, it is constant: costs are whole numbers, and one more or less says
///   nothing.
/// * Otherwise it is the curve a + b·log N, a + b·N or a + b·N² that comes closest, in proportion
///   to the cost. The simpler one is preferred if a larger one is hardly better.
///
/// Fewer than two sizes say nothing, and two cannot tell the curves apart: [`Growth::NotStated`].
/// Points never prove a bound. This describes the points only. For a bound see
/// [`bounds`](super::bounds).
///
/// ```
/// use grouplock_algorithms::claims::Growth;
/// use grouplock_lab::rmr::fit;
///
/// assert_eq!(fit(&[(2, 22), (8, 27), (64, 28), (256, 28)]), Growth::Constant);
/// assert_eq!(fit(&[(2, 21), (8, 23), (64, 26), (256, 28)]), Growth::Logarithmic);
/// assert_eq!(fit(&[(2, 10), (8, 33), (64, 260), (256, 1030)]), Growth::Linear);
/// ```
pub fn fit(points: &[(usize, u64)]) -> Growth {
    let mut points: Vec<(f64, f64)> =
        points.iter().map(|&(n, cost)| (n as f64, cost.max(1) as f64)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by_key(|point| point.0);
    if points.len() < 2 {
        return Growth::NotStated;
    }
    let settled = points.partition_point(|&(n, _)| n < SETTLED).min(points.len() - 2);
    let level = points[settled..].iter().map(|&(n, cost)| (n, cost, 1.0));
    if line(level, f64::log2).1 < 0.5 {
        return Growth::Constant;
    }
    if points.len() < 3 {
        return Growth::NotStated;
    }
    let curves: [(Growth, Curve); 3] =
        [(Growth::Logarithmic, f64::log2), (Growth::Linear, |n| n), (Growth::Quadratic, |n| n * n)];
    let errors = curves.map(|(growth, curve)| (growth, error(&points, curve)));
    let least = errors.iter().map(|&(_, error)| error).fold(f64::INFINITY, f64::min);
    let good = errors.iter().find(|&&(_, error)| error <= 0.02_f64.max(1.25 * least));
    good.map_or(Growth::NotStated, |&(growth, _)| growth)
}

/// The a and b for which a + b·curve comes closest to the points (processes, cost, weight): least
/// squares.
fn line(points: impl Iterator<Item = (f64, f64, f64)>, curve: Curve) -> (f64, f64) {
    let [mut w, mut wx, mut wy, mut wxx, mut wxy] = [0.0; 5];
    for (n, y, weight) in points {
        let x = curve(n);
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    // The curve rises, so b does not fall below zero.
    let b = ((w * wxy - wx * wy) / (w * wxx - wx * wx)).max(0.0);
    ((wy - b * wx) / w, b)
}

/// The error of the best a + b·curve, relative to the costs: root of the mean square.
fn error(points: &[(f64, f64)], curve: Curve) -> f64 {
    let (a, b) = line(points.iter().map(|&(n, y)| (n, y, 1.0 / (y * y))), curve);
    let squares: f64 = points.iter().map(|&(n, y)| ((a + b * curve(n) - y) / y).powi(2)).sum();
    (squares / points.len() as f64).sqrt()
}
