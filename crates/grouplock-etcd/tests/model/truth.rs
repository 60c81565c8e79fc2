//! What really happened: which clients entered, left and died inside. The model records it itself
//! and does not read it from the keys.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_etcd::protocol::Holder;

/// The number of a client, and its round.
pub(crate) type Id = (usize, u8);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Truth {
    /// All waiters and holders.
    present: BTreeSet<Id>,
    /// The clients that entered and did not leave, with the revision of their entry.
    came: BTreeMap<Id, i64>,
    /// The clients that died inside and are not buried, with the revisions of their entry and
    /// death.
    died: BTreeMap<Id, (i64, i64)>,
    /// All clients that died inside, buried or not.
    ever: BTreeSet<Id>,
    /// The largest epoch so far.
    epoch: i64,
    /// Whether the holders of that phase have a report of an earlier death.
    told: bool,
    /// Whether a client left after its death. Some holders may have a report of it. The others need
    /// none any more.
    late: bool,
    /// The largest epoch of a phase that is over. No client of it is present any more.
    over: i64,
}

impl Truth {
    pub(crate) fn queued(&mut self, who: Id) {
        self.present.insert(who);
    }

    pub(crate) fn came(&mut self, who: Id, revision: i64) {
        self.present.insert(who);
        self.came.entry(who).or_insert(revision);
    }

    /// A client learns at revision `seen` that it is inside and that `dead` died. Four conditions
    /// are checked. The epoch belongs to no phase that is over. All of `dead` have died. An opener
    /// knows every death of an earlier phase that is not buried. Either all holders of a phase have
    /// a report of an earlier death, or none has.
    pub(crate) fn entered(&mut self, inside: &Holder, dead: &BTreeSet<Id>, seen: i64) -> Verdict {
        let buried = inside.died.as_ref().is_some_and(|kv| kv.value == epoch_told(inside.epoch));
        let told = buried || !dead.is_empty();
        if inside.epoch > self.epoch {
            (self.epoch, self.told) = (inside.epoch, told);
        }
        let mut before =
            self.died.iter().filter(|(_, (came, died))| *came < inside.epoch && *died <= seen);
        Verdict {
            epochs: inside.epoch > self.over,
            deaths: dead.is_subset(&self.ever)
                && (!inside.opened_phase || before.all(|(id, _)| dead.contains(id)))
                && (inside.epoch < self.epoch || told == self.told || self.late),
        }
    }

    pub(crate) fn is_present(&self, who: Id) -> bool {
        self.present.contains(&who)
    }

    /// A client leaves and learns how many of its keys existed. Whether the number is right.
    pub(crate) fn left(&mut self, who: Id, deleted: i64) -> bool {
        let marked = self.came.contains_key(&who) || self.died.contains_key(&who);
        let expected = i64::from(self.present.contains(&who)) + i64::from(marked);
        self.came.remove(&who);
        self.present.remove(&who);
        self.late |= self.died.remove(&who).is_some();
        self.note_end();
        deleted == expected
    }

    /// The lease of a client has ended.
    pub(crate) fn expired(&mut self, person: usize, revision: i64) {
        let dying = self.came.iter().filter(|(id, _)| id.0 == person);
        self.died.extend(dying.map(|(id, came)| (*id, (*came, revision))));
        self.ever.extend(self.died.keys());
        self.came.retain(|id, _| id.0 != person);
        self.present.retain(|id| id.0 != person);
        self.note_end();
    }

    /// A client writes down that `dead` died before its phase, which ends their reports. This is
    /// right if the client is present, so that a holder knows the report, and if they are dead.
    pub(crate) fn buried(&mut self, who: Id, dead: &BTreeSet<Id>) -> bool {
        self.died.retain(|id, _| !dead.contains(id));
        self.present.contains(&who) && !dead.iter().any(|id| self.came.contains_key(id))
    }

    fn note_end(&mut self) {
        if self.present.is_empty() {
            self.over = self.epoch;
        }
    }
}

/// Which conditions hold.
pub(crate) struct Verdict {
    pub(crate) epochs: bool,
    pub(crate) deaths: bool,
}

/// The record of an opener with a report of deaths: its phase.
pub(crate) fn epoch_told(epoch: i64) -> Vec<u8> {
    epoch.to_string().into_bytes()
}
