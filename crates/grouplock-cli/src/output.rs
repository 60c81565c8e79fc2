//! What goes to standard output.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::before::stdout;
use crate::exit;

/// Prints, and gives the exit code for how that went.
pub(crate) fn print(text: &str) -> ExitCode {
    match say(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::failed(format_args!("cannot write to the standard output: {error}")),
    }
}

/// Prints, and lets a closed pipe be: whoever reads no further has seen enough.
pub(crate) fn say(text: &str) -> io::Result<()> {
    let mut out = stdout()?;
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        said => said,
    }
}

/// The text with control characters replaced. Names and commands are anybody's text: shown without what would move the
/// cursor, colour the terminal or turn the direction of writing.
pub(crate) fn plain(text: &str) -> String {
    let moves =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if moves(c) { '\u{fffd}' } else { c }).collect()
}
