//! What the servers say about a room at one revision: the queue, the phase, the dead.
//!
//! The same type holds the answer to a single request and the mirror that a watch keeps up to date.

use std::collections::BTreeMap;

use crate::keys::Keys;
use crate::proto::{Event, EventType, KeyValue};

/// At most so many waiters are let in by the one who leaves. Each costs a comparison and a write, and etcd allows 128.
pub const MOST_HEIRS: usize = 30;

/// The phase as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Whose.
    pub group: String,
    /// The same for all holders of the phase.
    pub epoch: i64,
    /// If somebody had died before it and may not be buried yet: the epoch of the phase before, 0 if that is not known.
    pub deaths: Option<i64>,
}

impl Phase {
    /// The value of its key. An epoch of 0 is the revision at which the key is put.
    pub fn value(epoch: i64, deaths: Option<i64>) -> Vec<u8> {
        match deaths {
            None => epoch.to_string().into_bytes(),
            Some(before) => format!("{epoch} {before}").into_bytes(),
        }
    }

    fn read(group: String, kv: &KeyValue) -> Self {
        let text = std::str::from_utf8(&kv.value).unwrap_or_default();
        let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0));
        let epoch = numbers.next().filter(|epoch| *epoch > 0).unwrap_or(kv.mod_revision);
        Phase { group, epoch, deaths: numbers.next() }
    }
}

/// A waiter or a holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its group.
    pub group: String,
    /// Its id.
    pub id: String,
    /// What it says about itself.
    pub value: Vec<u8>,
}

/// How a place in the queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// It has a mark: somebody has let it in.
    Inside,
    /// Nobody of another session is in front of it, and nobody ever will be.
    Come,
    /// Somebody of another session is in front of it.
    Wait,
    /// It is not in the queue any more.
    Gone,
}

/// What to ask first, by what was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guess {
    /// Nobody is present.
    Empty,
    /// The group is inside alone, with a phase that is written down, and with this one.
    Joinable(Phase, i64, Entry),
    /// Anything else.
    Busy,
}

/// A room at one revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    keys: Keys,
    /// Everything up to this revision is known.
    pub revision: i64,
    /// By the revision at which they came. No two come at once: each comes in a transaction of its own.
    entries: BTreeMap<i64, Entry>,
    places: BTreeMap<Vec<u8>, i64>,
    /// By key.
    marks: BTreeMap<Vec<u8>, KeyValue>,
    /// The phase, if it is written down.
    pub phase: Option<Phase>,
    /// What is known of the dead.
    pub died: Option<KeyValue>,
    /// Whether the room is on the list of rooms.
    pub made: bool,
}

impl View {
    /// Before anything is known.
    pub fn new(keys: Keys) -> Self {
        View {
            keys,
            revision: 0,
            entries: BTreeMap::new(),
            places: BTreeMap::new(),
            marks: BTreeMap::new(),
            phase: None,
            died: None,
            made: false,
        }
    }

    /// Of what was read at a revision.
    pub fn of(keys: &Keys, revision: i64, kvs: &[KeyValue]) -> Self {
        let mut view = View::new(keys.clone());
        view.reset(revision, kvs);
        view
    }

    /// Takes over what was read at a revision, unless something later is known. Whether the queue is different.
    pub fn reset(&mut self, revision: i64, kvs: &[KeyValue]) -> bool {
        if revision < self.revision {
            return false;
        }
        let mut now = View { revision, ..View::new(self.keys.clone()) };
        for kv in kvs {
            now.insert(kv);
        }
        std::mem::swap(self, &mut now);
        (&now.places, &now.marks) != (&self.places, &self.marks)
    }

    /// Takes over what happened, as far as it is news.
    pub fn apply(&mut self, events: &[Event]) {
        let known = self.revision;
        for event in events {
            let Some(kv) = event.kv.as_ref().filter(|kv| kv.mod_revision > known) else { continue };
            self.revision = self.revision.max(kv.mod_revision);
            if event.r#type == EventType::Delete as i32 {
                self.remove(&kv.key);
            } else {
                self.insert(kv);
            }
        }
    }

    fn insert(&mut self, kv: &KeyValue) {
        if let Some((group, id, is_mark)) = self.keys.read_queue(&kv.key) {
            if is_mark {
                self.marks.insert(kv.key.clone(), kv.clone());
            } else {
                self.places.insert(kv.key.clone(), kv.create_revision);
                let entry = Entry { group, id, value: kv.value.clone() };
                self.entries.insert(kv.create_revision, entry);
            }
        } else if let Some(group) = self.keys.read_phase(&kv.key) {
            self.phase = Some(Phase::read(group, kv));
        } else if kv.key == self.keys.died() {
            self.died = Some(kv.clone());
        } else {
            self.made |= kv.key == self.keys.made();
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(place) = self.places.remove(key) {
            self.entries.remove(&place);
        } else if self.keys.read_phase(key).is_some() {
            // The events of one revision come in the order of keys: the next phase may have been put already.
            let group = self.phase.as_ref().map(|phase| self.keys.phase(&phase.group));
            if group.as_deref() == Some(key) {
                self.phase = None;
            }
        } else if key == self.keys.died() {
            self.died = None;
        } else if key == self.keys.made() {
            self.made = false;
        } else {
            self.marks.remove(key);
        }
    }

    /// The mark of an entry.
    pub fn mark(&self, entry: &Entry) -> Option<&KeyValue> {
        self.marks.get(&self.keys.mark(&entry.group, &entry.id))
    }

    /// Waiters and holders, oldest first, each with its place.
    pub fn entries(&self) -> impl Iterator<Item = (i64, &Entry)> {
        self.entries.iter().map(|(place, entry)| (*place, entry))
    }

    /// The group of the first in the queue.
    pub fn first_group(&self) -> Option<&str> {
        self.entries.values().next().map(|entry| entry.group.as_str())
    }

    /// How one stands who has come at that revision; `None` if that is later than what is known.
    pub fn turn(&self, place: i64) -> Option<Turn> {
        self.turns()(place)
    }

    /// The same for many places: the queue is looked through once.
    pub fn turns(&self) -> impl Fn(i64) -> Option<Turn> {
        let front = self.front();
        move |place| {
            if self.revision < place {
                return None;
            }
            let Some(entry) = self.entries.get(&place) else { return Some(Turn::Gone) };
            Some(if self.mark(entry).is_some() {
                Turn::Inside
            } else if place <= front {
                Turn::Come
            } else {
                Turn::Wait
            })
        }
    }

    /// Whether one who has come at that revision is known to be gone.
    pub fn is_gone(&self, place: i64) -> bool {
        place <= self.revision && !self.entries.contains_key(&place)
    }

    /// The place of the last whom nobody of another session precedes.
    fn front(&self) -> i64 {
        let Some(first) = self.first_group() else { return 0 };
        let front = self.entries.iter().take_while(|(_, entry)| entry.group == first);
        front.last().map_or(0, |(place, _)| *place)
    }

    /// The phase of a group, if it is written down.
    pub fn phase_of(&self, group: &str) -> Option<&Phase> {
        self.phase.as_ref().filter(|phase| phase.group == group)
    }

    /// The epoch of a group's holders if it is not written down: the revision at which the first of them came in. It
    /// came to an empty room and believes in that epoch, or it has come after the one who did.
    pub fn unwritten_epoch(&self, group: &str) -> Option<i64> {
        let fellows = self.entries.values().filter(|entry| entry.group == group);
        fellows.filter_map(|entry| self.mark(entry)).map(|mark| mark.create_revision).min()
    }

    /// What one who wants to enter a group will probably find. The oldest holder is the witness: it is no more likely
    /// to leave than others, and known to all.
    pub fn guess(&self, group: &str) -> Guess {
        let Some((place, first)) = self.entries().next() else { return Guess::Empty };
        let alone = self.front() == self.entries.keys().next_back().copied().unwrap_or(0);
        match self.phase_of(group) {
            Some(phase) if alone && first.group == group && phase.deaths.is_none() => {
                Guess::Joinable(phase.clone(), place, first.clone())
            }
            _ => Guess::Busy,
        }
    }

    /// Marks without entries: their owners came in, and are gone without having left.
    pub fn dead(&self) -> impl Iterator<Item = &KeyValue> {
        let lives =
            |key: &[u8]| key.split_last().is_some_and(|(_, key)| self.places.contains_key(key));
        self.marks.values().filter(move |mark| !lives(&mark.key))
    }

    /// If nobody but the holder at that place is in front of the first waiters: those of them who come in when it
    /// leaves.
    pub fn heirs(&self, place: i64) -> Vec<(i64, &Entry)> {
        let mut queue = self.entries();
        let own = queue.next().filter(|(first, _)| *first == place).map(|(_, own)| &own.group);
        let next = self.entries.values().nth(1).map(|entry| &entry.group);
        match (own, next) {
            (Some(own), Some(next)) if own != next => {
                queue.take_while(|(_, entry)| entry.group == *next).take(MOST_HEIRS).collect()
            }
            _ => Vec::new(),
        }
    }
}
