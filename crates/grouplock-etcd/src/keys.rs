//! Which keys a room has.
//!
//! ```text
//! PREFIX/ROOM/q/<session in hex>/<id>   who waits or is inside: under its lease, oldest first
//! PREFIX/ROOM/h/<id>                    who has come in and not left: under no lease
//! PREFIX/ROOM/phase                     the session that came in last; its mod_revision is the epoch
//! PREFIX/ROOM/died                      what was last found out about the dead
//! PREFIX/ROOM/t/<id>                    a request that is over although it may still be on its way
//! ```
//!
//! The session is part of the key so that "nobody of another session is there" is two comparisons on ranges,
//! whatever else the values say. In hexadecimal no name is the beginning of another followed by `/`.

use std::fmt::Write as _;

use crate::proto::RangeRequest;

/// All keys from `start` up to, but without, `end`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first.
    pub start: Vec<u8>,
    /// The first behind the last.
    pub end: Vec<u8>,
}

impl Span {
    /// All keys that begin so. The last byte of what we write is never 255.
    pub fn beginning_with(start: &str) -> Self {
        let start = start.as_bytes().to_vec();
        let mut end = start.clone();
        if let Some(last) = end.last_mut() {
            *last = last.wrapping_add(1);
        }
        Span { start, end }
    }

    /// A request for them.
    pub fn request(&self, keys_only: bool) -> RangeRequest {
        RangeRequest { key: self.start.clone(), range_end: self.end.clone(), limit: 0, keys_only }
    }
}

/// The keys of one room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys {
    base: String,
}

impl Keys {
    /// Of the room whose keys begin so; with a slash at the end.
    pub fn new(base: impl Into<String>) -> Self {
        Keys { base: base.into() }
    }

    /// Everything of the room.
    pub fn all(&self) -> Span {
        Span::beginning_with(&self.base)
    }

    /// Everybody who waits or is inside.
    pub fn queue(&self) -> Span {
        Span::beginning_with(&format!("{}q/", self.base))
    }

    /// Those of one session.
    pub fn session(&self, session: &str) -> Span {
        Span::beginning_with(&format!("{}q/{}/", self.base, hex(session)))
    }

    /// Those of all other sessions: what is in front of that one, and what is behind it.
    pub fn others(&self, session: &str) -> [Span; 2] {
        let (all, own) = (self.queue(), self.session(session));
        [Span { start: all.start, end: own.start }, Span { start: own.end, end: all.end }]
    }

    /// One who waits or is inside.
    pub fn entry(&self, session: &str, id: &str) -> Vec<u8> {
        format!("{}q/{}/{id}", self.base, hex(session)).into_bytes()
    }

    /// Everybody who has come in and not left.
    pub fn marks(&self) -> Span {
        Span::beginning_with(&format!("{}h/", self.base))
    }

    /// The mark of one who has come in.
    pub fn mark(&self, id: &str) -> Vec<u8> {
        format!("{}h/{id}", self.base).into_bytes()
    }

    /// The phase.
    pub fn phase(&self) -> Vec<u8> {
        format!("{}phase", self.base).into_bytes()
    }

    /// What is known of the dead.
    pub fn died(&self) -> Vec<u8> {
        format!("{}died", self.base).into_bytes()
    }

    /// What is known of the dead, and the marks: `died` and `h/` are neighbours.
    pub fn deaths(&self) -> Span {
        Span { start: self.died(), end: self.marks().end }
    }

    /// What keeps a request that is over from being done once more.
    pub fn tombstone(&self, id: &str) -> Vec<u8> {
        format!("{}t/{id}", self.base).into_bytes()
    }

    /// The session and the id of an entry; `None` if this is none.
    pub fn read_entry(&self, key: &[u8]) -> Option<(String, String)> {
        let rest = key.strip_prefix(self.base.as_bytes())?.strip_prefix(b"q/")?;
        let (session, id) = std::str::from_utf8(rest).ok()?.split_once('/')?;
        Some((unhex(session)?, id.to_owned()))
    }

    /// The id of a mark; `None` if this is none.
    pub fn read_mark(&self, key: &[u8]) -> Option<String> {
        let rest = key.strip_prefix(self.base.as_bytes())?.strip_prefix(b"h/")?;
        String::from_utf8(rest.to_vec()).ok()
    }
}

fn hex(text: &str) -> String {
    let mut hex = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        // Writing to a string cannot fail.
        _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn unhex(hex: &str) -> Option<String> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    String::from_utf8(bytes).ok()
}
