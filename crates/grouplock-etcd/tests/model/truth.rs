//! What has really happened, written down by the model itself and not read from the keys: who came
//! in, who left and who died inside.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_etcd::protocol::Holder;

/// Who: its number and its round.
pub(crate) type Id = (usize, u8);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Truth {
    /// Who waits or is inside.
    present: BTreeSet<Id>,
    /// Who has come in and not left: the revision at which it came in.
    came: BTreeMap<Id, i64>,
    /// Who died inside and was not buried: the revisions at which it came in and died.
    died: BTreeMap<Id, (i64, i64)>,
    /// Who died inside, buried or not.
    ever: BTreeSet<Id>,
    /// The largest epoch so far.
    epoch: i64,
    /// Whether those of that phase are told that somebody died before it.
    told: bool,
    /// Whether somebody has left after it had died. Some may have been told, and others need not be
    /// any more.
    late: bool,
    /// The largest epoch of a phase that is over, as nobody was present any more.
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

    /// Somebody knows that it is inside and that these died, by what it saw at a revision. Whether
    /// that is right: the epoch is none of a phase that is over; the dead have died; an opener
    /// knows all who had died in earlier phases and are not buried; and either all of a phase are
    /// told of a death before it, or none.
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

    /// Somebody asks to leave, and is told how many of its keys were there. Whether that is right.
    pub(crate) fn left(&mut self, who: Id, deleted: i64) -> bool {
        let marked = self.came.contains_key(&who) || self.died.contains_key(&who);
        let expected = i64::from(self.present.contains(&who)) + i64::from(marked);
        self.came.remove(&who);
        self.present.remove(&who);
        self.late |= self.died.remove(&who).is_some();
        self.note_end();
        deleted == expected
    }

    /// The lease of one person has ended.
    pub(crate) fn expired(&mut self, person: usize, revision: i64) {
        let dying = self.came.iter().filter(|(id, _)| id.0 == person);
        self.died.extend(dying.map(|(id, came)| (*id, (*came, revision))));
        self.ever.extend(self.died.keys());
        self.came.retain(|id, _| id.0 != person);
        self.present.retain(|id| id.0 != person);
        self.note_end();
    }

    /// Somebody has written down that these died before its phase, so that they are told of no
    /// more. Whether that is right: it is present, so that somebody knows who was told; and they
    /// are dead.
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

/// What was right.
pub(crate) struct Verdict {
    pub(crate) epochs: bool,
    pub(crate) deaths: bool,
}

/// What is written down by one who was told of the dead: in which phase.
pub(crate) fn epoch_told(epoch: i64) -> Vec<u8> {
    epoch.to_string().into_bytes()
}
