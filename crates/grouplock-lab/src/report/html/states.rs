//! What was explored, with bars.

use std::fmt::Write as _;

use super::escape::{Escaped as E, grouped};
use crate::explore::Verdict;
use crate::report::dossier::{Dossier, Exploration};

pub(super) fn section(body: &mut String, dossier: &Dossier) {
    body.push_str("<section id=\"states\"><h2>States explored</h2>\n");
    if dossier.explorations.is_empty() {
        body.push_str("<p class=\"empty\">Nothing was explored in this run.</p></section>\n");
        return;
    }
    body.push_str(
        "<p class=\"lead\">A state counts once, up to renaming of processes and nodes. Each step of a bar’s \
         scale is a factor of ten.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"States explored\">\n\
         <table class=\"states cards\"><thead><tr><th scope=\"col\">Algorithm</th><th scope=\"col\">Size</th>\
         <th scope=\"col\">Verdict</th><th scope=\"col\" class=\"wide\">States</th><th scope=\"col\">Depth</th>\
         <th scope=\"col\">Seconds</th><th scope=\"col\">Checked</th></tr></thead>\n<tbody>\n",
    );
    let most = dossier.explorations.iter().map(|e| e.states).max().unwrap_or(1);
    let decades = (most.max(10) as f64).log10().ceil();
    for exploration in &dossier.explorations {
        row(body, exploration, dossier.is_mutex(&exploration.algorithm), decades);
    }
    body.push_str("</tbody></table></div></section>\n");
}

fn row(body: &mut String, exploration: &Exploration, is_mutex: bool, decades: f64) {
    let (class, word) = match exploration.verdict {
        Verdict::Holds => ("good", "✓ holds".to_owned()),
        Verdict::Limit => ("fair", "≈ limit".to_owned()),
        Verdict::Violated => {
            let property = exploration.violated.map_or("violated", |property| property.name());
            ("bad", format!("✗ {property}"))
        }
    };
    let width = 100.0 * (exploration.states.max(1) as f64).log10() / decades;
    let names: Vec<_> = exploration.properties.iter().map(|property| property.name()).collect();
    let _ = writeln!(
        body,
        "<tr><th scope=\"row\"><code>{}</code></th><td data-label=\"Size\">{}</td>\
         <td data-label=\"Verdict\" class=\"{class}\"><span class=\"measured\">{}</span></td>\
         <td data-label=\"States\" class=\"wide\"><div class=\"bar\"><span class=\"{class}\" \
         style=\"width:{width:.1}%\"></span></div><b>{}</b></td>\
         <td data-label=\"Depth\" class=\"number\">{}</td><td data-label=\"Seconds\" class=\"number\">{:.1}</td>\
         <td data-label=\"Checked\"><details><summary>{} properties</summary>{}</details></td></tr>",
        E(&exploration.algorithm),
        E(&exploration.size(is_mutex)),
        E(&word),
        grouped(exploration.states),
        exploration.depth,
        exploration.seconds,
        names.len(),
        E(&names.join(", ")),
    );
}
