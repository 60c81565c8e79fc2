//! A picture of an execution in lanes: one lane for each process, time from left to right, and one
//! block for each section of its passages. The colour is the session.

use std::ops::Range;

use super::each;
use crate::trace::{ProcessAt, Section, Step};

const LANE: usize = 38;
/// Space above the lanes for the mark of the violation.
const TOP: usize = 20;
/// The number of colours for sessions. Further sessions share them.
pub(super) const COLOURS: u64 = 6;
/// The drawn sections: the name of each, the look of its key in a legend, and half of its height.
pub(super) const SECTIONS: [(Section, &str, &str, usize); 6] = [
    (Section::Entering, "entering", "doorway", 6),
    (Section::Doorway, "doorway", "doorway", 6),
    (Section::Waiting, "waiting", "waiting", 2),
    (Section::Withdrawing, "withdrawing", "waiting", 4),
    (Section::Inside, "inside", "inside", 13),
    (Section::Exit, "exit", "exit", 6),
];

/// The colour of a session. In a mutex, where all sessions are the same, the colour of a process.
pub(super) fn colour(session: u64, process: usize, is_mutex: bool) -> u64 {
    (if is_mutex { process as u64 } else { session.saturating_sub(1) }) % COLOURS
}

pub(super) fn processes(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.processes.len()).max().unwrap_or(0)
}

pub(super) fn svg(steps: &[Step], is_mutex: bool) -> String {
    let lanes = processes(steps);
    let height = TOP + lanes * LANE + 4;
    // Horizontal positions are percentages, so that the picture stretches and its letters do not.
    let at = |step: usize| 100.0 * step as f64 / steps.len().max(1) as f64;
    let drawn = each(0..lanes, |p| {
        let (middle, bottom) = (TOP + p * LANE + LANE / 2, TOP + (p + 1) * LANE - 3);
        let mut to = 0;
        // A block for each stay in one section.
        let stays = steps.chunk_by(|a, b| a.processes.get(p) == b.processes.get(p));
        let blocks = each(stays, |stay| {
            let from = to;
            to += stay.len();
            let process = stay[0].processes.get(p);
            process
                .map_or(String::new(), |process| block(process, from..to, p, middle, &at, is_mutex))
        });
        let moves = steps.iter().enumerate().filter(|(_, step)| step.process == p);
        let moves = each(moves, |(i, _)| {
            let x = at(i) + at(1) / 2.0;
            format!(r#"<circle class="move" cx="{x:.3}%" cy="{bottom}" r="1.6"/>"#)
        });
        format!(
            r#"<line class="rail" x1="0" x2="100%" y1="{middle}" y2="{middle}"/>
{blocks}{moves}
"#
        )
    });
    let (count, width, below) = (steps.len(), at(1), height - TOP);
    let end = at(count.saturating_sub(1)) + width / 2.0;
    format!(
        r#"<svg class="lanes" width="100%" height="{height}" role="img"
aria-label="Lanes of {lanes} processes over {count} steps">
{drawn}<line class="violation" x1="{end:.3}%" x2="{end:.3}%" y1="{TOP}" y2="{height}"/><text class="violation"
x="100%" y="14" text-anchor="end">✗ violation</text><rect class="cursor" x="0" y="{TOP}" width="{width:.3}%"
height="{below}"/></svg>
"#
    )
}

/// The stay of process `p` in one section: steps `from` to `to`, counted from zero, `to` not
/// included.
fn block(
    process: &ProcessAt,
    Range { start: from, end: to }: Range<usize>,
    p: usize,
    middle: usize,
    at: &impl Fn(usize) -> f64,
    is_mutex: bool,
) -> String {
    let drawn = SECTIONS.iter().find(|(section, ..)| *section == process.section);
    let Some((_, name, _, half)) = drawn else { return String::new() };
    let (x, width, y, height) = (at(from), at(to) - at(from), middle - half, 2 * half);
    let colour = colour(process.session, p, is_mutex);
    let session = if is_mutex { String::new() } else { format!(", session {}", process.session) };
    let first = from + 1;
    format!(
        r#"<rect class="seg {name} c{colour}" x="{x:.3}%" y="{y}" width="{width:.3}%" height="{height}"
rx="2"><title>process {p} {name}{session}: steps {first} to {to}</title></rect>"#
    )
}
