//! Which keys a room has.
//!
//! ```text
//! PREFIX/ROOM/died                      what was last found out about the dead
//! PREFIX/ROOM/made                      there is such a room
//! PREFIX/ROOM/p/<session in hex>        the phase, if its epoch had to be written down; at most one
//! PREFIX/ROOM/q/<session in hex>/<id>   the entry of a waiter or holder: under its lease, oldest first
//! PREFIX/ROOM/q/<session in hex>/<id>.  the mark of a holder: under no lease
//! PREFIX/ROOM/t/<id>                    a request that is over although it may still be on its way
//! ```
//!
//! The session is part of the key so that "nobody of another session is present" is two comparisons on ranges,
//! whatever else the values say. In hexadecimal no name is the beginning of another followed by `/`. An entry and its
//! mark are neighbours, so that one DeleteRange removes both. Everything a client has to watch is one range, from
//! `died` to `q/`.

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

    /// What a [`View`](crate::view::View) shows: the dead, the phase, the queue.
    pub fn state(&self) -> Span {
        Span { start: self.died(), end: self.queue().end }
    }

    /// The same without the queue: three keys at most.
    pub fn summary(&self) -> Span {
        Span { start: self.died(), end: self.queue().start }
    }

    /// All entries and marks.
    pub fn queue(&self) -> Span {
        Span::beginning_with(&format!("{}q/", self.base))
    }

    /// The entries and marks of one session.
    pub fn session(&self, session: &str) -> Span {
        Span::beginning_with(&format!("{}q/{}/", self.base, hex(session)))
    }

    /// Those of all other sessions: what is in front of that one, and what is behind it.
    pub fn others(&self, session: &str) -> [Span; 2] {
        let (all, own) = (self.queue(), self.session(session));
        [Span { start: all.start, end: own.start }, Span { start: own.end, end: all.end }]
    }

    /// The entry of a waiter or holder.
    pub fn entry(&self, session: &str, id: &str) -> Vec<u8> {
        format!("{}q/{}/{id}", self.base, hex(session)).into_bytes()
    }

    /// The mark of a holder.
    pub fn mark(&self, session: &str, id: &str) -> Vec<u8> {
        format!("{}q/{}/{id}.", self.base, hex(session)).into_bytes()
    }

    /// An entry and its mark. No id is the beginning of another followed by something smaller than `/`.
    pub fn pair(&self, session: &str, id: &str) -> Span {
        let start = self.entry(session, id);
        let end = [&start[..], b"/"].concat();
        Span { start, end }
    }

    /// The phase of a session.
    pub fn phase(&self, session: &str) -> Vec<u8> {
        format!("{}p/{}", self.base, hex(session)).into_bytes()
    }

    /// The phases of all sessions.
    pub fn phases(&self) -> Span {
        Span::beginning_with(&format!("{}p/", self.base))
    }

    /// The phases of all other sessions.
    pub fn other_phases(&self, session: &str) -> [Span; 2] {
        let (all, own) = (self.phases(), self.phase(session));
        let behind = [&own[..], b"\0"].concat();
        // Not from `p/` on: etcd wants no empty span, which it would be for a session without a name.
        let start = format!("{}p", self.base).into_bytes();
        [Span { start, end: own }, Span { start: behind, end: all.end }]
    }

    /// What is known of the dead.
    pub fn died(&self) -> Vec<u8> {
        format!("{}died", self.base).into_bytes()
    }

    /// Shows that there is such a room.
    pub fn made(&self) -> Vec<u8> {
        format!("{}made", self.base).into_bytes()
    }

    /// What keeps a request that is over from being done once more.
    pub fn tombstone(&self, id: &str) -> Vec<u8> {
        format!("{}t/{id}", self.base).into_bytes()
    }

    /// The session and the id of an entry or mark, and whether it is a mark; `None` if it is neither.
    pub fn read_queue(&self, key: &[u8]) -> Option<(String, String, bool)> {
        let rest = key.strip_prefix(self.base.as_bytes())?.strip_prefix(b"q/")?;
        let (session, id) = std::str::from_utf8(rest).ok()?.split_once('/')?;
        let (id, is_mark) = id.strip_suffix('.').map_or((id, false), |id| (id, true));
        Some((unhex(session)?, id.to_owned(), is_mark))
    }

    /// The session of a phase; `None` if this is none.
    pub fn read_phase(&self, key: &[u8]) -> Option<String> {
        let rest = key.strip_prefix(self.base.as_bytes())?.strip_prefix(b"p/")?;
        unhex(std::str::from_utf8(rest).ok()?)
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
