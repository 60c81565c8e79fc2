//! The queue as the servers tell it, on our side.

use std::collections::{BTreeMap, HashMap};

use crate::keys::Keys;
use crate::proto::{Event, EventType, KeyValue};

/// How a place in the queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// Nobody of another session is in front of it, and nobody ever will be.
    Come,
    /// Somebody of another session is in front of it.
    Wait,
    /// It is not in the queue any more.
    Gone,
}

/// Everybody who waits or is inside, at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    keys: Keys,
    revision: i64,
    /// By the revision at which they came. No two come at once: each comes in a transaction of its own.
    entries: BTreeMap<i64, String>,
    places: HashMap<Vec<u8>, i64>,
}

impl Line {
    /// Of a room, before anything is known.
    pub fn new(keys: Keys) -> Self {
        Line { keys, revision: 0, entries: BTreeMap::new(), places: HashMap::new() }
    }

    /// Takes over what was read at a revision, unless something later is known. Whether anything is different.
    pub fn reset(&mut self, revision: i64, kvs: &[KeyValue]) -> bool {
        if revision < self.revision {
            return false;
        }
        let before = std::mem::take(&mut self.places);
        self.entries.clear();
        for kv in kvs {
            self.insert(kv);
        }
        self.revision = revision;
        before != self.places
    }

    /// Takes over what happened, as far as it is news.
    pub fn apply(&mut self, events: &[Event]) {
        let known = self.revision;
        for event in events {
            let Some(kv) = event.kv.as_ref().filter(|kv| kv.mod_revision > known) else { continue };
            self.revision = self.revision.max(kv.mod_revision);
            if event.r#type == EventType::Delete as i32 {
                if let Some(place) = self.places.remove(&kv.key) {
                    self.entries.remove(&place);
                }
            } else {
                self.insert(kv);
            }
        }
    }

    fn insert(&mut self, kv: &KeyValue) {
        // What is not an entry is nobody.
        if let Some((session, _)) = self.keys.read_entry(&kv.key) {
            self.entries.insert(kv.create_revision, session);
            self.places.insert(kv.key.clone(), kv.create_revision);
        }
    }

    /// How one stands who has come at that revision; `None` if that is later than what is known.
    pub fn turn(&self, place: i64) -> Option<Turn> {
        if self.revision < place {
            return None;
        }
        if !self.entries.contains_key(&place) {
            return Some(Turn::Gone);
        }
        Some(if place <= self.front() { Turn::Come } else { Turn::Wait })
    }

    /// The place of the last whom nobody of another session precedes.
    pub fn front(&self) -> i64 {
        let Some(first) = self.entries.values().next() else { return 0 };
        let front = self.entries.iter().take_while(|(_, session)| *session == first);
        front.last().map_or(0, |(place, _)| *place)
    }

    /// The revision up to which everything is known.
    pub fn revision(&self) -> i64 {
        self.revision
    }
}
