//! One page with everything, which needs nothing but itself.
//!
//! Tables, plots and pictures are drawn here and can be read without a script; the script adds what moves: playing
//! a counterexample, the values under the pointer, setting a line of a plot apart.

mod escape;
mod lanes;
mod player;
mod plot;
mod program;
mod states;
mod tables;

use std::fmt::Write as _;

use super::dossier::Dossier;
use super::paper::Paper;
use super::table::Table;
use escape::grouped;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn page(dossier: &Dossier) -> String {
    let mut body = String::new();
    summary(&mut body, dossier);
    body.push_str("<main>\n");
    player::section(&mut body, dossier);
    body.push_str(
        "<section id=\"tables\"><h2>The papers’ tables, measured</h2>\n\
         <p class=\"lead\">Each cell says what is claimed, what was found, and how far that reaches. \
         <em>Exhausted up to N × S</em>: every interleaving of N processes and S sessions was explored. \
         What was not measured says so.</p>\n",
    );
    for paper in Paper::ALL {
        tables::table(&mut body, &Table::measured(paper, dossier));
    }
    body.push_str("</section>\n");
    plot::section(&mut body, dossier);
    states::section(&mut body, dossier);
    body.push_str("</main>\n");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <title>grouplock-lab: what the locks promise, and what is true</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <footer><p>Made by <code>grouplock-lab report</code>. The code that was explored is the code that ships.</p>\
         </footer>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// The head of the page: what it is about, in numbers.
fn summary(body: &mut String, dossier: &Dossier) {
    let states: u64 = dossier.explorations.iter().map(|exploration| exploration.states).sum();
    let convicted = dossier.explorations.iter().filter(|e| e.violated.is_some()).count();
    body.push_str(
        "<header class=\"top\"><p class=\"kicker\">grouplock-lab</p>\n\
         <h1>What the locks promise, and what is true</h1>\n\
         <p class=\"lead\">Published locks, run unchanged on a simulated memory: every interleaving of a few \
         processes explored, every remote reference counted.</p>\n<dl class=\"figures\">\n",
    );
    let figures = [
        ("algorithms", dossier.algorithms.len() as u64),
        ("explorations", dossier.explorations.len() as u64),
        ("states", states),
        ("counterexamples", convicted as u64),
    ];
    for (name, number) in figures {
        let _ = writeln!(body, "<div><dt>{name}</dt><dd>{}</dd></div>", grouped(number));
    }
    body.push_str(
        "</dl>\n<nav aria-label=\"Sections\"><a href=\"#traces\">Counterexamples</a>\
         <a href=\"#tables\">Tables</a><a href=\"#rmr\">Remote references</a>\
         <a href=\"#states\">States</a></nav></header>\n",
    );
}
