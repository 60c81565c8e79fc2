//! The papers' tables, and the explorations. On narrow screens each row becomes a card, with the
//! headings beside the cells.

use super::{each, escaped, table, thousands};
use crate::explore::Verdict;
use crate::property::Property;
use crate::report::dossier::{Dossier, Exploration};
use crate::report::paper::Paper;
use crate::report::table::{Cell, Row, Support, Table};

pub(super) fn papers(dossier: &Dossier) -> String {
    let tables = each(Paper::ALL, |paper| {
        let Table { title, columns, rows, .. } = Table::measured(paper, dossier);
        let heads = ["Algorithm"].into_iter().chain(columns.iter().copied());
        let rows = each(rows, |of| row(&of, &columns));
        format!("<h3>{}</h3>\n{}", escaped(title), table("paper cards", title, heads, &rows))
    });
    format!(
        r#"<section id="tables"><h2>The papers’ tables, measured</h2>
<p class="lead">Each cell says what is claimed, what was found, and how far that reaches. <em>Exhausted up to N ×
S</em>: every interleaving of N processes and S sessions was explored. What was not measured says so.</p>
{tables}</section>
"#
    )
}

fn row(row: &Row, columns: &[&str]) -> String {
    let called = match row.called {
        Some(called) => format!("in the paper: {}", escaped(called)),
        None => "not in the paper’s table".to_owned(),
    };
    let cells = each(row.cells.iter().zip(columns), |(cell, column)| cell_of(cell, column));
    let (algorithm, source) = (escaped(&row.algorithm), escaped(row.source));
    format!(
        r#"<tr><th scope="row"><code>{algorithm}</code><span class="sub">{called}</span><span
class="sub">{source}</span></th>{cells}</tr>
"#
    )
}

fn cell_of(cell: &Cell, column: &str) -> String {
    let (class, sign) = match cell.support {
        Support::Supported => ("good", "✓"),
        Support::Partly => ("fair", "≈"),
        Support::Unmeasured => ("none", "–"),
        Support::Refuted => ("bad", "✗"),
    };
    let span =
        |class: &str, text: &str| format!(r#"<span class="{class}">{}</span>"#, escaped(text));
    let refuted = if cell.claimed.ends_with(", refuted") { " refuted" } else { "" };
    let claimed = span(&format!("claimed{refuted}"), &cell.claimed);
    // The paper's word is shown only if it differs from the claim.
    let printed = cell.printed.filter(|word| word.to_lowercase() != cell.claimed.to_lowercase());
    let printed = printed.map(|word| span("printed", &format!("paper prints {word}")));
    // Sizes such as "3 × 2" stay on one line.
    let how = cell.how.replace(" × ", "\u{a0}×\u{a0}");
    let how = if how.is_empty() { how } else { span("how", &how) };
    let (column, measured, printed) =
        (escaped(column), escaped(&cell.measured), printed.unwrap_or_default());
    format!(
        r#"<td class="{class}" data-label="{column}"><div class="cell">{claimed}{printed}<span class="measured"><i
aria-hidden="true">{sign}</i> {measured}</span>{how}</div></td>"#
    )
}

/// The explorations, with bars.
pub(super) fn states(dossier: &Dossier) -> String {
    if dossier.explorations.is_empty() {
        return r#"<section id="states"><h2>States explored</h2>
<p class="empty">Nothing was explored in this run.</p></section>
"#
        .to_owned();
    }
    let most = dossier.explorations.iter().map(|e| e.states).max().unwrap_or(1);
    let decades = (most.max(10) as f64).log10().ceil();
    let rows = each(&dossier.explorations, |exploration| {
        explored(exploration, dossier.is_mutex(&exploration.algorithm), decades)
    });
    let heads = ["Algorithm", "Size", "Verdict", "States", "Depth", "Seconds", "Checked"];
    let table = table("states cards", "States explored", heads, &rows);
    format!(
        r#"<section id="states"><h2>States explored</h2>
<p class="lead">A state counts once, up to renaming of processes and nodes. Each step of a bar’s scale is a factor of
ten.</p>
{table}</section>
"#
    )
}

fn explored(exploration: &Exploration, is_mutex: bool, decades: f64) -> String {
    let (class, word) = match exploration.verdict {
        Verdict::Holds => ("good", "✓ holds".to_owned()),
        Verdict::Limit => ("fair", "≈ limit".to_owned()),
        Verdict::Violated => {
            let property = exploration.violated.map_or("violated", Property::name);
            ("bad", format!("✗ {property}"))
        }
    };
    let width = 100.0 * (exploration.states.max(1) as f64).log10() / decades;
    let (algorithm, size) = (escaped(&exploration.algorithm), escaped(exploration.size(is_mutex)));
    let Exploration { depth, seconds, .. } = exploration;
    let (states, names) = (thousands(exploration.states), exploration.properties);
    let count = names.iter().count();
    format!(
        r#"<tr><th scope="row"><code>{algorithm}</code></th><td data-label="Size">{size}</td><td data-label="Verdict"
class="{class}"><span class="measured">{word}</span></td>
<td data-label="States" class="wide"><div class="bar"><span class="{class}"
style="width:{width:.1}%"></span></div><b>{states}</b></td>
<td data-label="Depth" class="number">{depth}</td><td data-label="Seconds" class="number">{seconds:.1}</td>
<td data-label="Checked"><details><summary>{count} properties</summary>{names}</details></td></tr>
"#
    )
}
