//! The names of rooms and of their files.

use std::fmt::{self, Write as _};

use crate::error::RoomError;

/// The name of a room: any text that is not empty and whose [encoded form](RoomName::encoded) has
/// at most [`MAX`](RoomName::MAX) bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomName(String);

impl RoomName {
    /// The longest encoded form, in bytes. With an ending it is still a valid file name on every
    /// file system.
    pub const MAX: usize = 240;

    /// Checks a name.
    ///
    /// # Errors
    /// If it is empty or too long.
    pub fn new(name: &str) -> Result<Self, RoomError> {
        let bad = |reason| RoomError::BadRoomName { name: name.to_owned(), reason };
        if name.is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        let checked = RoomName(name.to_owned());
        let length = checked.encoded().len();
        if length > RoomName::MAX {
            let max = RoomName::MAX;
            return Err(bad(format!(
                "encoded as a file name it has {length} bytes, at most {max} are possible"
            )));
        }
        Ok(checked)
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as part of a file name. Every byte except ASCII letters, digits, `-`, `_` and dots
    /// that are not the first byte is written as `%XX`. Different names have different forms. No
    /// form is `.` or `..`, begins with a dot, or contains `/`.
    ///
    /// ```
    /// use grouplock_room::RoomName;
    ///
    /// let name = RoomName::new("../gpu 0")?;
    /// assert_eq!(name.encoded(), "%2E./gpu 0".replace('/', "%2F").replace(' ', "%20"));
    /// assert_eq!(RoomName::decode(&name.encoded()), Some(name));
    /// # Ok::<(), grouplock_room::RoomError>(())
    /// ```
    pub fn encoded(&self) -> String {
        let mut encoded = String::with_capacity(self.0.len());
        for (at, byte) in self.0.bytes().enumerate() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(byte.into()),
                b'.' if at > 0 => encoded.push('.'),
                // Writing to a string cannot fail.
                _ => _ = write!(encoded, "%{byte:02X}"),
            }
        }
        encoded
    }

    /// The name whose [encoded form](RoomName::encoded) this is, if there is one.
    pub fn decode(encoded: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(encoded.len());
        let mut rest = encoded.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'%' => {
                    let mut digit = || char::from(rest.next()?).to_digit(16);
                    (digit()? << 4 | digit()?) as u8
                }
                _ => byte,
            });
        }
        let name = RoomName::new(&String::from_utf8(bytes).ok()?).ok()?;
        // Only the canonical form is accepted. Otherwise one room could have two files.
        (name.encoded() == encoded).then_some(name)
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_the_directory() {
        for name in
            [".", "..", "/", "../x", "a/../b", ".hidden", "a\0b", "über", "%2F", "a%", " ", "\n"]
        {
            let name = RoomName::new(name).unwrap();
            let encoded = name.encoded();
            assert!(
                !encoded.contains(['/', '\0', ' ', '\n']) && !encoded.starts_with('.'),
                "{encoded}"
            );
            assert_eq!(RoomName::decode(&encoded), Some(name));
        }
    }

    #[test]
    fn only_the_form_that_encoding_gives_is_decoded() {
        for encoded in ["", "%2f", "%41", ".a", "a b", "%", "%2", "%FF", "%zz"] {
            assert_eq!(RoomName::decode(encoded), None, "{encoded}");
        }
    }

    #[test]
    fn a_name_too_long_or_empty_is_refused() {
        assert!(RoomName::new(&"x".repeat(RoomName::MAX)).is_ok());
        let message = RoomName::new(&"x".repeat(RoomName::MAX + 1)).unwrap_err().to_string();
        assert!(message.contains("241 bytes, at most 240"), "{message}");
        assert!(RoomName::new(&"é".repeat(41)).is_err());
        assert!(RoomName::new("").unwrap_err().to_string().contains("it is empty"));
    }
}
