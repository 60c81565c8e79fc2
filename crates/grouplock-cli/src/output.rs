//! Text for standard output and messages.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use unicode_width::UnicodeWidthStr;

use crate::exit;
use crate::system::startup::stdout;

/// Writes a text to standard output. Returns the exit code for the result.
pub(crate) fn print(text: &str) -> ExitCode {
    match write(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::failed(format_args!("cannot write to the standard output: {error}")),
    }
}

/// Writes a text to standard output. A closed pipe is not an error: its reader needs no more text.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = stdout()?;
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The text with control characters replaced. Other users choose names and commands. They must not
/// move the cursor, change colours or change the direction of writing on our terminal.
pub(crate) fn sanitized(text: &str) -> String {
    let is_control =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect()
}

/// A duration for people: `0.3 s`, `12 s`, `4 min`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// The time from `then` to `now`. If the clock was set back in between, it is zero.
pub(crate) fn since(then: SystemTime, now: SystemTime) -> String {
    duration_text(now.duration_since(then).unwrap_or_default())
}

/// The beginning of a text that fits into `columns`. Some characters take two columns, and some
/// make the character before them wider.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| text[..*end].width() <= columns).last();
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_say_them() {
        for (seconds, text) in [
            (0, "0.0 s"),
            (9, "9.0 s"),
            (75, "75 s"),
            (240, "4 min"),
            (7_500, "2 h 5 min"),
            (273_600, "3 d 4 h"),
        ] {
            assert_eq!(duration_text(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(cut("waiting", 4), "wait");
        assert_eq!(cut("数据库", 4), "数据");
        assert_eq!(cut("数据库", 5), "数据");
        assert_eq!(cut("e\u{301}x", 1), "e\u{301}");
        assert_eq!(cut("short", 80), "short");
        assert_eq!(cut("short", 0), "");
        // Together they take two.
        assert_eq!(cut("\u{2764}\u{fe0f}", 1), "\u{2764}");
    }
}
