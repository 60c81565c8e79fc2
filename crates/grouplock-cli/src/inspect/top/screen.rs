//! The terminal: coloured lines and keys, as far as `top` needs them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use unicode_width::UnicodeWidthStr;

use crate::output::cut;

/// The style of a text: the parameters of the control sequence for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Plain,
    Bold,
    Reversed,
    /// 0 to 7, the colour numbers of terminals.
    Colour(u8),
}

pub(super) const RED: Style = Style::Colour(1);

/// A line of text, in pieces with different styles.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(String, Style)>);

impl Line {
    pub(super) fn of(text: impl Into<String>, style: Style) -> Self {
        Line::default().and(text, style)
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Line::of(text, Style::Plain)
    }

    pub(super) fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push((text.into(), style));
        self
    }

    /// The line in exactly this width. The rest is cut off.
    pub(super) fn fitted(self, width: usize) -> Self {
        let mut left = width;
        let cut = |(text, style): (String, Style)| {
            let text = cut(&text, left).to_owned();
            left -= text.width();
            (text, style)
        };
        let pieces = self.0.into_iter().map(cut).collect();
        Line(pieces).and(" ".repeat(left), Style::Plain)
    }

    /// This line, followed by `other`.
    pub(super) fn beside(mut self, other: Line) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Gives `style` to the pieces without a style.
    pub(super) fn emphasised(mut self, style: Style) -> Self {
        for (_, piece) in self.0.iter_mut().filter(|(_, piece)| *piece == Style::Plain) {
            *piece = style;
        }
        self
    }

    /// Without colours.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|(text, _)| text.as_str()).collect()
    }

    fn coloured(&self, out: &mut String) {
        for (text, style) in &self.0 {
            match style {
                Style::Plain => out.push_str(text),
                Style::Bold => _ = write!(out, "\x1b[1m{text}\x1b[0m"),
                Style::Reversed => _ = write!(out, "\x1b[7m{text}\x1b[0m"),
                Style::Colour(number) => _ = write!(out, "\x1b[3{number}m{text}\x1b[0m"),
            }
        }
    }
}

/// The meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    End,
    Stop,
    Up,
    Down,
    PageUp,
    PageDown,
}

/// Reads keys from the bytes of a terminal. It ignores unknown keys.
fn keys(mut bytes: &[u8]) -> Vec<Key> {
    const KNOWN: [(&[u8], Key); 14] = [
        (b"\x1b[A", Key::Up),
        (b"\x1bOA", Key::Up),
        (b"k", Key::Up),
        (b"\x1b[B", Key::Down),
        (b"\x1bOB", Key::Down),
        (b"j", Key::Down),
        (b"\x1b[5~", Key::PageUp),
        (b"\x1b[6~", Key::PageDown),
        (b" ", Key::PageDown),
        (b"q", Key::End),
        (b"\x03", Key::End),
        (b"\x1a", Key::Stop),
        (b"\x1b[", Key::End),
        (b"\x1bO", Key::End),
    ];
    let mut found = Vec::new();
    while let Some(first) = bytes.first() {
        let known = KNOWN.iter().find(|(sequence, _)| bytes.starts_with(sequence));
        match known {
            // An unknown sequence, such as the left arrow.
            Some((sequence, Key::End)) if sequence.len() == 2 => {
                let end = bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte));
                bytes = &bytes[end.map_or(bytes.len(), |end| end + 3)..];
            }
            Some((sequence, key)) => {
                found.push(*key);
                bytes = &bytes[sequence.len()..];
            }
            None => {
                // The key Escape.
                found.extend((*first == 0x1b).then_some(Key::End));
                bytes = &bytes[1..];
            }
        }
    }
    found
}

/// The terminal in raw mode. Dropping it restores the terminal.
pub(super) struct Screen {
    keyboard: File,
    before: Termios,
}

impl Screen {
    pub(super) fn take() -> io::Result<Self> {
        let keyboard = File::open("/dev/tty")?;
        let before = tcgetattr(&keyboard)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&keyboard, SetArg::TCSADRAIN, &raw)?;
        let screen = Screen { keyboard, before };
        // Switch to the alternate screen, hide the cursor, clear the screen.
        send("\x1b[?1049h\x1b[?25l\x1b[2J")?;
        Ok(screen)
    }

    /// Columns and lines.
    pub(super) fn size() -> (usize, usize) {
        let size = terminal_size::terminal_size();
        size.map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()))
    }

    /// Shows lines that have the width of the screen.
    pub(super) fn show(&self, lines: &[Line]) -> io::Result<()> {
        let mut out = String::new();
        for (row, line) in lines.iter().enumerate() {
            _ = write!(out, "\x1b[{};1H", row + 1);
            line.coloured(&mut out);
        }
        send(&out)
    }

    /// Waits for keys, at most until then.
    pub(super) fn keys(&mut self, until: Instant) -> io::Result<Vec<Key>> {
        if !self.readable(until.saturating_duration_since(Instant::now()))? {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 64];
        let mut count = self.keyboard.read(&mut bytes)?;
        if count == 0 {
            // The terminal was closed.
            return Ok(vec![Key::End]);
        }
        // The rest of a sequence arrives at once.
        if bytes[count - 1] == 0x1b && self.readable(Duration::from_millis(25))? {
            count += self.keyboard.read(&mut bytes[count..])?;
        }
        Ok(keys(&bytes[..count]))
    }

    fn readable(&self, time: Duration) -> io::Result<bool> {
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.keyboard.as_fd(), PollFlags::POLLIN)], time) {
            // The size may have changed, so draw again.
            Err(Errno::EINTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It fails if the terminal was closed.
        _ = send("\x1b[?25h\x1b[?1049l");
        _ = tcsetattr(&self.keyboard, SetArg::TCSADRAIN, &self.before);
    }
}

fn send(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_width_it_is_given() {
        let line = Line::plain("ab").and("cd", RED);
        assert_eq!(line.clone().fitted(6).text(), "abcd  ");
        assert_eq!(line.clone().fitted(3).text(), "abc");
        let mut shown = String::new();
        line.fitted(3).coloured(&mut shown);
        assert_eq!(shown, "ab\x1b[31mc\x1b[0m");
        assert_eq!(Line::plain("日本").fitted(3).text(), "日 ", "half of a letter is not shown");
        // A heart that the next character makes wider.
        assert_eq!(Line::plain("\u{2764}\u{fe0f}").fitted(1).text(), "\u{2764}");
    }

    #[test]
    fn keys_are_found_in_what_a_terminal_sends() {
        use Key::{Down, End, PageDown, PageUp, Stop, Up};
        assert_eq!(keys(b"\x1b[A\x1bOBjk \x1a"), [Up, Down, Down, Up, PageDown, Stop]);
        assert_eq!(keys(b"\x1b[5~\x1b[6~"), [PageUp, PageDown]);
        assert_eq!(keys(b"x\x1b[D\x1b[1;5Cq"), [End], "unknown keys mean nothing");
        assert_eq!(keys(b"\x1b"), [End]);
        assert_eq!(keys(b"\x1b[15"), [], "a sequence that is cut off");
    }
}
