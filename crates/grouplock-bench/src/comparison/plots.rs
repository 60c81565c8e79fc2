//! The pictures of the page.

use grouplock_testing::svg::{Anchor, Ink, Svg};

use super::run::{Match, Probed, REFERENCE, Results, Score, Season};
use super::starvation::Roles;
use super::workload::Workload;

/// A picture and the name of its file.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) file: String,
    pub(super) caption: String,
    pub(super) svg: Svg,
}

/// All pictures for which there are figures.
pub(super) fn all(results: &Results) -> Vec<Plot> {
    let mut plots: Vec<Plot> = results.seasons.iter().filter_map(over_threads).collect();
    plots.extend(results.of(super::plan::halves(8)).map(waits));
    plots.extend(starvation(results));
    plots
}

/// The colour of `GroupLock`.
const OURS: Ink = Ink::Red;

/// The colour of a lock, and whether its line is dashed: the lines of locks in strict order are.
fn look(lock: &str) -> (Ink, bool) {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| lock.starts_with(prefix));
    let ink = if starts(&["GroupLock"]) {
        OURS
    } else if starts(&["std"]) {
        Ink::Blue
    } else if starts(&["parking_lot", "usync"]) {
        Ink::Green
    } else if starts(&["spin", "mcs"]) {
        Ink::Grey
    } else if starts(&["tokio", "async"]) {
        Ink::Violet
    } else if starts(&["crossbeam"]) {
        Ink::Teal
    } else {
        Ink::Amber
    };
    (ink, ["fair", "Fifo", "handover", "mcs", "tokio"].iter().any(|word| lock.contains(word)))
}

/// A logarithmic axis.
#[derive(Clone, Copy, Debug)]
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// From the power of ten below the smallest of `values` to the one above the largest.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value.log10().floor()), high.max(value.log10().ceil()));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // Also if all values are equal.
        if high - low < 1.0 {
            high = low + 1.0;
        }
        Axis { low, high, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        // Zero is at the end, as the smallest value.
        let exponent = if value > 0.0 { value.log10().max(self.low) } else { self.low };
        self.from + (exponent - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// The powers of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let low = self.low as i32;
        (low..=self.high as i32).map(|exponent| 10_f64.powi(exponent))
    }
}

/// Entries over the number of threads, as a ratio to the reference, for families that vary only
/// this number.
fn over_threads(season: &Season) -> Option<Plot> {
    let first = season.matches.first()?.workload;
    let bare = |game: &&Match| Workload { threads: first.threads, ..game.workload } == first;
    let games: Vec<&Match> = season.matches.iter().filter(bare).collect();
    if games.len() < 2 {
        return None;
    }
    let (left, right, top, bottom) = (64.0, 500.0, 56.0, 470.0);
    let ratios = |game: &&Match| {
        let reference = game.score(REFERENCE)?;
        let ratio = |score: &Score| score.ratio(reference);
        Some(game.scores.iter().map(ratio).collect::<Vec<_>>())
    };
    let table: Vec<_> = games.iter().map(ratios).collect::<Option<_>>()?;
    let y = Axis::around(table.iter().flatten().map(|ratio| ratio.median), bottom, top);
    let step = (right - left - 40.0) / (games.len() - 1) as f64;
    let x = |position: usize| left + 20.0 + step * position as f64;

    let title = format!("{}: entries per second, {REFERENCE} = 1", season.title);
    let mut svg = frame(760.0, 520.0, &title, "");
    for tick in y.ticks() {
        let at = y.place(tick);
        svg.line(&[(left, at), (right, at)], Ink::Grid, 1.0, false);
        svg.text((left - 8.0, at + 4.0), Anchor::End, Ink::Soft, false, &format!("{tick}"));
    }
    for (position, game) in games.iter().enumerate() {
        let threads = game.workload.threads.to_string();
        svg.text((x(position), bottom + 20.0), Anchor::Middle, Ink::Soft, false, &threads);
    }
    let middle = f64::midpoint(left, right);
    svg.text((middle, bottom + 40.0), Anchor::Middle, Ink::Soft, false, "threads");

    let mut labels = Vec::new();
    for (index, score) in games[0].scores.iter().enumerate() {
        let (ink, dashed) = look(score.lock);
        let width = if ink == OURS { 2.5 } else { 1.2 };
        let mut points = Vec::new();
        for (position, row) in table.iter().enumerate() {
            let ratio = row[index];
            let at = (x(position), y.place(ratio.median));
            let spread = [(at.0, y.place(ratio.low)), (at.0, y.place(ratio.high))];
            svg.line(&spread, ink, width / 2.0, false);
            svg.dot(at, width + 0.8, ink);
            points.push(at);
        }
        svg.line(&points, ink, width, dashed);
        labels.extend(points.last().map(|&(x, y)| (x, y, score.lock, ink)));
    }
    label(&mut svg, labels, right + 8.0, (top, bottom + 40.0));
    let file = format!("throughput-{}.svg", season.title.to_lowercase().replace(' ', "-"));
    Some(Plot { file, caption: title, svg })
}

/// Writes names next to the ends of their lines. It moves them apart if they would overlap.
fn label(svg: &mut Svg, mut labels: Vec<(f64, f64, &str, Ink)>, x: f64, (top, bottom): (f64, f64)) {
    const HEIGHT: f64 = 14.5;
    labels.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut places: Vec<f64> = Vec::new();
    for &(_, wanted, ..) in &labels {
        let free = places.last().map_or(top, |last| last + HEIGHT);
        places.push(wanted.max(free));
    }
    // If they are too far down, move them up, the last one first.
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - HEIGHT;
    }
    for ((from, end, name, ink), place) in labels.into_iter().zip(places) {
        svg.line(&[(from + 4.0, end), (x, place)], Ink::Grid, 0.8, false);
        svg.text((x + 3.0, place + 4.0), Anchor::Start, ink, ink == OURS, name);
    }
}

/// An empty picture with a title and a key.
fn frame(width: f64, height: f64, title: &str, key: &str) -> Svg {
    let mut svg = Svg::new(width, height, title);
    svg.text((16.0, 26.0), Anchor::Start, Ink::Text, true, title);
    if !key.is_empty() {
        svg.text((16.0, 46.0), Anchor::Start, Ink::Soft, false, key);
    }
    svg
}

/// Vertical lines at the powers of ten.
fn columns(svg: &mut Svg, x: &Axis, (top, bottom): (f64, f64), text: fn(f64) -> String) {
    for tick in x.ticks() {
        let at = x.place(tick);
        svg.line(&[(at, top), (at, bottom)], Ink::Grid, 1.0, false);
        svg.text((at, bottom + 18.0), Anchor::Middle, Ink::Soft, false, &text(tick));
    }
}

const ROW: f64 = 20.0;
const NAMES: f64 = 220.0;

/// Writes names in a column.
fn rows(svg: &mut Svg, names: &[&str], top: f64) {
    for (row, name) in names.iter().enumerate() {
        let (ink, _) = look(name);
        let at = (NAMES - 10.0, row_place(top, row) + 4.0);
        svg.text(at, Anchor::End, ink, ink == OURS, name);
    }
}

fn row_place(top: f64, row: usize) -> f64 {
    top + ROW * (row as f64 + 0.5)
}

/// How long threads waited in one workload.
fn waits(game: &Match) -> Plot {
    let top = 72.0;
    let bottom = row_place(top, game.scores.len());
    let all = game
        .scores
        .iter()
        .flat_map(|score| [score.observed.wait_p50 as f64, score.observed.wait_max as f64]);
    let x = Axis::around(all, NAMES, 730.0);
    let title = format!("Waits: {}", game.workload);
    let key = "dot: half wait no longer; bar: one in a hundred waits longer; ring: the longest";
    let mut svg = frame(760.0, bottom + 36.0, &title, key);
    columns(&mut svg, &x, (top, bottom), power_text);
    let names: Vec<&str> = game.scores.iter().map(|score| score.lock).collect();
    rows(&mut svg, &names, top);
    for (row, score) in game.scores.iter().enumerate() {
        let (ink, _) = look(score.lock);
        let y = row_place(top, row);
        let [p50, p99, max] =
            [score.observed.wait_p50, score.observed.wait_p99, score.observed.wait_max]
                .map(|wait| x.place(wait as f64));
        svg.line(&[(p50, y), (max, y)], ink, 1.2, false);
        svg.line(&[(p99, y - 5.0), (p99, y + 5.0)], ink, 2.0, false);
        svg.dot((p50, y), 4.0, ink);
        svg.ring((max, y), 4.0, ink);
    }
    Plot { file: "waits.svg".to_owned(), caption: title, svg }
}

/// A power of ten of nanoseconds.
fn power_text(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e3 => format!("{nanoseconds} ns"),
        ..1e6 => format!("{} µs", nanoseconds / 1e3),
        ..1e9 => format!("{} ms", nanoseconds / 1e6),
        _ => format!("{} s", nanoseconds / 1e9),
    }
}

/// The lone request, with a panel for each of its roles.
fn starvation(results: &Results) -> Option<Plot> {
    let of = |way| results.starvation.iter().filter(move |probed: &&Probed| probed.way == way);
    let names: Vec<&str> = of(Roles::OneAmongZeros).map(|probed| probed.lock).collect();
    if names.is_empty() {
        return None;
    }
    let top = 92.0;
    let bottom = row_place(top, names.len());
    let title = "A lone request against four threads that hold 2 ms back to back: wait in holds";
    let key = "dot: median; ring: the longest; arrow: given up. Dashed: the goals, 2 and 5 holds.";
    let mut svg = frame(940.0, bottom + 36.0, title, key);
    rows(&mut svg, &names, top);
    let waits = results
        .starvation
        .iter()
        .flat_map(|probed| [probed.waited.median, probed.waited.max].into_iter().flatten());
    // A wait of less than a tenth of a hold does not matter.
    let waits: Vec<f64> = waits.map(|wait| wait.max(0.1)).chain([0.1, 100.0]).collect();
    for (panel, way) in Roles::ALL.into_iter().enumerate() {
        let left = NAMES + 240.0 * panel as f64;
        let x = Axis::around(waits.iter().copied(), left, left + 205.0);
        let head = way.text().split(" (").next().unwrap_or_default();
        svg.text((left, top - 12.0), Anchor::Start, Ink::Text, false, head);
        columns(&mut svg, &x, (top, bottom), |tick| tick.to_string());
        for goal in [2.0, 5.0] {
            let at = x.place(goal);
            svg.line(&[(at, top), (at, bottom)], Ink::Soft, 1.0, true);
        }
        for (row, probed) in of(way).enumerate() {
            let (ink, _) = look(probed.lock);
            let y = row_place(top, row);
            let waited = probed.waited;
            let median = waited.median.map(|median| x.place(median));
            if waited.gave_up_after.is_some() {
                let from = median.unwrap_or(left);
                let tip = left + 214.0;
                svg.line(&[(from, y), (tip, y)], ink, 1.2, false);
                svg.line(&[(tip - 6.0, y - 4.0), (tip, y), (tip - 6.0, y + 4.0)], ink, 1.5, false);
            } else if let (Some(median), Some(max)) = (median, waited.max) {
                let max = x.place(max);
                svg.line(&[(median, y), (max, y)], ink, 1.2, false);
                svg.ring((max, y), 4.0, ink);
            }
            if let Some(median) = median {
                svg.dot((median, y), 4.0, ink);
            }
        }
    }
    Some(Plot { file: "starvation.svg".to_owned(), caption: title.to_owned(), svg })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_goes_from_power_to_power() {
        let axis = Axis::around([0.3, 42.0].into_iter(), 0.0, 300.0);
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [0.1, 1.0, 10.0, 100.0]);
        assert!((axis.place(1.0) - 100.0).abs() < 1e-9);
        assert!(axis.place(0.0).abs() < 1e-9);
        let nothing = Axis::around(std::iter::empty(), 0.0, 1.0);
        assert!(nothing.place(5.0).is_finite());
    }

    #[test]
    fn names_do_not_overlap() {
        let mut svg = Svg::new(1.0, 1.0, "");
        let labels = (0..9).map(|_| (0.0, 50.0, "x", Ink::Text)).collect();
        label(&mut svg, labels, 0.0, (0.0, 100.0));
        let text = svg.to_string();
        let places = text.split(" y=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut places: Vec<f64> = places.filter_map(|place| place.parse().ok()).collect();
        places.sort_by(f64::total_cmp);
        assert_eq!(places.len(), 9);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 14.0), "{places:?}");
    }
}
