//! The generated parts of the README: a recording of `grouplock demo`, and figures from the
//! benchmarks.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use grouplock_testing::svg::{Anchor, Ink, Svg, escaped};

use crate::run::{LIMIT, Program, root};

const RECORDING: &str = "docs/images/demo.svg";
const BEGIN: &str = "<!-- figures: made by `cargo xtask readme` -->";
const END: &str = "<!-- end of figures -->";

/// The README must be readable in a minute.
const WORDS: usize = 800;

/// The figures: the page, the first words of its row, and the name in the README.
const FIGURES: &[(&str, &str, &str)] = &[
    ("comparison.md", "uncontended enter + leave: time", "alone: time"),
    ("comparison.md", "async, uncontended: time", "alone, a task: time"),
    ("comparison.md", "one session, 8 threads: entries", "all share, 8 threads: entries"),
    ("comparison.md", "two sessions, 8 threads: entries", "two groups, 8 threads: entries"),
    ("comparison.md", "uncontended `exclusive`: time", "`exclusive`, alone: time"),
    ("comparison.md", "a `try_enter` that fails: time", "a `try_enter` that fails: time"),
    ("comparison.md", "all `exclusive`, 8 threads: entries", "all `exclusive`, 8 threads: entries"),
];

/// Makes the recording from a run of the program, and inserts the figures.
pub(crate) fn make() -> Result<(), String> {
    Program::cargo(&["build", "--release", "-p", "grouplock-cli"]).run()?;
    let shown = record(&root().join("target/release/grouplock"))?;
    write(RECORDING, &drawn("grouplock demo", &shown))?;
    let text = read("README.md")?;
    write("README.md", &with_figures(&text, &figures()?)?)
}

/// Checks that both are up to date, and that the README is short.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    let text = read("README.md")?;
    if with_figures(&text, &figures()?)? != text {
        return Err("the figures of the README are not those of docs/benchmarks; \
                    `cargo xtask readme` makes them"
            .to_owned());
    }
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let words = text.split_whitespace().filter(is_word).count();
    if words > WORDS {
        return Err(format!("the README has {words} words; {WORDS} are enough"));
    }
    let recording = read(RECORDING)?;
    let shown = record(program)?;
    let missing = |line: &&(Duration, String)| !recording.contains(&escaped(&timeless(&line.1)));
    if let Some((_, line)) = shown.iter().find(missing) {
        return Err(format!("`{RECORDING}` does not show `{line}`; `cargo xtask readme` makes it"));
    }
    Ok(())
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("`{path}`: {error}"))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(root().join(path), text).map_err(|error| format!("`{path}`: {error}"))
}

/// The lines of a demonstration, each with the time of its arrival.
fn record(program: &Path) -> Result<Vec<(Duration, String)>, String> {
    let (mut text, mut lines) = (String::new(), Vec::new());
    let start = Instant::now();
    let ended = Program::new(program).arguments(&["demo"]).watched(LIMIT, |written| {
        text.push_str(written);
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        let at = start.elapsed();
        lines.extend(text.drain(..complete).as_str().lines().map(|line| (at, line.to_owned())));
        None
    });
    ended.trouble.map_or(Ok(lines), Err)
}

/// The part of a line that is the same in every run: the text before the first measured time, or
/// after it. For a bar, its name.
fn timeless(line: &str) -> String {
    let line = line.split_once(" s  ").map_or(line, |(_, rest)| rest);
    line.trim_end_matches(['#', '.', ' ']).to_owned()
}

/// A terminal as an animated picture. It first shows all lines, which is also the picture without
/// animation. Then each line appears at its time, again and again. Readers who prefer less motion
/// see all lines.
fn drawn(command: &str, lines: &[(Duration, String)]) -> String {
    // First all lines, then the command.
    let (complete, command_only) = (Duration::from_secs(4), Duration::from_millis(800));
    let (line_height, title) = (20.0, format!("A recording of {command}"));
    let height = (lines.len() + 1) as f64 * line_height + 36.0;
    let end = lines.last().map_or(Duration::ZERO, |(at, _)| *at);
    let whole = (complete + command_only + end).as_secs_f64() + 1.0;
    let percent = |at: Duration| at.as_secs_f64() / whole * 100.0;
    let empty = percent(complete);
    let mut svg = Svg::new(780.0, height, &title).monospaced();
    let text = |svg: &mut Svg, row: usize, ink, text: &str| {
        let at = (16.0, 32.0 + row as f64 * line_height);
        svg.text(at, Anchor::Start, ink, false, text);
    };
    text(&mut svg, 0, Ink::Green, &format!("$ {command}"));
    svg.style("@media (prefers-reduced-motion: no-preference) {\n");
    for (number, (at, line)) in lines.iter().enumerate() {
        let appears = percent(complete + command_only + *at);
        svg.style(&format!(
            "@keyframes l{number} {{ 0%,{empty:.2}% {{ opacity: 1 }} {:.2}%,{appears:.2}% {{ opacity: 0 }} \
             {:.2}%,100% {{ opacity: 1 }} }} .l{number} {{ animation: l{number} {whole:.1}s infinite }}\n",
            empty + 0.01,
            appears + 0.01
        ));
        let ink = match line {
            line if line.contains("$ grouplock") => Ink::Blue,
            line if line.contains(" waits") => Ink::Amber,
            line if line.contains(" is inside") => Ink::Green,
            _ => Ink::Text,
        };
        svg.group(&format!("l{number}"), |svg| text(svg, number + 1, ink, line));
    }
    svg.style("}\n");
    svg.to_string()
}

/// The table of figures.
fn figures() -> Result<String, String> {
    let mut table = String::from("| | `GroupLock` takes or gives | |\n|---|---|---|\n");
    for (page, row, name) in FIGURES {
        let text = read(&format!("docs/benchmarks/{page}"))?;
        let line = text.lines().find(|line| line.starts_with(&format!("| {row} |")));
        let figure = line.and_then(figure).ok_or_else(|| {
            format!("docs/benchmarks/{page} has no row `{row}` with a goal and a ratio")
        })?;
        _ = writeln!(table, "| {name} | {figure} |");
    }
    Ok(table)
}

/// The ratio in a row of goals, its peer, and which one is better.
fn figure(line: &str) -> Option<String> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let (goal, reached) = (cells.get(2)?, cells.get(3)?);
    let peer = goal.split_once(" × ")?.1;
    let ratio: f64 = reached.split(' ').next()?.parse().ok()?;
    let less_is_better = goal.starts_with('≤');
    let better = if (ratio < 1.0) == less_is_better { "better" } else { "**worse**" };
    Some(format!("{reached} {peer} | {better}"))
}

/// The text with the figures between the marks.
fn with_figures(text: &str, figures: &str) -> Result<String, String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{BEGIN}\n{figures}{END}{after}"))
    });
    parts.ok_or_else(|| format!("the README lacks the lines `{BEGIN}` and `{END}`"))
}

#[cfg(test)]
mod tests {
    use grouplock_testing::svg::well_formed;

    use super::*;

    #[test]
    fn a_figure_tells_who_is_better() {
        let row = |goal, reached| format!("| a | {goal} | {reached} | met |");
        let figure = |goal, reached| figure(&row(goal, reached)).expect("it is one");
        assert_eq!(
            figure("≤ 0.9 × std", "0.81 (0.79 – 0.82) ×"),
            "0.81 (0.79 – 0.82) × std | better"
        );
        assert!(figure("≤ 1 × std", "1.06 ×").ends_with("**worse**"));
        assert!(figure("≥ 1 × std", "1.06 ×").ends_with("| better"));
        assert!(figure("≥ 1 × std", "0.74 ×").ends_with("**worse**"));
    }

    #[test]
    fn a_recording_shows_each_line_and_when_it_came() {
        let lines = [(0, "job 1 waits < 2"), (4200, "job 1 is inside")];
        let lines = lines.map(|(at, line)| (Duration::from_millis(at), line.to_owned()));
        let svg = drawn("grouplock demo", &lines);
        assert_eq!(well_formed(&svg), Ok(()));
        assert!(
            svg.contains(">job 1 waits &lt; 2</text>") && svg.contains(">$ grouplock demo</text>")
        );
        // Of ten seconds, four are for the whole and 0.8 for the command.
        assert!(
            svg.contains("l1 { 0%,40.00% { opacity: 1 } 40.01%,90.00% { opacity: 0 } 90.01%"),
            "{svg}"
        );
    }

    #[test]
    fn what_differs_between_runs_is_left_out() {
        assert_eq!(timeless(" 0.5 s  job 2 waits"), "job 2 waits");
        assert_eq!(timeless("job 3  model B      ....####"), "job 3  model B");
    }

    #[test]
    fn figures_are_put_between_the_marks() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb");
        let new = with_figures(&text, "new\n").expect("the marks are there");
        assert_eq!(new, format!("a\n{BEGIN}\nnew\n{END}\nb"));
        assert!(with_figures("a", "new").is_err());
    }
}
