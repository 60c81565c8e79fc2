//! A paper's table. On narrow screens each row becomes a card, with the headings beside the cells.

use std::fmt::Write as _;

use super::escape::Escaped as E;
use crate::report::table::{Cell, Standing, Table};

pub(super) fn table(body: &mut String, table: &Table) {
    let _ = write!(
        body,
        "<h3>{0}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n\
         <table class=\"paper cards\"><thead><tr><th scope=\"col\">Algorithm</th>",
        E(table.title)
    );
    for column in &table.columns {
        let _ = write!(body, "<th scope=\"col\">{}</th>", E(column));
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let _ = write!(body, "<tr><th scope=\"row\"><code>{}</code>", E(&row.algorithm));
        match row.called {
            Some(called) => {
                let _ = write!(body, "<span class=\"sub\">in the paper: {}</span>", E(called));
            }
            None => body.push_str("<span class=\"sub\">not in the paper’s table</span>"),
        }
        let _ = write!(body, "<span class=\"sub\">{}</span></th>", E(row.source));
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            cell_of(body, cell, column);
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
}

fn cell_of(body: &mut String, cell: &Cell, column: &str) {
    let (class, sign) = match cell.standing {
        Standing::Supported => ("good", "✓"),
        Standing::Partly => ("fair", "≈"),
        Standing::Unmeasured => ("none", "–"),
        Standing::Refuted => ("bad", "✗"),
    };
    let refuted = if cell.claimed.ends_with(", refuted") { " refuted" } else { "" };
    let _ = write!(
        body,
        "<td class=\"{class}\" data-label=\"{}\"><div class=\"cell\"><span class=\"claimed{refuted}\">{}</span>",
        E(column),
        E(&cell.claimed)
    );
    // The paper's word is worth the room only where it is not the claim once more.
    let same = |printed: &str| printed.to_lowercase() == cell.claimed.to_lowercase();
    if let Some(printed) = cell.printed.filter(|printed| !same(printed)) {
        let _ = write!(body, "<span class=\"printed\">paper prints {}</span>", E(printed));
    }
    let _ = write!(
        body,
        "<span class=\"measured\"><i aria-hidden=\"true\">{sign}</i> {}</span>",
        E(&cell.measured)
    );
    if !cell.how.is_empty() {
        let _ = write!(body, "<span class=\"how\">{}</span>", E(&unbroken(&cell.how)));
    }
    body.push_str("</div></td>");
}

/// Keeps sizes such as "3 × 2" on one line.
fn unbroken(text: &str) -> String {
    text.replace(" × ", "\u{a0}×\u{a0}")
}
