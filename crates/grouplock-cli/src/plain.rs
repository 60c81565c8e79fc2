//! Names and commands are anybody's text: shown without what would move the cursor or colour the terminal.

/// The text with control characters replaced.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
