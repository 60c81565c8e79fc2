//! The guarantee of each policy, checked request by request over a run. The check does not depend
//! on how the lock or the reference model works.

use super::model::{Model, Policy, priority};

/// A waiting request, and the requests that have overtaken it.
struct Waiting {
    who: usize,
    session: Option<u8>,
    arrived: u64,
    /// Conflicting requests that arrived later and entered earlier.
    overtaken_by: Vec<u64>,
}

/// Checks the holders after each step.
pub(crate) struct Guarantees {
    policy: Policy,
    clock: u64,
    waiting: Vec<Waiting>,
    /// The holders, with their times of arrival.
    inside: Vec<(usize, u64)>,
}

impl Guarantees {
    pub(crate) fn new(policy: Policy) -> Self {
        Guarantees { policy, clock: 0, waiting: Vec::new(), inside: Vec::new() }
    }

    /// `who` requests `session` now.
    pub(crate) fn came(&mut self, who: usize, _: &Model, session: Option<u8>) {
        self.clock += 1;
        let arrived = self.clock;
        self.waiting.push(Waiting { who, session, arrived, overtaken_by: Vec::new() });
    }

    /// `who` leaves, and requests `session` now.
    pub(crate) fn switched(&mut self, who: usize, model: &Model, session: u8) {
        if model.inside != Some(session) {
            self.inside.retain(|(holder, _)| *holder != who);
            self.came(who, model, Some(session));
        }
    }

    /// A step was made. `model`, which agrees with the lock, has the holders and the waiters.
    pub(crate) fn check(&mut self, model: &Model) {
        self.inside.retain(|(who, _)| model.holders.contains(who));
        let waits = |who: usize| model.waiting.iter().any(|group| group.members.contains(&who));
        let (entered, mut waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|w| model.holders.contains(&w.who));
        waiting.retain(|w| waits(w.who));
        for new in &entered {
            for old in &mut waiting {
                let conflict = old.session.is_none() || old.session != new.session;
                if old.arrived < new.arrived && conflict {
                    old.overtaken_by.push(new.arrived);
                    self.policy_allows(old, new);
                }
                // First in, first enabled: no request of a session waits while a later one of the
                // same session has entered.
                if matches!(self.policy, Policy::Fifo) && old.session == new.session {
                    assert!(old.arrived > new.arrived, "{} passed its fellow {}", new.who, old.who);
                }
            }
            self.inside.push((new.who, new.arrived));
        }
        self.waiting = waiting;
        // The first request does not wait for the session that is inside, or for an empty room.
        if let Some(first) = model.waiting.first() {
            assert!(
                !model.holders.is_empty()
                    && (first.session.is_none() || first.session != model.inside)
            );
        }
    }

    fn policy_allows(&self, old: &Waiting, new: &Waiting) {
        match self.policy {
            Policy::Fifo => panic!("{} overtook {}", new.who, old.who),
            Policy::Eventual { patience } => {
                assert!(!patience.is_zero(), "{} overtook {}", new.who, old.who);
            }
            Policy::Batch { passes } => {
                let times = old.overtaken_by.len();
                assert!(times <= passes as usize, "{} was overtaken {times} times", old.who);
            }
            // These programs end before age changes the order.
            Policy::Priority { .. } => assert!(
                priority(new.session.as_ref()) > priority(old.session.as_ref()),
                "{} overtook {}",
                new.who,
                old.who
            ),
        }
    }
}
