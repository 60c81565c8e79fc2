//! Remote memory references against the number of processes, both on logarithmic scales: a constant
//! is level, N has slope one.

use std::collections::BTreeSet;

use super::{each, escaped, table};
use crate::report::dossier::Dossier;
use crate::rmr::model::PerModel;
use crate::rmr::{Measurement, Model};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 44.0;
/// The number of colours for lines. Further lines share them and are dashed.
const COLOURS: usize = 8;

/// The titles of the plots.
const TITLES: PerModel<&str> = [
    "Cache-coherent (CC)",
    "CC, write-back",
    "CC, every write counts",
    "Distributed shared memory (DSM)",
];

pub(super) fn section(dossier: &Dossier) -> String {
    if dossier.rmr.is_empty() {
        return r#"<section id="rmr"><h2>Remote memory references</h2>
<p class="empty">Not measured in this run.</p></section>
"#
        .to_owned();
    }
    // In the order of their first points.
    let mut names: Vec<&str> = Vec::new();
    for point in &dossier.rmr {
        if !names.contains(&&*point.algorithm) {
            names.push(&point.algorithm);
        }
    }
    let legend = each(names.iter().enumerate(), |(i, name)| {
        let ((colour, dash), name) = (look(i), escaped(name));
        format!(
            r#"<button type="button" aria-pressed="false" data-series="{i}"><svg width="26" height="10"
aria-hidden="true"><line class="line l{colour}{dash}" x1="1" x2="25" y1="5" y2="5"/></svg>{name}</button>"#
        )
    });
    let counted = |model: &Model| dossier.rmr.iter().any(|point| point.model == *model);
    let models = Model::ALL.into_iter().filter(counted);
    let plots = each(models, |model| plot(dossier, model, &names));
    let broken = each(&dossier.broken, |broken| {
        format!("<p class=\"lead\">✗ {}.</p>\n", escaped(&broken.because))
    });
    format!(
        r#"<section id="rmr"><h2>Remote memory references</h2>
<p class="lead">The largest cost of a passage that was found, by the number of processes N: others may cost more.
Both scales are logarithmic. Hollow points waited on remote memory: no number bounds their cost. What is proven for
any N stands with the numbers. Choose an algorithm in the legend to set it apart.</p>
<div class="series" role="group" aria-label="Algorithms">{legend}</div>
<div class="plots">
{plots}</div>
{broken}</section>
"#
    )
}

/// The colour of the line of the `i`th algorithm, and whether it is dashed.
fn look(i: usize) -> (usize, &'static str) {
    (i % COLOURS, if i / COLOURS % 2 == 1 { " dashed" } else { "" })
}

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

fn plot(dossier: &Dossier, model: Model, names: &[&str]) -> String {
    let points: Vec<_> = dossier.rmr.iter().filter(|point| point.model == model).collect();
    let x = Scale::new(points.iter().map(|p| p.processes as f64), LEFT + 8.0, WIDTH - RIGHT - 8.0);
    let counts = points.iter().map(|p| p.max as f64 * 1.15);
    let y = Scale::new(counts.chain([1.0]), HEIGHT - BOTTOM, TOP);
    let sizes: BTreeSet<_> = points.iter().map(|point| point.processes).collect();
    let axes = axes(&x, &y, &sizes);
    let lines = each(names.iter().enumerate(), |(i, name)| {
        let mut line: Vec<_> = points.iter().filter(|point| point.algorithm == *name).collect();
        line.sort_by_key(|point| point.processes);
        let at = |point: &Measurement| (x.at(point.processes as f64), y.at(point.max as f64));
        let (colour, dash) = look(i);
        let dots = each(&line, |point| {
            let Measurement { processes, max, mean, remote_spinning, .. } = point;
            let [spins, hollow] =
                if *remote_spinning { [", waits on remote memory", " hollow"] } else { [""; 2] };
            let tip = escaped(format!(
                "{name}, N = {processes}: largest found {max}, mean {mean:.1}{spins}"
            ));
            let (cx, cy) = at(point);
            format!(
                r#"<circle class="dot l{colour}{hollow}" cx="{cx:.1}" cy="{cy:.1}" r="3.5"
data-tip="{tip}"><title>{tip}</title></circle>"#
            )
        });
        let path: Vec<_> =
            line.iter().map(|p| at(p)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let path = path.join(" ");
        format!(
            r#"<g class="of" data-series="{i}"><polyline class="line l{colour}{dash}" points="{path}"/>{dots}</g>
"#
        )
    });
    let (title, numbers) = (TITLES[model as usize], numbers(dossier, model, names, sizes));
    format!(
        r#"<figure class="plot"><figcaption>{title}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
aria-label="{title}: remote references per passage by number of processes">
{axes}{lines}</svg>{numbers}</figure>
"#
    )
}

fn axes(x: &Scale, y: &Scale, sizes: &BTreeSet<usize>) -> String {
    let (base, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let decades = (0..7).map(|decade| 10_f64.powi(decade));
    let ticks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
    let counts = each(ticks.filter(|&tick| y.holds(tick)), |tick| {
        let (at, left, below) = (y.at(tick), LEFT - 7.0, y.at(tick) + 4.0);
        format!(
            r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/><text class="tick" x="{left}"
y="{below:.1}" text-anchor="end">{tick}</text>"#
        )
    });
    let sizes = each(sizes, |&size| {
        let (at, below, text) = (x.at(size as f64), base + 4.0, base + 18.0);
        format!(
            r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{base}" y2="{below}"/><text class="tick" x="{at:.1}"
y="{text}" text-anchor="middle">{size}</text>"#
        )
    });
    let below = HEIGHT - 6.0;
    format!(
        r#"{counts}{sizes}<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/><text class="name"
x="{right}" y="{below}" text-anchor="end">processes N</text><text class="name" x="4" y="13">references per
passage</text>
"#
    )
}

/// The same as numbers, for readers who cannot see or hover.
fn numbers(dossier: &Dossier, model: Model, names: &[&str], mut sizes: BTreeSet<usize>) -> String {
    sizes.extend(dossier.broken.iter().map(|broken| broken.processes));
    let cell = |text: String| format!(r#"<td class="number">{text}</td>"#);
    let rows = each(names, |name| {
        let of = |&size: &usize| dossier.counted(name, model, size);
        let Some(any) = sizes.iter().find_map(of) else { return String::new() };
        let costs = each(&sizes, |size| {
            cell(match of(size) {
                Some(point) if point.remote_spinning => format!("∞ {}", point.max),
                Some(point) => point.max.to_string(),
                None if dossier.breaks(name, *size) => "✗ breaks".to_owned(),
                None => "–".to_owned(),
            })
        });
        let bound = cell(any.bound.map_or("–".to_owned(), |bound| format!("≤ {bound}")));
        let name = escaped(name);
        format!(r#"<tr><th scope="row"><code>{name}</code></th>{costs}{bound}</tr>"#)
    });
    let sizes = sizes.iter().map(ToString::to_string);
    let heads = ["Largest found".to_owned()].into_iter().chain(sizes);
    let table = table("numbers", "Numbers", heads.chain(["proven, any N".to_owned()]), &rows);
    format!("<details><summary>As numbers</summary>{table}</details>")
}
