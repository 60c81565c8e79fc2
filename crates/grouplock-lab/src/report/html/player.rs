//! Counterexamples that can be played forward and backward.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_algorithms::claims::Text;
use serde_json::{Value, json};

use super::{each, escaped, lanes, script, table};
use crate::property::Property;
use crate::registry;
use crate::report::dossier::{Dossier, Exploration};
use crate::trace::Step;

pub(super) fn section(dossier: &Dossier) -> String {
    let found = dossier.explorations.iter().filter(|e| !e.trace.is_empty()).enumerate();
    let traces = each(found, |(i, exploration)| {
        trace(i, exploration, dossier.is_mutex(&exploration.algorithm))
    });
    let lead = if traces.is_empty() {
        r#"<p class="empty">This run found none: at the sizes explored every claim that was checked holds.</p>"#
    } else {
        r#"<p class="lead">Executions that break a claim, with as few choices as possible. Step with the buttons, the slider, or the arrow
keys (space plays); click a lane or a line to go there. An address that ends in <code>#trace-0@12</code> opens at
that step.</p>"#
    };
    format!(
        r#"<section id="traces"><h2>Counterexamples</h2>
{lead}
{traces}</section>
"#
    )
}

fn trace(number: usize, exploration: &Exploration, is_mutex: bool) -> String {
    let steps = &exploration.trace;
    let property = exploration.violated.map_or("violation", Property::name);
    let (algorithm, size) = (escaped(&exploration.algorithm), escaped(exploration.size(is_mutex)));
    let because = escaped(exploration.because.as_deref().unwrap_or("A claim is violated"));
    let (picture, controls) = (picture(steps, is_mutex), controls(steps.len()));
    let texts: Vec<_> =
        registry::all().iter().flat_map(|subject| subject.claims.text.files()).collect();
    let played: Vec<_> = steps.iter().map(|step| at_its_line(step, &texts)).collect();
    let program = excerpts(&played, &texts);
    let data = script(&json!({
        "mutex": is_mutex, "colours": lanes::COLOURS, "steps": played, "program": program
    }));
    let listing = listing(steps, is_mutex);
    format!(
        r#"<article class="trace" id="trace-{number}" tabindex="0" aria-labelledby="trace-{number}-name">
<h3 id="trace-{number}-name"><code>{algorithm}</code> <span class="size">{size}</span> <span class="badge bad">✗
{property}</span></h3>
<p class="because">{because}.</p>
{picture}{controls}<div class="panes"><div class="now"><div class="card" aria-live="polite"></div><div class="who"
aria-label="Processes"></div></div>
<div class="memory" aria-label="Registers"></div></div>
{listing}<script type="application/json" class="data">{data}</script>
</article>
"#
    )
}

/// The lanes, with the processes' names beside them and a legend below.
fn picture(steps: &[Step], is_mutex: bool) -> String {
    let names = each(0..lanes::processes(steps), |p| format!("<li>P{p}</li>"));
    let (width, svg) = (steps.len() * 7, lanes::svg(steps, is_mutex));
    let processes = || steps.iter().flat_map(|step| &step.processes);
    let sessions = processes().map(|process| process.session);
    let sessions = sessions.filter(|&session| session > 0 && !is_mutex);
    let sessions = each(sessions.collect::<BTreeSet<_>>(), |session| {
        let colour = lanes::colour(session, 0, false);
        format!(r#"<li><span class="key inside c{colour}"></span>session {session}</li>"#)
    });
    let shown = |section| processes().any(|process| process.section == section);
    let sections = lanes::SECTIONS.into_iter().filter(|&(section, ..)| shown(section));
    let sections = each(sections, |(_, name, class, _)| {
        format!(r#"<li><span class="key {class}"></span>{name}</li>"#)
    });
    format!(
        r#"<div class="picture"><ul class="names" aria-hidden="true">{names}</ul><div class="scroll" tabindex="0"
role="region" aria-label="Lanes"><div class="stretch" style="min-width:{width}px">
{svg}</div></div></div>
<ul class="legend">{sessions}{sections}</ul>
"#
    )
}

fn controls(steps: usize) -> String {
    let buttons = [
        ("first", "First step", "|◀\u{fe0e}"),
        ("previous", "Previous step", "◀\u{fe0e}"),
        ("play", "Play", "▶\u{fe0e} Play"),
        ("next", "Next step", "▶\u{fe0e}"),
        ("last", "Last step", "▶\u{fe0e}|"),
    ];
    let buttons = each(buttons, |(act, label, sign)| {
        format!(
            r#"<button type="button" data-act="{act}" aria-label="{label}" title="{label}">{sign}</button>"#
        )
    });
    format!(
        r#"<div class="controls" role="group" aria-label="Playback">{buttons}<input type="range" min="1"
max="{steps}" value="1" aria-label="Step"><output>step 1 of {steps}</output></div>
"#
    )
}

fn listing(steps: &[Step], is_mutex: bool) -> String {
    let rows = each(steps, |step| {
        let Step { step: number, process, operation, .. } = step;
        let line = escaped(step.paper_line.as_deref().unwrap_or_default());
        let (operation, inside) = (escaped(operation), step.inside(is_mutex, "P"));
        format!(
            r#"<tr data-step="{number}"><td>{number}</td><td>P{process}</td><td>{line}</td><td><code>{operation}</code></td><td>{inside}</td></tr>
"#
        )
    });
    let heads = ["Step", "Process", "Line", "What", "Inside"];
    let table = table("steps", "All steps", heads, &rows);
    let table = table.replacen("scroll", "scroll tall", 1);
    format!("<details class=\"listing\"><summary>All steps</summary>{table}</details>\n")
}

/// The text of the file of this name.
fn named(file: &str, texts: &[Text]) -> Option<Text> {
    texts.iter().find(|text| text.file.rsplit(['/', '\\']).next() == Some(file)).copied()
}

/// The step, with the line that has its paper line now. A text may have changed since the step was
/// recorded.
fn at_its_line(step: &Step, texts: &[Text]) -> Step {
    let line = || {
        let (file, line) = step.source.as_deref()?.rsplit_once(':')?;
        let (text, line) = (named(file, texts)?, line.parse::<u32>().ok()?);
        let lines = 1..=text.contents.lines().count() as u32;
        let same = lines.filter(|&at| text.paper_line(at) == step.paper_line.as_deref());
        Some(format!("{file}:{}", same.min_by_key(|at| at.abs_diff(line))?))
    };
    Step { source: line().or_else(|| step.source.clone()), ..step.clone() }
}

/// How many lines to show around each line that is executed.
const AROUND: usize = 4;

/// The lines that `steps` execute and those around them, by the file's name.
fn excerpts(steps: &[Step], texts: &[Text]) -> BTreeMap<String, Value> {
    let mut ranges: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for step in steps {
        let place = step.source.as_deref().and_then(|source| source.rsplit_once(':'));
        let Some((file, line)) = place else { continue };
        let Ok(line) = line.parse::<usize>() else { continue };
        let range = ranges.entry(file).or_insert((line, line));
        *range = (range.0.min(line), range.1.max(line));
    }
    let excerpt = |(file, (first, last)): (&str, (usize, usize))| {
        let text = named(file, texts)?;
        let from = first.saturating_sub(AROUND).max(1);
        let lines = text.contents.lines().skip(from - 1).take(last + AROUND + 1 - from);
        Some((file.to_owned(), json!({ "from": from, "lines": lines.collect::<Vec<_>>() })))
    };
    ranges.into_iter().filter_map(excerpt).collect()
}
