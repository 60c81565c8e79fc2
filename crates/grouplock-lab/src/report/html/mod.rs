//! One self-contained page with all results.
//!
//! This code draws tables, plots and pictures, which need no script. The script adds motion: it
//! plays a counterexample, shows the values under the pointer, and highlights one line of a plot.

mod lanes;
mod player;
mod plot;
mod tables;

use std::fmt::Display;

use super::dossier::Dossier;
use super::grouped;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn page(dossier: &Dossier) -> String {
    let (summary, traces) = (summary(dossier), player::section(dossier));
    let (papers, references) = (tables::papers(dossier), plot::section(dossier));
    let states = tables::states(dossier);
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>grouplock-lab: what the locks promise, and what is true</title>
<link rel="icon" href="data:,">
<style>
{STYLE}</style>
</head>
<body>
{summary}<main>
{traces}{papers}{references}{states}</main>
<footer><p>Made by <code>grouplock-lab report</code>. The code that was explored is the code that ships.</p></footer>
<div id="tip" role="status" hidden></div>
<script>
{SCRIPT}</script>
</body>
</html>
"#
    )
}

/// The head of the page: what it is about, in numbers.
fn summary(dossier: &Dossier) -> String {
    let states: u64 = dossier.explorations.iter().map(|exploration| exploration.states).sum();
    let convicted = dossier.explorations.iter().filter(|e| e.violated.is_some()).count();
    let figures = [
        ("algorithms", dossier.algorithms.len() as u64),
        ("explorations", dossier.explorations.len() as u64),
        ("states", states),
        ("counterexamples", convicted as u64),
    ];
    let figures = each(figures, |(name, number)| {
        format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", thousands(number))
    });
    format!(
        r##"<header class="top"><p class="kicker">grouplock-lab</p>
<h1>What the locks promise, and what is true</h1>
<p class="lead">Published locks, run unchanged on a simulated memory: every interleaving of a few processes explored,
every remote reference counted.</p>
<dl class="figures">
{figures}</dl>
<nav aria-label="Sections"><a href="#traces">Counterexamples</a><a href="#tables">Tables</a><a href="#rmr">Remote
references</a><a href="#states">States</a></nav></header>
"##
    )
}

/// The text of each element, one after the other.
fn each<T>(things: impl IntoIterator<Item = T>, text: impl FnMut(T) -> String) -> String {
    things.into_iter().map(text).collect()
}

/// A table that scrolls if it is too wide: its headings, and rows with markup.
fn table(
    class: &str,
    label: &str,
    heads: impl IntoIterator<Item = impl Display>,
    rows: &str,
) -> String {
    let heads = each(heads, |head| format!(r#"<th scope="col">{}</th>"#, escaped(head)));
    let label = escaped(label);
    format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{label}">
<table class="{class}"><thead><tr>{heads}</tr></thead>
<tbody>
{rows}</tbody></table></div>
"#
    )
}

fn thousands(number: u64) -> String {
    grouped(number, '\u{202f}')
}

/// The text with the special characters of HTML escaped, for element contents and quoted
/// attributes.
fn escaped(text: impl Display) -> String {
    let special = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    special.iter().fold(text.to_string(), |text, &(sign, name)| text.replace(sign, name))
}

/// `value` for a `script` element: no text in it can end the element.
fn script(value: &serde_json::Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
