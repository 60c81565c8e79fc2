//! Counterexamples that can be played forward and back.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::escape::{Escaped as E, json};
use super::lanes;
use super::program::{self, Excerpt};
use crate::registry;
use crate::report::dossier::{Dossier, Exploration};
use crate::trace::{Section, Step};

/// What the script needs of a trace.
#[derive(Serialize)]
struct Played<'a> {
    mutex: bool,
    colours: u64,
    steps: &'a [Step],
    program: BTreeMap<String, Excerpt>,
}

pub(super) fn section(body: &mut String, dossier: &Dossier) {
    body.push_str("<section id=\"traces\"><h2>Counterexamples</h2>\n");
    let found: Vec<_> = dossier.explorations.iter().filter(|e| !e.trace.is_empty()).collect();
    if found.is_empty() {
        body.push_str(
            "<p class=\"empty\">This run found none: at the sizes explored every claim that was checked holds.</p>\n\
             </section>\n",
        );
        return;
    }
    body.push_str(
        "<p class=\"lead\">Shortest executions that break a claim. Step with the buttons, the slider, or the arrow \
         keys (space plays); click a lane or a line to go there. An address that ends in <code>#trace-0@12</code> opens \
         at that step.</p>\n",
    );
    for (i, exploration) in found.iter().enumerate() {
        trace(body, i, exploration, dossier.is_mutex(&exploration.algorithm));
    }
    body.push_str("</section>\n");
}

fn trace(body: &mut String, number: usize, exploration: &Exploration, is_mutex: bool) {
    let steps = &exploration.trace;
    let property = exploration.violated.map_or("violation", |property| property.name());
    let _ = write!(
        body,
        "<article class=\"trace\" id=\"trace-{number}\" tabindex=\"0\" aria-labelledby=\"trace-{number}-name\">\n\
         <h3 id=\"trace-{number}-name\"><code>{}</code> <span class=\"size\">{}</span> \
         <span class=\"badge bad\">✗ {property}</span></h3>\n<p class=\"because\">{}.</p>\n",
        E(&exploration.algorithm),
        E(&exploration.size(is_mutex)),
        E(exploration.because.as_deref().unwrap_or("A claim is violated")),
    );
    picture(body, steps, is_mutex);
    controls(body, steps.len());
    body.push_str(
        "<div class=\"panes\"><div class=\"now\"><div class=\"card\" aria-live=\"polite\"></div>\
         <div class=\"who\" aria-label=\"Processes\"></div></div>\n\
         <div class=\"memory\" aria-label=\"Registers\"></div></div>\n",
    );
    listing(body, steps, is_mutex);
    let texts: Vec<_> = registry::all().iter().map(|subject| subject.claims.text).collect();
    let played = Played {
        mutex: is_mutex,
        colours: lanes::COLOURS,
        steps,
        program: program::excerpts(steps, &texts),
    };
    let _ = writeln!(
        body,
        "<script type=\"application/json\" class=\"data\">{}</script>\n</article>",
        json(&played)
    );
}

/// The lanes, with the processes' names beside them and a legend below.
fn picture(body: &mut String, steps: &[Step], is_mutex: bool) {
    body.push_str("<div class=\"picture\"><ul class=\"names\" aria-hidden=\"true\">");
    for p in 0..lanes::processes(steps) {
        let _ = write!(body, "<li>P{p}</li>");
    }
    let width = steps.len() * 7;
    let _ = writeln!(
        body,
        "</ul><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Lanes\">\
         <div class=\"stretch\" style=\"min-width:{width}px\">"
    );
    lanes::svg(body, steps, is_mutex);
    body.push_str("</div></div></div>\n<ul class=\"legend\">");
    if !is_mutex {
        let stages = steps.iter().flat_map(|step| &step.stages);
        let mut sessions: Vec<u64> = stages.map(|stage| stage.session).filter(|&s| s > 0).collect();
        sessions.sort_unstable();
        sessions.dedup();
        for session in sessions {
            let colour = lanes::colour(session, 0, false);
            let _ = write!(
                body,
                "<li><span class=\"key inside c{colour}\"></span>session {session}</li>"
            );
        }
    }
    for (section, name, class) in [
        (Section::Entering, "entering", "doorway"),
        (Section::Doorway, "doorway", "doorway"),
        (Section::Waiting, "waiting", "waiting"),
        (Section::Inside, "inside", "inside"),
        (Section::Exit, "exit", "exit"),
    ] {
        let mut stages = steps.iter().flat_map(|step| &step.stages);
        if stages.any(|stage| stage.section == section) {
            let _ = write!(body, "<li><span class=\"key {class}\"></span>{name}</li>");
        }
    }
    body.push_str("</ul>\n");
}

fn controls(body: &mut String, steps: usize) {
    body.push_str("<div class=\"controls\" role=\"group\" aria-label=\"Playback\">");
    for (act, label, sign) in [
        ("first", "First step", "|◀\u{fe0e}"),
        ("previous", "Previous step", "◀\u{fe0e}"),
        ("play", "Play", "▶\u{fe0e} Play"),
        ("next", "Next step", "▶\u{fe0e}"),
        ("last", "Last step", "▶\u{fe0e}|"),
    ] {
        let _ = write!(
            body,
            "<button type=\"button\" data-act=\"{act}\" aria-label=\"{label}\" title=\"{label}\">{sign}</button>"
        );
    }
    let _ = writeln!(
        body,
        "<input type=\"range\" min=\"1\" max=\"{steps}\" value=\"1\" aria-label=\"Step\">\
         <output>step 1 of {steps}</output></div>"
    );
}

/// All steps, one line each.
fn listing(body: &mut String, steps: &[Step], is_mutex: bool) {
    body.push_str(
        "<details class=\"listing\"><summary>All steps</summary><div class=\"scroll tall\" tabindex=\"0\" role=\"region\" \
         aria-label=\"All steps\"><table class=\"steps\"><thead><tr><th scope=\"col\">Step</th>\
         <th scope=\"col\">Process</th><th scope=\"col\">Line</th><th scope=\"col\">What</th>\
         <th scope=\"col\">Inside</th></tr></thead>\n<tbody>\n",
    );
    for step in steps {
        let inside = step.inside.iter().map(|occupant| {
            let process = occupant.process;
            if is_mutex {
                format!("P{process}")
            } else {
                format!("P{process}:s{}", occupant.session)
            }
        });
        let _ = writeln!(
            body,
            "<tr data-step=\"{}\"><td>{}</td><td>P{}</td><td>{}</td><td><code>{}</code></td><td>{}</td></tr>",
            step.step,
            step.step,
            step.process,
            E(step.paper_line.as_deref().unwrap_or("")),
            E(&step.operation),
            E(&inside.collect::<Vec<_>>().join(" ")),
        );
    }
    body.push_str("</tbody></table></div></details>\n");
}
