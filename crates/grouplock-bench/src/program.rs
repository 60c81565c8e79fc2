//! What the programs of this crate have in common.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::{fmt, fs, io, iter};

/// A name that was asked for and that nothing has.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub String);

/// Says what went wrong in the program called `name`, with its causes. The status is 2 if it was called wrongly.
pub fn ended(name: &str, result: Result<(), Box<dyn Error>>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let causes = iter::successors(Some(&*error), |&error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    // Nobody is left to tell if this fails.
    _ = writeln!(io::stderr(), "{name}: {}", causes.join(": "));
    ExitCode::from(if error.is::<NameError>() { 2 } else { 1 })
}

/// Writes a file.
///
/// # Errors
/// If it cannot be written; the file's name is told.
pub fn save(path: &Path, content: &dyn fmt::Display) -> Result<(), String> {
    fs::write(path, content.to_string())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A table in Markdown.
pub fn table<R: IntoIterator<Item = String>>(
    heads: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut table = format!("| {} |\n{}|\n", heads.join(" | "), "|---".repeat(heads.len()));
    for row in rows {
        let row: Vec<String> = row.into_iter().collect();
        table.extend(["| ", &row.join(" | "), " |\n"]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let rows = [["1", "2"], ["3", "4"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&["a", "b"], rows), "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n");
    }

    #[test]
    fn a_wrong_name_is_told_from_a_failure() {
        let status = |error: Box<dyn Error>| ended("x", Err(error));
        assert_eq!(status(NameError("no such lock".to_owned()).into()), ExitCode::from(2));
        assert_eq!(status("broken".into()), ExitCode::from(1));
        assert_eq!(ended("x", Ok(())), ExitCode::SUCCESS);
    }
}
