//! What goes to standard output.

use std::io::Write as _;

/// Prints, and lets a closed pipe be: whoever reads no further has seen enough.
pub(crate) fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The text with control characters replaced. Names and commands are anybody's text: shown without what would move the
/// cursor or colour the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
