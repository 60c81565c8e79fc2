//! What `grouplock acquire` prints and `grouplock release` takes.
//!
//! `PID:HOLDER:ROOM:PLACE`, the last three with everything but letters, digits and a few signs written as `%XX`. It
//! says all that is needed to find the keeper, so `release` takes no other options. It is no secret: what one may do
//! with it one may do without it.

use std::fmt;
use std::str::FromStr;

/// A holding that a keeper keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The keeper.
    pub(crate) pid: i32,
    pub(crate) holder: String,
    pub(crate) room: String,
    pub(crate) place: String,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no token: expected what `grouplock acquire` has printed, PID:HOLDER:ROOM:PLACE")]
pub(crate) struct NoToken(String);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)?;
        [&self.holder, &self.room, &self.place].into_iter().try_for_each(|part| {
            f.write_str(":")?;
            part.bytes().try_for_each(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b',' => {
                    write!(f, "{}", char::from(byte))
                }
                _ => write!(f, "%{byte:02X}"),
            })
        })
    }
}

impl FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let read = || {
            let parts: Vec<&str> = text.split(':').collect();
            let [pid, holder, room, place] = parts[..] else { return None };
            let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
            let (holder, room, place) = (decode(holder)?, decode(room)?, decode(place)?);
            Some(Token { pid, holder, room, place })
        };
        read().ok_or_else(|| NoToken(text.to_owned()))
    }
}

fn decode(text: &str) -> Option<String> {
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
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
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
            "1:2:3",
            "0:a:b:c",
            "-1:a:b:c",
            "1:a:b:%",
            "1:a::c",
            "1:a:b:c:d",
            "1:%FF:b:c",
        ] {
            let message = text.parse::<Token>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{text}` is no token")), "{message}");
        }
    }
}
