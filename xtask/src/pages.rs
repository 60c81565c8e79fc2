//! The lab's evidence, and the pages that are made from it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::run::{Program, root};

const EVIDENCE: &str = "docs/lab/evidence.json";

/// The largest explorations take minutes each.
const LONG: Duration = Duration::from_secs(3 * 60 * 60);

/// Explores these algorithms by the full plan, or all if there are no names, and their mutants.
pub(crate) fn explore(algorithms: &[String]) -> Result<(), String> {
    let names: Vec<&str> = algorithms.iter().map(String::as_str).collect();
    lab(&["evidence", EVIDENCE]).arguments(&names).run_within(LONG)?;
    let mutants = ["run", "--release", "-p", "grouplock-mutants", "--", EVIDENCE];
    Program::cargo(&mutants).arguments(&names).run_within(LONG)?;
    pages()
}

/// Makes the tables of all pages, and the report, from the evidence.
pub(crate) fn pages() -> Result<(), String> {
    let mut found = Vec::new();
    find(Path::new("docs"), &mut found)?;
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    lab(&["pages", "--evidence", EVIDENCE]).arguments(&found).run()?;
    lab(&["report", "--evidence", EVIDENCE, "--out", "docs/lab/report.html"]).run()
}

fn lab(arguments: &[&str]) -> Program {
    let run = ["run", "--release", "--quiet", "-p", "grouplock-lab", "--"];
    Program::cargo(&run).arguments(arguments)
}

/// All pages in Markdown below `folder`.
fn find(folder: &Path, found: &mut Vec<String>) -> Result<(), String> {
    let failed = |error| format!("`{}` cannot be listed: {error}", folder.display());
    for entry in fs::read_dir(root().join(folder)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let path = folder.join(name);
        if root().join(&path).is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.extend(path.to_str().map(str::to_owned));
        }
    }
    found.sort();
    Ok(())
}
