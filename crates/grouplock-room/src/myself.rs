//! What snapshots show of this process: for backends.

use nix::unistd::{geteuid, gethostname};

/// The name of this machine; `?` if it is unknown.
pub fn host() -> String {
    gethostname().map_or_else(|_| "?".to_owned(), |host| host.to_string_lossy().into_owned())
}

/// The name of the effective user of this process.
pub fn user() -> String {
    user_name(geteuid().as_raw())
}

/// The name of a user; the number if there is no name.
pub(crate) fn user_name(number: u32) -> String {
    let user = nix::unistd::User::from_uid(number.into()).ok().flatten();
    user.map_or_else(|| number.to_string(), |user| user.name)
}

/// The command line with spaces between the arguments.
pub fn command_line() -> String {
    let mut bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shortens a text to at most `most` bytes, but not in the middle of a character.
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = cut("aé".repeat(3), 5);
        assert_eq!(text, "aéa");
        assert_eq!(cut(text, 9), "aéa");
    }

    #[test]
    fn the_command_line_is_that_of_this_program() {
        let words: Vec<_> = std::env::args().collect();
        assert_eq!(command_line(), words.join(" "));
    }
}
