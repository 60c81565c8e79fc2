//! The queue of phases, and what each policy makes of it. Plain data: whoever holds the internal lock has it to itself.
//!
//! ```text
//!    next to go                                        last
//!  ┌─────────────┐   ┌─────────────┐   ┌─────────────┐
//!  │ session B   │   │ exclusive   │   │ session A   │
//!  │ 3 waiters   │   │ 1 waiter    │   │ 2 waiters   │
//!  └─────────────┘   └─────────────┘   └─────────────┘
//! ```
//!
//! 1. No phase is empty.
//! 2. The room goes to the first phase.
//! 3. Tickets grow along a phase, and so do times of arrival.
//! 4. An exclusive request is a phase of its own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::waiter::{Kind, Signal, Waiter, contain};
use super::word::MOST_HOLDERS;
use crate::watch::Crowd;
use crate::{Policy, WaitingPhase};

/// The priority of a session, or of exclusive requests.
pub(crate) type Priorities<S> = Box<dyn Fn(Option<&S>) -> u32 + Send + Sync>;

/// Requests that will enter together.
#[derive(Debug)]
pub(super) struct Phase<S> {
    /// `None` for an exclusive request.
    pub(super) session: Option<S>,
    pub(super) waiters: VecDeque<Waiter>,
    /// How many of the waiters were invited and have not come yet.
    pub(super) invited: usize,
    /// How many of the waiters cannot be invited.
    helpless: usize,
    /// How many conflicting requests have overtaken it. Only [`Policy::Batch`] counts.
    passed: u32,
    /// When the phase counts as having arrived, as [`Policy::Priority`] sees it: in nanoseconds, less what its priority is worth.
    standing: i128,
}

impl<S> Phase<S> {
    /// When the first of those who still wait arrived.
    pub(super) fn arrived(&self) -> Option<Instant> {
        self.waiters.front().map(|waiter| waiter.arrived)
    }
}

/// What the queue demands of those who come and go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// The first phase must be handed the room when that is free, instead of being invited to try for it.
    pub(super) hand_over: bool,
    /// Those who come must ask under the internal lock: somebody waits who may not be overtaken, or not without being counted, or who cannot
    /// look after it.
    pub(super) ask: bool,
    /// Some of the first phase have been invited and not come yet.
    pub(super) invited: bool,
}

/// The phases that wait, in the order in which they will go.
pub(super) struct Queue<S> {
    policy: Policy,
    priorities: Option<Priorities<S>>,
    phases: VecDeque<Phase<S>>,
    /// The ticket of the next who waits.
    ticket: u64,
    /// How many waiters of all phases cannot be invited.
    helpless: usize,
    /// The first phase has been promised the room: nobody goes before it, whatever the policy says.
    owed: bool,
    /// From which time is counted.
    start: Instant,
}

impl<S> Queue<S> {
    pub(super) fn new(policy: Policy, priorities: Option<Priorities<S>>) -> Self {
        Queue {
            policy,
            priorities,
            phases: VecDeque::new(),
            ticket: 0,
            helpless: 0,
            owed: false,
            start: Instant::now(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    pub(super) fn first(&self) -> Option<&Phase<S>> {
        self.phases.front()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut Phase<S>> {
        self.phases.front_mut()
    }

    /// What the queue demands of those who come and go, `None` if nobody waits.
    pub(super) fn demands(&self) -> Option<Demands> {
        let first = self.phases.front()?;
        let strict = self.owed
            || match self.policy {
                Policy::Eventual { patience } => self.out_of_patience(0, patience, Instant::now()),
                Policy::Fifo | Policy::Batch { .. } | Policy::Priority { .. } => true,
            };
        Some(Demands {
            hand_over: strict || first.helpless > 0,
            ask: strict || self.helpless > 0,
            invited: first.invited > 0,
        })
    }

    /// When a request that arrives at `now` will have lost its patience, if the policy knows any.
    pub(super) fn patience(&self, now: Instant) -> Option<Instant> {
        match self.policy {
            Policy::Eventual { patience } => now.checked_add(patience),
            Policy::Fifo | Policy::Batch { .. } | Policy::Priority { .. } => None,
        }
    }

    /// Whether phase `from` or one behind it has waited for `patience`. The first is the oldest, unless those who made it so have given up.
    fn out_of_patience(&self, from: usize, patience: Duration, now: Instant) -> bool {
        let mut times = self.phases.iter().skip(from).filter_map(Phase::arrived);
        patience != Duration::MAX
            && times.any(|arrived| now.saturating_duration_since(arrived) >= patience)
    }

    /// Whether the waiter with `ticket`, who was invited, may still take the room. Not if the room has been promised to another phase since.
    pub(super) fn may_accept(&self, ticket: u64) -> bool {
        !self.owed || self.find(ticket).is_some_and(|(index, _)| index == 0)
    }

    /// The first phase, if there is one, is promised the room: whoever comes from now on goes behind it.
    #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
    pub(super) fn promise(&mut self) {
        self.owed = !self.phases.is_empty();
    }

    /// A request to be alone goes before all others, and is promised the room.
    #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
    pub(super) fn push_first(&mut self, now: Instant, signal: Arc<Signal>) -> u64 {
        let ticket = self.ticket;
        self.ticket += 1;
        self.helpless += 1;
        let waiter = Waiter { ticket, arrived: now, invited: false, signal, kind: Kind::Switching };
        self.phases.push_front(Phase {
            session: None,
            waiters: VecDeque::from([waiter]),
            invited: 0,
            helpless: 1,
            passed: 0,
            standing: i128::MIN,
        });
        self.owed = true;
        ticket
    }

    /// Takes the first phase out of the queue.
    pub(super) fn take_first(&mut self) -> Option<Phase<S>> {
        let phase = self.phases.pop_front()?;
        self.owed = false;
        self.helpless -= phase.helpless;
        Some(phase)
    }

    /// The waiter with `ticket`, and the number of its phase.
    fn find(&self, ticket: u64) -> Option<(usize, usize)> {
        self.phases.iter().enumerate().find_map(|(index, phase)| {
            let place = phase.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()?;
            Some((index, place))
        })
    }

    /// Takes the waiter with `ticket` out of the queue, if it is there.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        let (index, place) = self.find(ticket)?;
        let phase = &mut self.phases[index];
        let waiter = phase.waiters.remove(place)?;
        phase.invited -= usize::from(waiter.invited);
        let helpless = usize::from(!waiter.kind.can_try());
        phase.helpless -= helpless;
        self.helpless -= helpless;
        if phase.waiters.is_empty() {
            let phase = self.phases.remove(index);
            self.owed &= index > 0;
            contain(|| drop(phase));
        }
        Some(waiter)
    }

    /// An invited waiter has come and found the room taken: it sleeps on.
    pub(super) fn declined(&mut self, ticket: u64) {
        if let Some((index, place)) = self.find(ticket) {
            let phase = &mut self.phases[index];
            let waiter = &mut phase.waiters[place];
            phase.invited -= usize::from(waiter.invited);
            waiter.invited = false;
        }
    }

    /// The task with `ticket` was polled with another waker. Gives back the old one, to be dropped without the internal lock.
    pub(super) fn replace_waker(&mut self, ticket: u64, waker: &Waker) -> Option<Waker> {
        let (index, place) = self.find(ticket)?;
        let Kind::Task(old) = &mut self.phases[index].waiters[place].kind else { return None };
        if old.will_wake(waker) { None } else { Some(std::mem::replace(old, waker.clone())) }
    }

    /// When a request for `session` that arrives at `now` counts as having arrived.
    fn standing(&self, session: Option<&S>, now: Instant) -> i128 {
        let Policy::Priority { aging } = self.policy else { return 0 };
        let nanoseconds = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let priority = self.priorities.as_ref().map_or(0, |of| of(session));
        nanoseconds(now.saturating_duration_since(self.start))
            - nanoseconds(aging).saturating_mul(i128::from(priority))
    }

    /// The phases as people see them.
    pub(super) fn snapshot(&self, now: Instant) -> Vec<WaitingPhase<S>>
    where
        S: Clone,
    {
        let phase = |phase: &Phase<S>| WaitingPhase {
            session: phase.session.clone(),
            waiters: phase.waiters.len(),
            age: phase
                .arrived()
                .map_or(Duration::ZERO, |arrived| now.saturating_duration_since(arrived)),
        };
        self.phases.iter().map(phase).collect()
    }

    /// How many there are, for reports.
    pub(super) fn crowd(&self, holders: usize) -> Crowd {
        let waiters = self.phases.iter().map(|phase| phase.waiters.len()).sum();
        Crowd { policy: self.policy, holders, phases: self.phases.len(), waiters }
    }

    /// Where a phase that counts as having arrived at `standing` goes: behind its equals.
    fn place_by_standing(&self, standing: i128) -> usize {
        self.phases.partition_point(|phase| phase.standing <= standing)
    }
}

impl<S: Eq + Clone> Queue<S> {
    /// Whether a request for `session` that arrives at `now` goes before all that wait. If so and it enters, [`overtook`](Queue::overtook) is
    /// to be called.
    pub(super) fn may_overtake(&self, session: Option<&S>, now: Instant) -> bool {
        if self.phases.is_empty() {
            return true;
        }
        if self.owed {
            return false;
        }
        match self.policy {
            Policy::Eventual { patience } => !self.out_of_patience(0, patience, now),
            Policy::Fifo => false,
            // Who has fellows in the queue goes to them: to enter before them would be unfair.
            Policy::Batch { passes } => self.phases.iter().all(|phase| {
                phase.passed < passes && (phase.session.as_ref() != session || session.is_none())
            }),
            Policy::Priority { .. } => self.place_by_standing(self.standing(session, now)) == 0,
        }
    }

    /// A request that found [`may_overtake`](Queue::may_overtake) true has entered.
    pub(super) fn overtook(&mut self) {
        self.count_passes(0);
    }

    fn count_passes(&mut self, from: usize) {
        if let Policy::Batch { .. } = self.policy {
            for phase in self.phases.iter_mut().skip(from) {
                phase.passed += 1;
            }
        }
    }

    /// Puts a request for `session` into the queue and gives it a ticket.
    pub(super) fn push(
        &mut self,
        session: Option<&S>,
        now: Instant,
        signal: Arc<Signal>,
        kind: Kind,
    ) -> u64 {
        let fellows = |phase: &Phase<S>| {
            session.is_some()
                && phase.session.as_ref() == session
                && phase.waiters.len() < MOST_HOLDERS
        };
        let standing = self.standing(session, now);
        let (place, join) = match self.policy {
            Policy::Fifo => (self.phases.len(), self.phases.back().is_some_and(fellows)),
            Policy::Priority { .. } => {
                let place = self.place_by_standing(standing);
                (place, place > 0 && fellows(&self.phases[place - 1]))
            }
            // To join a phase is to overtake all behind it.
            Policy::Eventual { patience } => {
                let found = (0..self.phases.len()).find(|&i| {
                    fellows(&self.phases[i]) && !self.out_of_patience(i + 1, patience, now)
                });
                (found.map_or(self.phases.len(), |i| i + 1), found.is_some())
            }
            Policy::Batch { passes } => {
                let found = (0..self.phases.len()).find(|&i| {
                    fellows(&self.phases[i])
                        && self.phases.iter().skip(i + 1).all(|phase| phase.passed < passes)
                });
                if let Some(i) = found {
                    self.count_passes(i + 1);
                }
                (found.map_or(self.phases.len(), |i| i + 1), found.is_some())
            }
        };
        if !join {
            let phase = Phase {
                session: session.cloned(),
                waiters: VecDeque::new(),
                invited: 0,
                helpless: 0,
                passed: 0,
                standing,
            };
            self.phases.insert(place, phase);
        }
        let phase = &mut self.phases[if join { place - 1 } else { place }];
        let ticket = self.ticket;
        self.ticket += 1;
        let helpless = usize::from(!kind.can_try());
        phase.helpless += helpless;
        self.helpless += helpless;
        phase.waiters.push_back(Waiter { ticket, arrived: now, invited: false, signal, kind });
        ticket
    }
}

impl<S: fmt::Debug> fmt::Debug for Queue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("policy", &self.policy)
            .field("phases", &self.phases)
            .finish_non_exhaustive()
    }
}
