//! The token that `grouplock acquire` prints and `grouplock release` takes.
//!
//! Its form is `PID:WORLD:HOLDER:ROOM:PLACE`. All characters except letters, digits and a few signs
//! are written as `%XX`. It contains all that `release` needs to find the keeper. `WORLD` says
//! where the number of the keeper is valid: since the last start of this machine, in this namespace
//! of processes. The token is not a secret: it gives no additional rights.

use std::fmt::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

/// A holding that a keeper keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The keeper.
    pub(crate) pid: i32,
    pub(crate) world: String,
    pub(crate) holder: String,
    pub(crate) room: String,
    pub(crate) place: String,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a token: expected the output of `grouplock acquire`, PID:WORLD:HOLDER:ROOM:PLACE"
)]
pub(crate) struct NoToken(String);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.world, &self.holder, &self.room, &self.place];
        write!(f, "{}:{}", self.pid, parts.map(|part| encode(part)).join(":"))
    }
}

impl FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let read = || {
            let parts: Vec<&str> = text.split(':').collect();
            let [pid, rest @ ..] = &parts[..] else { return None };
            let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
            let rest: Option<Vec<String>> = rest.iter().map(|part| decode(part)).collect();
            let [world, holder, room, place] = rest?.try_into().ok()?;
            let empty = [&world, &holder, &room, &place].into_iter().any(String::is_empty);
            (!empty).then_some(Token { pid, world, holder, room, place })
        };
        read().ok_or_else(|| NoToken(text.to_owned()))
    }
}

/// Where process numbers are valid; see above.
pub(crate) fn world() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |facts| facts.ino());
    format!("{}.{namespace}", boot.get(..8).unwrap_or("unknown"))
}

pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b',' => {
                encoded.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_as_it_is_written() {
        for (room, place) in
            [("db", "/run/grouplock"), ("a:b %", "etcd://a:1,b:2"), ("über", "/tmp/a b")]
        {
            let token = Token {
                pid: 42,
                world: world(),
                holder: "42.7".to_owned(),
                room: room.to_owned(),
                place: place.to_owned(),
            };
            let text = token.to_string();
            assert!(!text.contains([' ', '"', '\'', '$', '*']), "{text}");
            assert_eq!(text.parse::<Token>().unwrap(), token);
        }
    }

    #[test]
    fn what_is_no_token_is_named() {
        for text in [
            "",
            "db",
            "1:2:3:4",
            "0:a:b:c:d",
            "-1:a:b:c:d",
            "1:a:b:c:%",
            "1:a::c:d",
            "1:a:b:c:d:e",
            "1:%FF:b:c:d",
        ] {
            let message = text.parse::<Token>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{text}` is not a token")), "{message}");
        }
    }
}
