//! How a cost grows, judged from a few points.

use grouplock_algorithms::claims::Growth;

/// What grows with the number of processes.
type Curve = fn(f64) -> f64;

/// The growth that explains the points (processes, cost) best.
///
/// * If the cost no longer rises, by more than a tenth, between the two largest sizes, it is constant: small sizes
///   often cost less because there are too few processes to get in each other's way.
/// * If it does, the curve a + b·log N, a + b·N or a + b·N² that comes closest, in proportion to the cost, is taken.
///   The simpler one is preferred if a larger one is hardly better.
///
/// Fewer than two sizes say nothing: [`Growth::NotStated`]. And no number of points tells a bound: this is what the
/// points look like.
///
/// ```
/// use grouplock_algorithms::claims::Growth;
/// use grouplock_lab::rmr::fit;
///
/// assert_eq!(fit(&[(2, 22), (8, 27), (64, 28), (256, 28)]), Growth::Constant);
/// assert_eq!(fit(&[(2, 10), (8, 33), (64, 260), (256, 1030)]), Growth::Linear);
/// ```
pub fn fit(points: &[(usize, u64)]) -> Growth {
    let mut points: Vec<(f64, f64)> =
        points.iter().map(|&(n, cost)| (n as f64, cost.max(1) as f64)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by_key(|point| point.0);
    let [.., (_, before), (_, last)] = points[..] else { return Growth::NotStated };
    if last <= before * 1.1 {
        return Growth::Constant;
    }
    let curves: [(Growth, Curve); 3] =
        [(Growth::Logarithmic, f64::log2), (Growth::Linear, |n| n), (Growth::Quadratic, |n| n * n)];
    let errors = curves.map(|(growth, curve)| (growth, error(&points, curve)));
    let least = errors.iter().map(|&(_, error)| error).fold(f64::INFINITY, f64::min);
    let good = errors.iter().find(|&&(_, error)| error <= 0.02_f64.max(1.25 * least));
    good.map_or(Growth::NotStated, |&(growth, _)| growth)
}

/// The error of the best a + b·curve, relative to the costs: root of the mean square. The curve rises, so b does
/// not fall below zero.
fn error(points: &[(f64, f64)], curve: Curve) -> f64 {
    // Minimise Σ ((a + b·x - y) / y)²: least squares with the weights 1/y².
    let [mut w, mut wx, mut wy, mut wxx, mut wxy] = [0.0; 5];
    for &(n, y) in points {
        let (x, weight) = (curve(n), 1.0 / (y * y));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let spread = w * wxx - wx * wx;
    let b = if spread.abs() < f64::EPSILON * w * wxx { 0.0 } else { (w * wxy - wx * wy) / spread };
    let b = b.max(0.0);
    let a = (wy - b * wx) / w;
    let squares: f64 = points.iter().map(|&(n, y)| ((a + b * curve(n) - y) / y).powi(2)).sum();
    (squares / points.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost: impl Fn(usize) -> u64) -> Growth {
        fit(&[2, 4, 8, 16, 64, 256].map(|n| (n, cost(n))))
    }

    #[test]
    fn exact_curves_are_recognised() {
        assert_eq!(of(|_| 7), Growth::Constant);
        assert_eq!(of(|n| 3 + 2 * u64::from(n.ilog2())), Growth::Logarithmic);
        assert_eq!(of(|n| 5 * n as u64 + 9), Growth::Linear);
        assert_eq!(of(|n| (n * n + 3 * n) as u64 / 2 + 4), Growth::Quadratic);
    }

    #[test]
    fn a_cost_that_levels_off_is_constant() {
        assert_eq!(fit(&[(2, 19), (8, 22), (64, 22)]), Growth::Constant);
        assert_eq!(fit(&[(2, 10), (8, 14), (64, 14), (256, 13)]), Growth::Constant);
    }

    #[test]
    fn noise_does_not_mislead() {
        assert_eq!(fit(&[(2, 12), (8, 40), (64, 280), (256, 1190)]), Growth::Linear);
        assert_eq!(fit(&[(2, 8), (8, 70), (64, 4300), (256, 60_000)]), Growth::Quadratic);
    }

    #[test]
    fn too_few_points_say_nothing() {
        assert_eq!(fit(&[]), Growth::NotStated);
        assert_eq!(fit(&[(8, 3), (8, 3)]), Growth::NotStated);
    }
}
