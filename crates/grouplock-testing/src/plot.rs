//! A plot: points on lines. The vertical axis begins at zero or is logarithmic.

use crate::svg::{Anchor, Ink, Svg};

/// A line: its name and its points.
pub type Line = (String, Vec<(f64, f64)>);

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 450.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 310.0;
const INKS: [Ink; 6] = [Ink::Blue, Ink::Red, Ink::Green, Ink::Violet, Ink::Amber, Ink::Grey];

/// Draws `lines`; `x` and `y` are the names of the axes. With `logarithmic`, every value must be
/// positive.
pub fn draw(title: &str, x: &str, y: &str, logarithmic: bool, lines: &[Line]) -> Svg {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let most_x = points().map(|point| point.0).fold(1.0, f64::max);
    let most_y = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let least_y = points().map(|point| point.1).fold(most_y, f64::min);
    let (low, high) =
        if logarithmic { (least_y.log10().floor(), most_y.log10().ceil()) } else { (0.0, most_y) };
    let at_x = |value: f64| LEFT + value / most_x * (RIGHT - LEFT);
    let at_y = |value: f64| {
        let value = if logarithmic { value.log10() } else { value };
        BOTTOM - (value - low) / (high - low).max(1e-9) * (BOTTOM - TOP)
    };
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    svg.text((16.0, 26.0), Anchor::Start, Ink::Text, true, title);
    svg.text((16.0, 46.0), Anchor::Start, Ink::Soft, false, y);
    svg.text((f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0), Anchor::Middle, Ink::Soft, false, x);
    for tick in 0..=4 {
        let part = f64::from(tick) / 4.0;
        let (value_x, exact) = (most_x * part, low + (high - low) * part);
        let value_y = if logarithmic { 10_f64.powf(exact) } else { exact };
        let (px, py) = (at_x(value_x), at_y(value_y));
        svg.line(&[(LEFT, py), (RIGHT, py)], Ink::Grid, 1.0, false);
        svg.text((LEFT - 6.0, py + 4.0), Anchor::End, Ink::Soft, false, &short(value_y));
        svg.text((px, BOTTOM + 18.0), Anchor::Middle, Ink::Soft, false, &short(value_x));
    }
    for (number, (name, points)) in lines.iter().enumerate() {
        let ink = INKS[number % INKS.len()];
        let points: Vec<_> = points.iter().map(|(x, y)| (at_x(*x), at_y(*y))).collect();
        svg.line(&points, ink, 2.0, false);
        for point in &points {
            svg.dot(*point, 3.0, ink);
        }
        let below = TOP + 18.0 * number as f64 + 8.0;
        svg.text((RIGHT + 12.0, below), Anchor::Start, ink, false, name);
    }
    svg
}

fn short(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::well_formed;

    #[test]
    fn a_larger_value_stands_higher_and_a_later_one_further_right() {
        for logarithmic in [false, true] {
            let line = ("a < b".to_owned(), vec![(1.0, 2.0), (4.0, 300.0)]);
            let text = draw("t", "x", "y", logarithmic, &[line]).to_string();
            assert_eq!(well_formed(&text), Ok(()));
            let dots = text.lines().filter(|line| line.starts_with("<circle"));
            let number = |dot: &str, name: &str| -> f64 {
                let value = dot.split(&format!(" {name}=\"")).nth(1).expect("it has one");
                value.split('"').next().expect("a number").parse().expect("a number")
            };
            let dots: Vec<_> = dots.map(|dot| (number(dot, "cx"), number(dot, "cy"))).collect();
            assert_eq!(dots.len(), 2);
            assert!(dots[0].0 < dots[1].0 && dots[0].1 > dots[1].1, "{dots:?}");
            assert!(dots.iter().all(|dot| (TOP..=BOTTOM).contains(&dot.1)), "{dots:?}");
        }
    }
}
