//! Whether the crates are ready for crates.io: each is packed, and has what readers there look for.

use std::fs;

use crate::run::{LIMIT, Program, root};

/// What is not published.
const OURS: [&str; 6] = [
    "grouplock-bench",
    "grouplock-fuzz",
    "grouplock-mutants",
    "grouplock-python",
    "grouplock-testing",
    "xtask",
];

/// What every package has.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Lines of a manifest without which a package is hard to find or to use.
const FIELDS: [&str; 6] = [
    "description = ",
    "license = ",
    "readme = ",
    "keywords = ",
    "categories = ",
    "rust-version = ",
];

/// Packs them all, against each other. They are not built: that takes minutes, and CI does it.
pub(crate) fn check() -> Result<(), String> {
    let folder = root().join("target/publish/package");
    _ = fs::remove_dir_all(&folder);
    let excluded: Vec<&str> = OURS.iter().flat_map(|name| ["--exclude", name]).collect();
    Program::cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"])
        .arguments(&excluded)
        .arguments(&["--target-dir", "target/publish"])
        .quietly(LIMIT)?;
    let told = |error: std::io::Error| format!("`{}`: {error}", folder.display());
    let mut packed = 0;
    for entry in fs::read_dir(&folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.extension().is_none_or(|extension| extension != "crate") {
            continue;
        }
        packed += 1;
        let (shown, name) = (path.display().to_string(), path.file_stem().unwrap_or_default());
        let name = name.to_string_lossy().into_owned();
        let list = Program::new("tar").arguments(&["--list", "--file", &shown]);
        let list = list.quietly(LIMIT)?.output;
        let lacks = |file: &&&str| !list.lines().any(|line| line == format!("{name}/{file}"));
        if let Some(file) = FILES.iter().find(lacks) {
            return Err(format!("{name} has no {file}"));
        }
        let manifest = format!("{name}/Cargo.toml");
        let manifest = ["--extract", "--to-stdout", "--file", &shown, &manifest];
        let manifest = Program::new("tar").arguments(&manifest).quietly(LIMIT)?.output;
        let lacks = |field: &&&str| !manifest.lines().any(|line| line.starts_with(**field));
        if let Some(field) = FIELDS.iter().find(lacks) {
            return Err(format!("{name} has no `{field}…`"));
        }
    }
    if packed == 0 { Err("nothing was packed".to_owned()) } else { Ok(()) }
}
