//! The keys of a room.
//!
//! ```text
//! PREFIX/ROOM/died                      the last known deaths
//! PREFIX/ROOM/made                      the room exists
//! PREFIX/ROOM/p/<group>                 the phase, if its epoch is written; at most one key
//! PREFIX/ROOM/q/<group>/<id>            the entry of a waiter or holder: under its lease
//! PREFIX/ROOM/q/<group>/<id>.           the mark of a holder: under no lease
//! PREFIX/ROOM/t/<id>                    a tombstone: the request is over, a copy may still arrive
//! ```
//!
//! A group is the name of a session in hexadecimal. A request to be alone has a group of its own:
//! that name, `-` and its id. The group is part of the key. So "no other session is present" is two
//! comparisons on ranges, whatever the values are. No group is a prefix of another group followed
//! by `/`. An entry and its mark are neighbours, so one DeleteRange removes both. A client watches
//! one range, from `died` to `q/`.

use std::fmt::Write as _;

use grouplock_room::RoomName;

use crate::proto::RangeRequest;

/// The keys from `start` up to `end`, without `end`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key after the span.
    pub end: Vec<u8>,
}

impl Span {
    /// All keys that begin with `start`. The last byte of our keys is never 255.
    pub fn beginning_with(start: &str) -> Self {
        let start = start.as_bytes().to_vec();
        let mut end = start.clone();
        if let Some(last) = end.last_mut() {
            *last = last.wrapping_add(1);
        }
        Span { start, end }
    }

    /// A request for these keys.
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
    /// The keys of the room whose keys begin with `base`, which ends with a slash.
    pub fn new(base: impl Into<String>) -> Self {
        Keys { base: base.into() }
    }

    /// The keys of a room under a prefix.
    pub(crate) fn of(prefix: &str, room: &RoomName) -> Self {
        Keys::new(format!("{prefix}/{}/", room.encoded()))
    }

    /// All keys of the room.
    pub fn all(&self) -> Span {
        Span::beginning_with(&self.base)
    }

    /// All keys but the tombstones. Those end with their leases, because the requests that they
    /// stop may still arrive.
    pub fn remains(&self) -> Span {
        Span { start: self.all().start, end: format!("{}t/", self.base).into_bytes() }
    }

    /// The keys that a [`View`](crate::view::View) shows: deaths, phase and queue.
    pub fn state(&self) -> Span {
        Span { start: self.died(), end: self.queue().end }
    }

    /// The same without the queue: at most three keys.
    pub fn summary(&self) -> Span {
        Span { start: self.died(), end: self.queue().start }
    }

    /// All entries and marks.
    pub fn queue(&self) -> Span {
        Span::beginning_with(&format!("{}q/", self.base))
    }

    /// The entries and marks of one group.
    pub fn group(&self, group: &str) -> Span {
        Span::beginning_with(&format!("{}q/{group}/", self.base))
    }

    /// The entries and marks of all other groups: those before this group, and those after it.
    pub fn others(&self, group: &str) -> [Span; 2] {
        let (all, own) = (self.queue(), self.group(group));
        [Span { start: all.start, end: own.start }, Span { start: own.end, end: all.end }]
    }

    /// The entry of a waiter or holder.
    pub fn entry(&self, group: &str, id: &str) -> Vec<u8> {
        format!("{}q/{group}/{id}", self.base).into_bytes()
    }

    /// The mark of a holder.
    pub fn mark(&self, group: &str, id: &str) -> Vec<u8> {
        format!("{}q/{group}/{id}.", self.base).into_bytes()
    }

    /// An entry and its mark. No id is a prefix of another id followed by a byte smaller than `/`.
    pub fn pair(&self, group: &str, id: &str) -> Span {
        let start = self.entry(group, id);
        let end = [&start[..], b"/"].concat();
        Span { start, end }
    }

    /// The phase of a group.
    pub fn phase(&self, group: &str) -> Vec<u8> {
        format!("{}p/{group}", self.base).into_bytes()
    }

    /// The phases of all groups.
    pub fn phases(&self) -> Span {
        Span::beginning_with(&format!("{}p/", self.base))
    }

    /// The phases of all other groups.
    pub fn other_phases(&self, group: &str) -> [Span; 2] {
        let (all, own) = (self.phases(), self.phase(group));
        let behind = [&own[..], b"\0"].concat();
        // Not from `p/` on: etcd refuses an empty span, and for the session without a name it would
        // be empty.
        let start = format!("{}p", self.base).into_bytes();
        [Span { start, end: own }, Span { start: behind, end: all.end }]
    }

    /// The key of the last known deaths.
    pub fn died(&self) -> Vec<u8> {
        format!("{}died", self.base).into_bytes()
    }

    /// The key that says that the room exists.
    pub fn made(&self) -> Vec<u8> {
        format!("{}made", self.base).into_bytes()
    }

    /// The key that stops a late copy of a request that is over.
    pub fn tombstone(&self, id: &str) -> Vec<u8> {
        format!("{}t/{id}", self.base).into_bytes()
    }

    /// The group and the id of an entry or mark, and whether it is a mark; `None` if it is neither.
    pub fn read_queue(&self, key: &[u8]) -> Option<(String, String, bool)> {
        let rest = key.strip_prefix(self.base.as_bytes())?.strip_prefix(b"q/")?;
        let (group, id) = std::str::from_utf8(rest).ok()?.split_once('/')?;
        let (id, is_mark) = id.strip_suffix('.').map_or((id, false), |id| (id, true));
        Some((group.to_owned(), id.to_owned(), is_mark))
    }

    /// The group of a phase; `None` if the key is not one of a phase.
    pub fn read_phase(&self, key: &[u8]) -> Option<String> {
        let rest = key.strip_prefix(self.base.as_bytes())?.strip_prefix(b"p/")?;
        String::from_utf8(rest.to_vec()).ok()
    }
}

/// The end of the id of a request to be alone.
pub const ALONE: &str = "a";

/// The group of a waiter or holder.
pub fn group(session: &str, id: &str) -> String {
    let session = hex(session);
    if id.ends_with(ALONE) { format!("{session}-{id}") } else { session }
}

/// The name of a group's session.
pub fn session_of(group: &str) -> Option<String> {
    unhex(group.split('-').next()?)
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
