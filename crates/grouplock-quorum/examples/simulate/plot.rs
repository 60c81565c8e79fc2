//! A plot as SVG: points on lines, both axes from zero or logarithmic.

use std::fmt::Write as _;

/// A line: its name and its points.
pub(crate) type Line = (String, Vec<(f64, f64)>);

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 6] = ["#0b6e99", "#c0392b", "#2e8b57", "#8e44ad", "#b9770e", "#555555"];

/// Draws `lines`. With `logarithmic` the vertical axis is, and every value must be positive.
pub(crate) fn draw(title: &str, x: &str, y: &str, logarithmic: bool, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let most_x = points().map(|point| point.0).fold(1.0, f64::max);
    let most_y = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let least_y = points().map(|point| point.1).fold(most_y, f64::min);
    let (bottom, top) =
        if logarithmic { (least_y.log10().floor(), most_y.log10().ceil()) } else { (0.0, most_y) };
    let at_x = |value: f64| LEFT + value / most_x * (WIDTH - LEFT - RIGHT);
    let at_y = |value: f64| {
        let value = if logarithmic { value.log10() } else { value };
        HEIGHT - BOTTOM - (value - bottom) / (top - bottom).max(1e-9) * (HEIGHT - TOP - BOTTOM)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\">{title}</text>\n\
         <text x=\"{LEFT}\" y=\"{}\">{x}</text>\n\
         <text x=\"14\" y=\"{}\" transform=\"rotate(-90 14 {})\">{y}</text>\n",
        HEIGHT - 12.0,
        HEIGHT - BOTTOM,
        HEIGHT - BOTTOM,
    );
    for tick in 0..=4 {
        let part = f64::from(tick) / 4.0;
        let (value_x, exact) = (most_x * part, bottom + (top - bottom) * part);
        let value_y = if logarithmic { 10_f64.powf(exact) } else { exact };
        let (px, py) = (at_x(value_x), at_y(value_y));
        let end = WIDTH - RIGHT;
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{py:.1}\" x2=\"{end}\" y2=\"{py:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{px:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT - 6.0,
            py + 4.0,
            short(value_y),
            HEIGHT - BOTTOM + 16.0,
            short(value_x),
        );
    }
    for (n, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let mut path = String::new();
        for point in points {
            let _ = write!(path, "{:.1},{:.1} ", at_x(point.0), at_y(point.1));
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.trim_end()
        );
        for point in points {
            let (px, py) = (at_x(point.0), at_y(point.1));
            let _ =
                writeln!(svg, "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let (lx, ly) = (WIDTH - RIGHT + 12.0, TOP + 18.0 * n as f64 + 8.0);
        let _ = writeln!(svg, "<text x=\"{lx}\" y=\"{ly}\" fill=\"{colour}\">{name}</text>");
    }
    svg + "</svg>\n"
}

fn short(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
