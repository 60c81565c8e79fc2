//! What all commands use to write pages and errors.

use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::path::Path;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Says which action failed.
pub(crate) trait Cannot<T> {
    fn cannot(self, action: impl Display) -> Outcome<T>;
}

impl<T, E: Display> Cannot<T> for Result<T, E> {
    fn cannot(self, action: impl Display) -> Outcome<T> {
        self.map_err(|error| format!("cannot {action}: {error}").into())
    }
}

/// An argument names something that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnknownName(pub(crate) String);

pub(crate) fn save(path: &Path, content: &dyn Display) -> Outcome<()> {
    fs::write(path, content.to_string()).cannot(format_args!("write {}", path.display()))
}

/// The cell of a missing figure.
pub(crate) const NONE: &str = "–";

pub(crate) fn or_none<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), text)
}

/// The cells of one row of a [`table`].
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$(format!("{}", $cell)),*] };
}
pub(crate) use row;

/// A table in Markdown.
pub(crate) fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = format!("| {} |\n{}|\n", heads.join(" | "), "|---".repeat(heads.len()));
    for row in rows {
        table.extend(["| ", &row.join(" | "), " |\n"]);
    }
    table
}

/// An enum whose variants have a text for tables, and a name in JSON.
macro_rules! labels {
    ($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum $name { $($(#[$about])* $variant,)* }

        impl $name {
            #[allow(dead_code, reason = "some lists are never used whole")]
            pub(crate) const ALL: [Self; [$($text),*].len()] = [$($name::$variant),*];

            pub(crate) const fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}
pub(crate) use labels;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let rows = [row![1, "2"], row!["3", 4]];
        assert_eq!(table(&["a", "b"], rows), "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n");
    }
}
