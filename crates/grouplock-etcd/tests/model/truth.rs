//! What has really happened, written down by the model itself and not read from the keys: who came in, who left and who died inside.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_etcd::protocol::{Inside, Left};

/// Who: its number and its round.
pub(crate) type Id = (usize, u8);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Truth {
    /// Who waits or is inside.
    present: BTreeSet<Id>,
    /// Who has come in and not left, and its epoch.
    came: BTreeMap<Id, i64>,
    /// Who died inside, with its epoch, and was not buried.
    died: BTreeMap<Id, i64>,
    /// The largest epoch so far.
    epoch: i64,
    /// Whether the one who opened that phase was told of the dead.
    told: bool,
    /// The largest epoch of a phase that is over, as nobody was there any more.
    over: i64,
}

impl Truth {
    pub(crate) fn queued(&mut self, who: Id) {
        self.present.insert(who);
    }

    /// Somebody is told that it is inside, and that these died. Whether that is right: the epoch is none of a phase that is
    /// over; the dead are those who died and were not buried, and whoever joins is told of deaths if the opener was.
    pub(crate) fn entered(&mut self, who: Id, inside: &Inside, dead: &BTreeSet<Id>) -> Verdict {
        self.present.insert(who);
        self.came.insert(who, inside.epoch);
        let buried = inside.died.as_ref().is_some_and(|kv| kv.value == epoch_told(inside.epoch));
        let told = buried || !dead.is_empty();
        if inside.epoch > self.epoch {
            (self.epoch, self.told) = (inside.epoch, told);
        }
        Verdict {
            epochs: inside.epoch > self.over,
            deaths: self.died.keys().eq(dead) && (told || !self.told),
        }
    }

    /// Somebody asks to leave, and is told what has become of it. Whether that is right.
    pub(crate) fn left(&mut self, who: Id, told: Left) -> bool {
        let expected = if self.present.contains(&who) {
            Left::Now
        } else if self.died.contains_key(&who) {
            Left::Taken
        } else {
            Left::WithoutTrace
        };
        self.gone(who);
        told == expected
    }

    /// Somebody who never heard that it came in makes sure that nothing is left of it.
    pub(crate) fn abandoned(&mut self, who: Id) {
        self.gone(who);
        self.died.remove(&who);
    }

    fn gone(&mut self, who: Id) {
        self.came.remove(&who);
        self.present.remove(&who);
        self.note_end();
    }

    /// The lease of one person has ended.
    pub(crate) fn expired(&mut self, person: usize) {
        let died: Vec<Id> = self.came.keys().copied().filter(|id| id.0 == person).collect();
        for id in died {
            if let Some(epoch) = self.came.remove(&id) {
                self.died.insert(id, epoch);
            }
        }
        self.present.retain(|id| id.0 != person);
        self.note_end();
    }

    /// Somebody has written down that these died before its phase, so that they are told of no more. Whether that is right: it
    /// is still there, so that somebody knows who was told; they are dead, and not of its own phase, whose end comes later.
    pub(crate) fn buried(&mut self, who: Id, epoch: i64, dead: &BTreeSet<Id>) -> bool {
        self.died.retain(|id, of| *of >= epoch || !dead.contains(id));
        let must_stay = |id: &Id| self.died.contains_key(id) || self.came.contains_key(id);
        self.present.contains(&who) && !dead.iter().any(must_stay)
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
