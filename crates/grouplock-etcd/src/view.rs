//! A room at one revision: the queue, the phase and the deaths.
//!
//! The same type holds the answer to one request, and the mirror that a watch updates.

use std::collections::BTreeMap;

use crate::keys::Keys;
use crate::proto::{Event, EventType, KeyValue};

/// How many waiters a leaving holder admits at most. Each costs a comparison and a write; etcd
/// allows 128.
pub const MOST_HEIRS: usize = 30;

/// A written phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Its group.
    pub group: String,
    /// Its epoch, the same for all holders.
    pub epoch: i64,
    /// Set if there was a death before this phase that may not be buried yet: the epoch of the
    /// phase before, 0 if it is not known.
    pub deaths: Option<i64>,
}

impl Phase {
    /// The value of its key. The epoch 0 means the revision at which the key is put.
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
    /// What it says about itself, as JSON.
    pub value: Vec<u8>,
}

/// The state of an entry in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// It has a mark: it was admitted.
    Inside,
    /// No other session is before it, and none ever will be.
    MayEnter,
    /// Another session is before it.
    Waits,
    /// It is no longer in the queue.
    Gone,
}

/// Which request to try first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guess {
    /// Nobody is present.
    Empty,
    /// Only this group is inside. Its phase is written. The position and the entry are those of its
    /// first holder.
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
    /// By the revision at which they were made. No two are equal, because each entry is made by a
    /// transaction of its own.
    entries: BTreeMap<i64, Entry>,
    positions: BTreeMap<Vec<u8>, i64>,
    /// By key.
    marks: BTreeMap<Vec<u8>, KeyValue>,
    /// The phase, if it is written.
    pub phase: Option<Phase>,
    /// The last record of deaths.
    pub died: Option<KeyValue>,
    /// The room is on the list of rooms.
    pub is_listed: bool,
}

impl View {
    /// A view without content.
    pub fn new(keys: Keys) -> Self {
        View {
            keys,
            revision: 0,
            entries: BTreeMap::new(),
            positions: BTreeMap::new(),
            marks: BTreeMap::new(),
            phase: None,
            died: None,
            is_listed: false,
        }
    }

    /// The view of keys that were read at a revision.
    pub fn of(keys: &Keys, revision: i64, kvs: &[KeyValue]) -> Self {
        let mut view = View::new(keys.clone());
        view.reset(revision, kvs);
        view
    }

    /// Replaces the view by what was read at a revision, unless the view is newer. Returns whether
    /// the queue has changed.
    pub fn reset(&mut self, revision: i64, kvs: &[KeyValue]) -> bool {
        if revision < self.revision {
            return false;
        }
        let mut now = View { revision, ..View::new(self.keys.clone()) };
        for kv in kvs {
            now.insert(kv);
        }
        std::mem::swap(self, &mut now);
        (&now.positions, &now.marks) != (&self.positions, &self.marks)
    }

    /// Applies the events that are newer than the view.
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
                self.positions.insert(kv.key.clone(), kv.create_revision);
                let entry = Entry { group, id, value: kv.value.clone() };
                self.entries.insert(kv.create_revision, entry);
            }
        } else if let Some(group) = self.keys.read_phase(&kv.key) {
            self.phase = Some(Phase::read(group, kv));
        } else if kv.key == self.keys.died() {
            self.died = Some(kv.clone());
        } else {
            self.is_listed |= kv.key == self.keys.made();
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(position) = self.positions.remove(key) {
            self.entries.remove(&position);
        } else if self.keys.read_phase(key).is_some() {
            // Events of one revision arrive in the order of keys. The next phase may be put
            // already.
            let group = self.phase.as_ref().map(|phase| self.keys.phase(&phase.group));
            if group.as_deref() == Some(key) {
                self.phase = None;
            }
        } else if key == self.keys.died() {
            self.died = None;
        } else if key == self.keys.made() {
            self.is_listed = false;
        } else {
            self.marks.remove(key);
        }
    }

    /// The mark of an entry.
    pub fn mark(&self, entry: &Entry) -> Option<&KeyValue> {
        self.marks.get(&self.keys.mark(&entry.group, &entry.id))
    }

    /// Waiters and holders with their positions, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = (i64, &Entry)> {
        self.entries.iter().map(|(position, entry)| (*position, entry))
    }

    /// The group of the first entry.
    pub fn first_group(&self) -> Option<&str> {
        self.entries.values().next().map(|entry| entry.group.as_str())
    }

    /// The state of the entry at a position; `None` if the view is older.
    pub fn entry_state(&self, position: i64) -> Option<EntryState> {
        self.entry_states()(position)
    }

    /// The same for many positions: the queue is read once.
    pub fn entry_states(&self) -> impl Fn(i64) -> Option<EntryState> {
        let front = self.front();
        move |position| {
            if self.revision < position {
                return None;
            }
            let Some(entry) = self.entries.get(&position) else { return Some(EntryState::Gone) };
            Some(if self.mark(entry).is_some() {
                EntryState::Inside
            } else if position <= front {
                EntryState::MayEnter
            } else {
                EntryState::Waits
            })
        }
    }

    /// Whether the entry at this position is known to be gone.
    pub fn is_gone(&self, position: i64) -> bool {
        position <= self.revision && !self.entries.contains_key(&position)
    }

    /// The position of the last entry that no other session precedes.
    fn front(&self) -> i64 {
        let Some(first) = self.first_group() else { return 0 };
        let front = self.entries.iter().take_while(|(_, entry)| entry.group == first);
        front.last().map_or(0, |(position, _)| *position)
    }

    /// The phase of a group, if it is written.
    pub fn phase_of(&self, group: &str) -> Option<&Phase> {
        self.phase.as_ref().filter(|phase| phase.group == group)
    }

    /// The epoch of a group whose phase is not written: the revision at which the first of its
    /// holders entered. That holder entered an empty room and has this epoch, or it entered after
    /// the one that did.
    pub fn unwritten_epoch(&self, group: &str) -> Option<i64> {
        let same_session = self.entries.values().filter(|entry| entry.group == group);
        same_session.filter_map(|entry| self.mark(entry)).map(|mark| mark.create_revision).min()
    }

    /// What a request of this group will probably find. The oldest holder is the witness: it is as
    /// likely to leave as any other, and all clients know it.
    pub fn guess(&self, group: &str) -> Guess {
        let Some((position, first)) = self.entries().next() else { return Guess::Empty };
        let alone = self.front() == self.entries.keys().next_back().copied().unwrap_or(0);
        // A join does not read the record of deaths. The holders of this phase may need it.
        let told =
            |phase: &Phase| self.died.as_ref().is_some_and(|kv| kv.mod_revision > phase.epoch);
        let reads = |phase: &Phase| phase.deaths.is_some() || told(phase);
        match self.phase_of(group) {
            Some(phase) if alone && first.group == group && !reads(phase) => {
                Guess::Joinable(phase.clone(), position, first.clone())
            }
            _ => Guess::Busy,
        }
    }

    /// Marks without entries: their owners entered, and died.
    pub fn dead(&self) -> impl Iterator<Item = &KeyValue> {
        let lives =
            |key: &[u8]| key.split_last().is_some_and(|(_, key)| self.positions.contains_key(key));
        self.marks.values().filter(move |mark| !lives(&mark.key))
    }

    /// The waiters that can enter when the holder at this position leaves. Empty if another holder
    /// is before them.
    pub fn heirs(&self, position: i64) -> Vec<(i64, &Entry)> {
        let mut queue = self.entries();
        let own = queue.next().filter(|(first, _)| *first == position).map(|(_, own)| &own.group);
        let next = self.entries.values().nth(1).map(|entry| &entry.group);
        match (own, next) {
            (Some(own), Some(next)) if own != next => {
                queue.take_while(|(_, entry)| entry.group == *next).take(MOST_HEIRS).collect()
            }
            _ => Vec::new(),
        }
    }
}
