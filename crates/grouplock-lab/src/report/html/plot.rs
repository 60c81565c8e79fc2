//! Remote memory references against the number of processes, both on logarithmic scales: a constant is level, N has
//! slope one.

use std::fmt::Write as _;

use super::escape::Escaped as E;
use crate::report::dossier::{Broken, Dossier, RmrPoint};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 44.0;
/// How many colours there are for lines; further ones share them and are dashed.
const COLOURS: usize = 8;

/// The rules of counting, and what they are called here.
const MODELS: [(&str, &str); 4] = [
    ("cc", "Cache-coherent (CC)"),
    ("cc-write-back", "CC, write-back"),
    ("cc-write-through", "CC, every write counts"),
    ("dsm", "Distributed shared memory (DSM)"),
];

pub(super) fn section(body: &mut String, dossier: &Dossier) {
    body.push_str("<section id=\"rmr\"><h2>Remote memory references</h2>\n");
    if dossier.rmr.is_empty() {
        body.push_str("<p class=\"empty\">Not measured in this run.</p></section>\n");
        return;
    }
    body.push_str(
        "<p class=\"lead\">The largest cost of a passage that was found, by the number of processes N: others may cost \
         more. Both scales are logarithmic. Hollow points waited on remote memory: no number bounds their cost. What is \
         proven for any N stands with the numbers. Choose an algorithm in the legend to set it apart.</p>\n",
    );
    let mut names: Vec<&str> = Vec::new();
    for point in &dossier.rmr {
        if !names.contains(&point.algorithm.as_str()) {
            names.push(&point.algorithm);
        }
    }
    body.push_str("<div class=\"series\" role=\"group\" aria-label=\"Algorithms\">");
    for (i, name) in names.iter().enumerate() {
        let (colour, dash) = look(i);
        let _ = write!(
            body,
            "<button type=\"button\" aria-pressed=\"false\" data-series=\"{i}\"><svg width=\"26\" height=\"10\" \
             aria-hidden=\"true\"><line class=\"line l{colour}{dash}\" x1=\"1\" x2=\"25\" y1=\"5\" y2=\"5\"/></svg>{}</button>",
            E(name)
        );
    }
    body.push_str("</div>\n<div class=\"plots\">\n");
    let mut models: Vec<(&str, &str)> = MODELS.to_vec();
    for point in &dossier.rmr {
        if !models.iter().any(|(model, _)| *model == point.model) {
            models.push((&point.model, &point.model));
        }
    }
    for (model, title) in models {
        let points: Vec<_> = dossier.rmr.iter().filter(|point| point.model == model).collect();
        if !points.is_empty() {
            plot(body, title, &points, &names, &dossier.broken);
        }
    }
    body.push_str("</div>\n");
    for broken in &dossier.broken {
        let _ = writeln!(body, "<p class=\"lead\">✗ {}.</p>", E(&broken.because));
    }
    body.push_str("</section>\n");
}

/// The colour of the line of the `i`th algorithm, and whether it is dashed.
fn look(i: usize) -> (usize, &'static str) {
    (i % COLOURS, if i / COLOURS % 2 == 1 { " dashed" } else { "" })
}

/// A logarithmic scale.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min).max(1.0).ln();
        let high = values.fold(1.0, f64::max).ln();
        // A single value still needs a scale around it.
        if high - low < 0.1 {
            return Scale { low: low - 0.7, high: high + 0.7, from, to };
        }
        Scale { low, high, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.max(1.0).ln() - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    fn holds(&self, value: f64) -> bool {
        (self.low - 0.01..=self.high + 0.01).contains(&value.ln())
    }
}

fn plot(body: &mut String, title: &str, points: &[&RmrPoint], names: &[&str], broken: &[Broken]) {
    let x = Scale::new(points.iter().map(|p| p.processes as f64), LEFT + 8.0, WIDTH - RIGHT - 8.0);
    let counts = points.iter().map(|p| p.max as f64 * 1.15);
    let y = Scale::new(counts.chain([1.0]), HEIGHT - BOTTOM, TOP);
    let _ = writeln!(
        body,
        "<figure class=\"plot\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{0}: remote references per passage by number of processes\">",
        E(title)
    );
    axes(body, &x, &y, points);
    for (i, name) in names.iter().enumerate() {
        let mut line: Vec<_> = points.iter().filter(|point| point.algorithm == *name).collect();
        line.sort_by_key(|point| point.processes);
        if line.is_empty() {
            continue;
        }
        let (colour, dash) = look(i);
        let path = line.iter().map(|point| {
            format!("{:.1},{:.1}", x.at(point.processes as f64), y.at(point.max as f64))
        });
        let _ = write!(
            body,
            "<g class=\"of\" data-series=\"{i}\"><polyline class=\"line l{colour}{dash}\" points=\"{}\"/>",
            path.collect::<Vec<_>>().join(" ")
        );
        for point in line {
            let spins = if point.remote_spinning { ", waits on remote memory" } else { "" };
            let tip = format!(
                "{name}, N = {}: largest found {}, mean {:.1}{spins}",
                point.processes, point.max, point.mean
            );
            let hollow = if point.remote_spinning { " hollow" } else { "" };
            let _ = write!(
                body,
                "<circle class=\"dot l{colour}{hollow}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" data-tip=\"{2}\">\
                 <title>{2}</title></circle>",
                x.at(point.processes as f64),
                y.at(point.max as f64),
                E(&tip),
            );
        }
        body.push_str("</g>\n");
    }
    body.push_str("</svg>");
    numbers(body, points, names, broken);
    body.push_str("</figure>\n");
}

fn axes(body: &mut String, x: &Scale, y: &Scale, points: &[&RmrPoint]) {
    let base = HEIGHT - BOTTOM;
    for tick in (0..7).flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade))) {
        if y.holds(tick) {
            let at = y.at(tick);
            let _ = write!(
                body,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                WIDTH - RIGHT,
                LEFT - 7.0,
                at + 4.0
            );
        }
    }
    let mut sizes: Vec<usize> = points.iter().map(|point| point.processes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let at = x.at(size as f64);
        let _ = write!(
            body,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{base}\" y2=\"{}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{size}</text>",
            base + 4.0,
            base + 18.0
        );
    }
    let _ = writeln!(
        body,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{base}\" y2=\"{base}\"/>\
         <text class=\"name\" x=\"{}\" y=\"{}\" text-anchor=\"end\">processes N</text>\
         <text class=\"name\" x=\"4\" y=\"13\">references per passage</text>",
        WIDTH - RIGHT,
        WIDTH - RIGHT,
        HEIGHT - 6.0
    );
}

/// The same as numbers, for whoever cannot see or hover.
fn numbers(body: &mut String, points: &[&RmrPoint], names: &[&str], broken: &[Broken]) {
    let mut sizes: Vec<usize> = points.iter().map(|point| point.processes).collect();
    sizes.extend(broken.iter().map(|broken| broken.processes));
    sizes.sort_unstable();
    sizes.dedup();
    body.push_str(
        "<details><summary>As numbers</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Numbers\"><table class=\"numbers\"><thead><tr><th scope=\"col\">Largest found</th>",
    );
    for size in &sizes {
        let _ = write!(body, "<th scope=\"col\">{size}</th>");
    }
    body.push_str("<th scope=\"col\">proven, any N</th></tr></thead><tbody>");
    for name in names {
        if !points.iter().any(|point| point.algorithm == *name) {
            continue;
        }
        let _ = write!(body, "<tr><th scope=\"row\"><code>{}</code></th>", E(name));
        for size in &sizes {
            let point = points.iter().find(|p| p.algorithm == *name && p.processes == *size);
            match point {
                Some(point) => {
                    let spins = if point.remote_spinning { "∞ " } else { "" };
                    let _ = write!(body, "<td class=\"number\">{spins}{}</td>", point.max);
                }
                None if broken.iter().any(|b| b.algorithm == *name && b.processes == *size) => {
                    body.push_str("<td class=\"number\">✗ breaks</td>");
                }
                None => body.push_str("<td class=\"number\">–</td>"),
            }
        }
        let bound = points.iter().find(|p| p.algorithm == *name).and_then(|point| point.bound);
        let bound = bound.map_or("–".to_owned(), |bound| format!("≤ {bound}"));
        let _ = write!(body, "<td class=\"number\">{bound}</td></tr>");
    }
    body.push_str("</tbody></table></div></details>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(processes: usize, max: u64) -> RmrPoint {
        let (algorithm, model) = ("a<b".to_owned(), "cc".to_owned());
        RmrPoint {
            algorithm,
            model,
            processes,
            max,
            mean: 1.5,
            remote_spinning: false,
            bound: None,
        }
    }

    #[test]
    fn every_point_is_drawn_inside_the_frame_and_names_are_escaped() {
        let rmr = vec![point(2, 1), point(64, 100_000), point(256, 0)];
        let dossier = Dossier { rmr, ..Dossier::default() };
        let mut body = String::new();
        section(&mut body, &dossier);
        assert_eq!(body.matches("<circle").count(), 3);
        assert!(body.contains("a&lt;b") && !body.contains("a<b"));
        for part in body.split("<circle").skip(1) {
            let number = |key: &str| -> f64 {
                let rest = part.split(key).nth(1).expect("the attribute is there");
                rest.split('"').next().and_then(|n| n.parse().ok()).expect("it is a number")
            };
            assert!((0.0..=WIDTH).contains(&number("cx=\"")));
            assert!((0.0..=HEIGHT).contains(&number("cy=\"")));
        }
    }

    #[test]
    fn a_size_at_which_a_lock_breaks_is_named_and_so_is_a_proven_bound() {
        let rmr = vec![RmrPoint { bound: Some(31), ..point(2, 28) }, point(64, 28)];
        let (algorithm, because) = ("a<b".to_owned(), "it stood still".to_owned());
        let broken = vec![Broken { algorithm, processes: 8, because }];
        let mut body = String::new();
        section(&mut body, &Dossier { rmr, broken, ..Dossier::default() });
        let row = "<td class=\"number\">28</td><td class=\"number\">✗ breaks</td>\
                   <td class=\"number\">28</td><td class=\"number\">≤ 31</td>";
        assert!(body.contains(row) && body.contains("✗ it stood still"), "{body}");
        assert!(body.contains("N = 2: largest found 28") && !body.contains("at most"), "{body}");
    }

    #[test]
    fn a_single_point_has_a_place() {
        let scale = Scale::new([4.0].into_iter(), 0.0, 100.0);
        assert!((scale.at(4.0) - 50.0).abs() < 0.1);
    }

    #[test]
    fn nothing_measured_is_said() {
        let mut body = String::new();
        section(&mut body, &Dossier::default());
        assert!(body.contains("Not measured"));
    }
}
