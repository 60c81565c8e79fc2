//! What really happened: which clients entered, left and died inside. The model records it itself
//! and does not read it from the keys.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_etcd::protocol::Holder;
use grouplock_etcd::who::Died;

/// The number of a client, and its round.
pub(crate) type Id = (usize, u8);

pub(crate) fn read_id(id: &str) -> Id {
    let (who, round) = id.split_once('-').expect("an id of ours");
    (who.parse().expect("a number"), round.parse().expect("a number"))
}

/// The number of the process that a report names.
pub(crate) fn process((who, round): Id) -> u32 {
    u32::try_from(who).expect("few") * 10 + u32::from(round)
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Truth {
    /// The waiters and holders, with their leases.
    present: BTreeMap<Id, i64>,
    /// The clients that entered and did not leave, with the revision of their entry.
    came: BTreeMap<Id, i64>,
    /// The clients that know their epoch, and whether they are inside: not before a delay is over.
    learned: BTreeMap<Id, (i64, bool)>,
    /// All clients that died inside, also if their delay was not over.
    dead: BTreeMap<Id, Death>,
    /// The largest epoch so far.
    epoch: i64,
    /// The largest epoch of a phase that is over. No client of it is present any more.
    over: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Death {
    /// The revision of its entry.
    came: i64,
    /// When it died.
    time: u64,
    /// The epoch of its phase, if it believed that it was inside. Otherwise it has done nothing
    /// there, and a report of its death is optional.
    phase: Option<i64>,
    /// When a client that still lived then began to wait because of it, and the revision.
    noticed: Option<(u64, i64)>,
    /// The epoch of the phase in which it was buried.
    buried: Option<i64>,
    /// The client left after its death. Some holders may have a report of it. The others need none
    /// any more.
    left: bool,
}

impl Truth {
    pub(crate) fn queued(&mut self, who: Id, lease: i64) {
        self.present.insert(who, lease);
    }

    pub(crate) fn came(&mut self, who: Id, lease: Option<i64>, revision: i64) {
        if let Some(lease) = lease {
            self.present.insert(who, lease);
        }
        self.came.entry(who).or_insert(revision);
    }

    /// The deaths that all holders of a phase must know: those of earlier phases, unless a phase
    /// between has buried them. A burial in the phase of the death itself does not count.
    fn owed(&self, epoch: i64) -> impl Iterator<Item = (&Id, &Death)> {
        let owed = move |death: &Death| {
            let unknown = |phase| death.buried.is_none_or(|by| by == epoch || by <= phase);
            death.phase.is_some_and(|phase| phase < epoch && unknown(phase)) && !death.left
        };
        self.dead.iter().filter(move |(_, death)| owed(death))
    }

    /// A client learns that it is inside, that `dead` are not buried, and gets a report. The epoch
    /// must belong to no phase that is over. All of `dead` must be dead; an opener must know all
    /// that are not buried. Who is owed a report must get one, of the last death. Whoever gets one,
    /// must get a true one.
    pub(crate) fn learns(
        &mut self,
        who: Id,
        inside: &Holder,
        dead: &BTreeSet<Id>,
        report: Option<&Died>,
    ) -> Verdict {
        let epoch = inside.epoch;
        self.epoch = self.epoch.max(epoch);
        self.learned.insert(who, (epoch, false));
        let last = self.owed(epoch).map(|(_, death)| death.came).max();
        let is_true = |report: &Died| {
            let named = self.dead.iter().find(|(id, _)| process(**id) == report.pid);
            let Some((_, death)) = named else { return false };
            let phase = death.phase.is_none_or(|phase| report.epoch == phase);
            // A repeated request may have put the mark before the phase of the death began. Then
            // holders that join this phase may learn of it too.
            (phase || report.epoch == death.came)
                && death.came < epoch
                && last.is_none_or(|last| death.came >= last)
        };
        let all = self.owed(epoch).all(|(id, death)| death.buried.is_some() || dead.contains(id));
        Verdict {
            epochs: epoch > self.over,
            deaths: dead.iter().all(|id| self.dead.contains_key(id))
                && (!inside.opened_phase || all)
                && report.map_or(last.is_none(), is_true),
        }
    }

    /// A client that knows of these deaths begins to wait. Whether it waits at most for the delay
    /// after the last of them was noticed. This counts if the client came later.
    pub(crate) fn waits(
        &mut self,
        who: Id,
        inside: &Holder,
        dead: &BTreeSet<Id>,
        (now, revision): (u64, i64),
        rest: u64,
        delay: u64,
    ) -> bool {
        let last = dead.iter().filter_map(|id| self.dead.get(id)).max_by_key(|death| death.came);
        let noticed = last.and_then(|death| death.noticed);
        if self.present.contains_key(&who) {
            for (_, death) in self.dead.iter_mut().filter(|(id, _)| dead.contains(id)) {
                death.noticed.get_or_insert((now, revision));
            }
        }
        noticed.is_none_or(|(time, at)| inside.position <= at || now + rest <= time + delay)
    }

    /// A client enters. Whether the delay is over since each death that it must know.
    pub(crate) fn entered(&mut self, who: Id, epoch: i64, now: u64, delay: u64) -> bool {
        self.learned.insert(who, (epoch, true));
        self.owed(epoch).all(|(_, death)| now >= death.time + delay)
    }

    pub(crate) fn is_present(&self, who: Id) -> bool {
        self.present.contains_key(&who)
    }

    /// A client leaves and learns how many of its keys existed. Whether the number is right.
    pub(crate) fn left(&mut self, who: Id, deleted: i64) -> bool {
        let dead = self.dead.get_mut(&who).filter(|death| !death.left && death.buried.is_none());
        let marked = self.came.remove(&who).is_some() || dead.is_some();
        if let Some(death) = dead {
            death.left = true;
        }
        self.learned.remove(&who);
        let expected = i64::from(self.present.remove(&who).is_some()) + i64::from(marked);
        self.note_end();
        deleted == expected
    }

    /// A lease has ended.
    pub(crate) fn expired(&mut self, lease: i64, time: u64) {
        let gone: Vec<Id> =
            self.present.iter().filter(|(_, its)| **its == lease).map(|(id, _)| *id).collect();
        for id in gone {
            self.present.remove(&id);
            let entered = self.learned.remove(&id).filter(|(_, inside)| *inside);
            if let Some(came) = self.came.remove(&id) {
                let phase = entered.map(|(epoch, _)| epoch);
                let (noticed, buried, left) = (None, None, false);
                let death = Death { came, time, phase, noticed, buried, left };
                self.dead.insert(id, death);
            }
        }
        self.note_end();
    }

    /// A client writes down that `dead` died before its phase, which ends their reports, and how
    /// many have died in all. This is right if the client is inside, so that a holder knows the
    /// report, and if they are dead.
    pub(crate) fn buried(&mut self, who: Id, epoch: i64, dead: &BTreeSet<Id>, total: u64) -> bool {
        for id in dead {
            if let Some(death) = self.dead.get_mut(id) {
                death.buried.get_or_insert(epoch);
            }
        }
        let count = self.dead.values().filter(|death| death.buried.is_some()).count();
        self.present.contains_key(&who)
            && self.learned.get(&who).is_some_and(|(_, inside)| *inside)
            && !dead.iter().any(|id| self.came.contains_key(id))
            && usize::try_from(total) == Ok(count)
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
