//! The pages say what the evidence says.

use std::path::{Path, PathBuf};

use crate::lab;

/// All Markdown pages below `folder`.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is part of the repository") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_table_of_every_page_is_what_the_evidence_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut found = Vec::new();
    pages(&docs, &mut found);
    let with_tables = found.iter().filter(|page| {
        std::fs::read_to_string(page).is_ok_and(|text| text.contains("<!-- evidence: "))
    });
    assert!(with_tables.count() > 10, "the pages of the algorithms have tables of evidence");
    let evidence = docs.join("lab/evidence.json");
    let mut arguments = vec!["pages", "--check", "--evidence"];
    let paths = [&evidence].into_iter().chain(&found);
    arguments.extend(paths.map(|path| path.to_str().expect("our paths are plain")));
    let output = lab(&arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}`cargo xtask pages` makes the tables anew");
}
