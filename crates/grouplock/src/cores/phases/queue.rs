//! The queue of phases, and how each policy orders it. Plain data: only the thread that holds the
//! internal lock uses it.
//!
//! ```text
//!    next to go                                        last
//!  ┌─────────────┐   ┌─────────────┐   ┌─────────────┐
//!  │ session B   │ ⇄ │ exclusive   │ ⇄ │ session A   │
//!  │ 3 waiters   │   │ 1 waiter    │   │ 2 waiters   │
//!  └─────────────┘   └─────────────┘   └─────────────┘
//! ```
//!
//! 1. No phase is empty.
//! 2. An empty room is handed over to the first phase.
//! 3. The waiters of a phase are in the order of arrival.
//! 4. The phases are in the order in which they were founded. (Exceptions: [`Policy::Priority`]
//!    orders them, and the request of an upgrade is put first.)
//! 5. An exclusive request is a phase of its own.
//! 6. The id of a waiter is valid until the waiter is removed: when it withdraws, or before its
//!    signal becomes `Granted`.
//!
//! Joining, removing and taking the first phase take constant time, however long the queue is;
//! under [`Policy::Priority`], logarithmic time. By 4, the first phase has waited longest, so one
//! look at it shows whether anybody has waited too long. What a policy counts for a phase (its age,
//! how often it was overtaken) begins when the phase is founded, also if its founder withdraws
//! later. So the strict order may begin early, and never late.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::arena::{Arena, List, NodeId};
use super::waiter::{Kind, Signal, Waiter, Wakes};
use super::word::MOST_HOLDERS;
use crate::watch::Crowd;
use crate::{Policy, WaitingPhase};

/// The priority of a session, or of exclusive requests.
pub(crate) type Priorities<S> = Box<dyn Fn(Option<&S>) -> u32 + Send + Sync>;

/// How many of a session may be inside together.
pub(super) type Limits<S> = Box<dyn Fn(&S) -> usize + Send + Sync>;

/// What a request asks for: a session, whose name the request may own; or `None`, to be alone.
pub(in crate::cores) type Asked<'a, S> = Option<Cow<'a, S>>;

/// A phase in the queue.
pub(super) type PhaseId = NodeId;

/// A waiter in the queue. Valid by invariant 6.
pub(super) type WaiterId = NodeId;

/// A request that looks for a phase to join compares its session with so many of the newest ones.
/// Sessions can only be compared, so there is no faster search; and this bounds its time.
const COMPARED_PHASES: usize = 32;

/// Requests that will enter together.
#[derive(Debug)]
pub(super) struct Phase<S> {
    /// `None` for an exclusive request.
    pub(super) session: Option<S>,
    pub(super) waiters: List,
    /// How many of the waiters cannot be invited.
    helpless: usize,
    /// How many of the waiters must find the room set up.
    pub(super) set_ups: usize,
    /// When it was founded.
    arrived: Instant,
    /// The value of [`Queue::passes`] when it was founded.
    passes: u64,
    /// Its key in [`Queue::by_arrival`].
    key: (i128, u64),
    /// It has been promised the room: when it is the first, nobody overtakes it, whatever the
    /// policy says.
    owed: bool,
}

/// Who may enter before the waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overtaking {
    Nobody,
    /// A request for the session that is inside, or was inside last.
    PresentSession,
    Anybody,
}

/// What the queue demands of threads that enter and leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// A free room must be handed over to the first phase. Otherwise that is invited to try for it.
    pub(super) hand_over: bool,
    /// New requests must ask under the internal lock: a waiter may not be overtaken, or the policy
    /// counts who overtakes, or a waiter cannot end its patience itself.
    pub(super) must_lock: bool,
    /// A thread has been invited and has not answered yet.
    pub(super) invited: bool,
}

/// The phases that wait, in the order in which they will enter.
pub(super) struct Queue<S> {
    policy: Policy,
    priorities: Option<Priorities<S>>,
    /// How many of a session may be inside together.
    pub(super) most: Option<Limits<S>>,
    order: List,
    phases: Arena<Phase<S>>,
    waiters: Arena<Waiter>,
    /// The phases by [virtual arrival](Queue::virtual_arrival), and then by number. Only under
    /// [`Policy::Priority`].
    by_arrival: BTreeMap<(i128, u64), PhaseId>,
    /// How many phases have been founded.
    founded: u64,
    /// How many requests have overtaken a waiter. A phase has been overtaken at most as often as
    /// this has grown since it was founded.
    passes: u64,
    /// How many waiters in all phases cannot be invited.
    helpless: usize,
    /// The thread that was invited, and has not answered yet.
    invited: Option<WaiterId>,
    /// Virtual arrivals are counted from this time.
    start: Instant,
    /// Grows when the room changes to another session and when it is about to be set up, once the
    /// queue exists. Nobody has read it before: whoever reads it creates the queue.
    pub(super) epoch: u64,
}

impl<S> Queue<S> {
    pub(super) fn new(policy: Policy, priorities: Option<Priorities<S>>) -> Self {
        Queue {
            policy,
            priorities,
            most: None,
            order: List::default(),
            phases: Arena::new(),
            waiters: Arena::new(),
            by_arrival: BTreeMap::new(),
            founded: 0,
            passes: 0,
            helpless: 0,
            invited: None,
            start: Instant::now(),
            epoch: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.len() == 0
    }

    pub(super) fn first_id(&self) -> Option<PhaseId> {
        self.order.first()
    }

    pub(super) fn first(&self) -> Option<&Phase<S>> {
        self.order.first().map(|phase_id| &self.phases[phase_id])
    }

    /// What the queue demands of threads that enter and leave; `None` if nobody waits.
    pub(super) fn demands(&self) -> Option<Demands> {
        let first = self.first()?;
        let strict = first.owed || self.is_strict(first, Instant::now);
        let counted = matches!(self.policy, Policy::Batch { .. } | Policy::BatchFor { .. });
        Some(Demands {
            hand_over: strict || first.helpless > 0,
            must_lock: strict || counted || self.helpless > 0,
            invited: self.invited.is_some(),
        })
    }

    /// Whether nobody may overtake `phase`, or nobody any more.
    fn is_strict(&self, phase: &Phase<S>, now: impl FnOnce() -> Instant) -> bool {
        let has_waited = |time: Duration| {
            time != Duration::MAX && now().saturating_duration_since(phase.arrived) >= time
        };
        match self.policy {
            Policy::Fifo | Policy::Priority { .. } => true,
            Policy::Eventual { patience } => has_waited(patience),
            Policy::Batch { passes } => self.passes - phase.passes >= u64::from(passes),
            Policy::BatchFor { wait } => has_waited(wait),
        }
    }

    /// When the lock turns strict because of a request that arrives at `now`, if the policy has
    /// such a time.
    pub(super) fn patience(&self, now: Instant) -> Option<Instant> {
        match self.policy {
            Policy::Eventual { patience: time } | Policy::BatchFor { wait: time } => {
                now.checked_add(time)
            }
            Policy::Fifo | Policy::Batch { .. } | Policy::Priority { .. } => None,
        }
    }

    /// Who may enter before all waiters, if a request for `session` arrives at `now`. If it enters,
    /// [`overtook`](Queue::overtook) must be called.
    pub(super) fn overtaking(&self, session: Option<&S>, now: Instant) -> Overtaking {
        let Some(first) = self.first() else { return Overtaking::Anybody };
        let higher = || self.virtual_arrival(session, now) < first.key.0;
        match self.policy {
            _ if first.owed => Overtaking::Nobody,
            Policy::Priority { .. } if higher() => Overtaking::Anybody,
            _ if self.is_strict(first, || now) => Overtaking::Nobody,
            Policy::Batch { .. } | Policy::BatchFor { .. } => Overtaking::PresentSession,
            _ => Overtaking::Anybody,
        }
    }

    /// A request has entered before all waiters.
    pub(super) fn overtook(&mut self) {
        self.passes += 1;
    }

    /// The first phase, if there is one, is promised the room: no new request overtakes it.
    #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
    pub(super) fn promise(&mut self) {
        if let Some(first) = self.order.first() {
            self.phases[first].owed = true;
        }
    }

    /// A request to be alone becomes the first, and is promised the room.
    #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
    pub(super) fn push_first(&mut self, now: Instant, signal: Arc<Signal>) -> WaiterId {
        let phase = self.found(None, None, now, i128::MIN);
        self.phases[phase].owed = true;
        self.wait_in(phase, now, signal, Kind::Switching)
    }

    /// Chooses a thread of the first phase, which has only threads, and marks it as invited.
    pub(super) fn invite(&mut self) -> Option<&Signal> {
        let id = self.first()?.waiters.first()?;
        self.invited = Some(id);
        Some(&self.waiters[id].signal)
    }

    /// The thread `id` was invited and answers. Whether the room may go to its phase.
    pub(super) fn invitation_ends(&mut self, id: WaiterId) -> bool {
        self.invited = self.invited.filter(|invited| *invited != id);
        self.order.first() == Some(self.waiters[id].phase)
    }

    /// Removes the first phase. Its waiters must be [granted](Queue::grant) the room.
    pub(super) fn take_first(&mut self) -> Option<Phase<S>> {
        let first = self.order.first()?;
        Some(self.take(first))
    }

    /// Removes a phase that overtakes those before it.
    pub(super) fn take_overtaking(&mut self, phase_id: PhaseId) -> Phase<S> {
        let is_first = self.order.first() == Some(phase_id);
        let phase = self.take(phase_id);
        self.passes += if is_first { 0 } else { phase.waiters.len() as u64 };
        phase
    }

    fn take(&mut self, phase_id: PhaseId) -> Phase<S> {
        let phase = self.phases.remove(&mut self.order, phase_id);
        if let Policy::Priority { .. } = self.policy {
            self.by_arrival.remove(&phase.key);
        }
        self.helpless -= phase.helpless;
        phase
    }

    /// The waiter `id` must find the room set up for its session, or set it up.
    pub(super) fn needs_set_up(&mut self, id: WaiterId) {
        let waiter = &mut self.waiters[id];
        waiter.set_up = true;
        self.phases[waiter.phase].set_ups += 1;
    }

    /// Removes the waiter of the first phase that has to set the room up. Also returns the name of
    /// the phase, if it was the last waiter there.
    pub(super) fn take_set_up(&mut self) -> Option<(WaiterId, Waiter, Option<S>)> {
        let waiters = self.first()?.waiters;
        let mut ids = std::iter::successors(waiters.first(), |it| self.waiters.next(*it));
        let id = ids.find(|id| self.waiters[*id].set_up)?;
        let (waiter, name) = self.remove(id);
        Some((id, waiter, name))
    }

    /// Sets the signals of the waiters of a phase to `Granted`, and has all woken except the waiter
    /// `running`. They have been counted: from now on, some may leave again.
    pub(super) fn grant(
        &mut self,
        mut waiters: List,
        running: Option<WaiterId>,
        wakes: &mut Wakes,
    ) {
        while let Some(id) = waiters.first() {
            let waiter = self.waiters.remove(&mut waiters, id);
            self.invited = self.invited.filter(|invited| *invited != id);
            waiter.enter(running == Some(id), wakes);
        }
    }

    /// Removes the waiter `id`. Also returns the name of its phase, if it was the last waiter
    /// there.
    pub(super) fn remove(&mut self, id: WaiterId) -> (Waiter, Option<S>) {
        let phase_id = self.waiters[id].phase;
        let phase = &mut self.phases[phase_id];
        let waiter = self.waiters.remove(&mut phase.waiters, id);
        self.invited = self.invited.filter(|invited| *invited != id);
        let helpless = usize::from(!waiter.kind.can_be_invited());
        phase.helpless -= helpless;
        self.helpless -= helpless;
        phase.set_ups -= usize::from(waiter.set_up);
        let empty = phase.waiters.len() == 0;
        (waiter, if empty { self.take(phase_id).session } else { None })
    }

    /// The task `id` was polled with another waker. Returns the old one, to be dropped without the
    /// internal lock.
    pub(super) fn replace_waker(&mut self, id: WaiterId, waker: &Waker) -> Option<Waker> {
        let Kind::Task(old) = &mut self.waiters[id].kind else { return None };
        if old.will_wake(waker) { None } else { Some(std::mem::replace(old, waker.clone())) }
    }

    /// The time of arrival by which [`Policy::Priority`] orders a request for `session` that
    /// arrives at `now`: in nanoseconds, minus the worth of its priority.
    fn virtual_arrival(&self, session: Option<&S>, now: Instant) -> i128 {
        let Policy::Priority { aging } = self.policy else { return 0 };
        let nanoseconds = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let priority = self.priorities.as_ref().map_or(0, |of| of(session));
        nanoseconds(now.saturating_duration_since(self.start))
            - nanoseconds(aging).saturating_mul(i128::from(priority))
    }

    /// A new phase, still without waiters, behind the phase `previous` or before all others.
    fn found(
        &mut self,
        session: Option<S>,
        previous: Option<PhaseId>,
        now: Instant,
        virtual_arrival: i128,
    ) -> PhaseId {
        let key = (virtual_arrival, self.founded);
        self.founded += 1;
        let phase = Phase {
            session,
            waiters: List::default(),
            helpless: 0,
            set_ups: 0,
            arrived: now,
            passes: self.passes,
            key,
            owed: false,
        };
        let phase_id = self.phases.insert(&mut self.order, previous, phase);
        if let Policy::Priority { .. } = self.policy {
            self.by_arrival.insert(key, phase_id);
        }
        phase_id
    }

    /// Adds a waiter behind all others of a phase.
    fn wait_in(
        &mut self,
        phase_id: PhaseId,
        now: Instant,
        signal: Arc<Signal>,
        kind: Kind,
    ) -> WaiterId {
        let phase = &mut self.phases[phase_id];
        let helpless = usize::from(!kind.can_be_invited());
        phase.helpless += helpless;
        self.helpless += helpless;
        let waiter = Waiter { phase: phase_id, arrived: now, signal, kind, set_up: false };
        let last = phase.waiters.last();
        self.waiters.insert(&mut phase.waiters, last, waiter)
    }

    /// The phases, for a snapshot.
    pub(super) fn snapshot(&self, now: Instant) -> Vec<WaitingPhase<S>>
    where
        S: Clone,
    {
        let phase = |phase: &Phase<S>| WaitingPhase {
            session: phase.session.clone(),
            waiters: phase.waiters.len(),
            age: phase.waiters.first().map_or(Duration::ZERO, |first| {
                now.saturating_duration_since(self.waiters[first].arrived)
            }),
        };
        self.phases.iter(self.order).map(phase).collect()
    }

    /// How many holders and waiters there are, for reports.
    pub(super) fn crowd(&self, holders: usize) -> Crowd {
        let waiters = self.phases.iter(self.order).map(|phase| phase.waiters.len()).sum();
        Crowd { policy: self.policy, holders, phases: self.order.len(), waiters }
    }
}

impl<S: Eq + Clone> Queue<S> {
    /// Adds a request for `asked` to the queue. Returns its id, and the name if it was not needed.
    pub(super) fn push<'a>(
        &mut self,
        asked: Asked<'a, S>,
        now: Instant,
        signal: Arc<Signal>,
        kind: Kind,
    ) -> (WaiterId, Asked<'a, S>) {
        let virtual_arrival = self.virtual_arrival(asked.as_deref(), now);
        let previous = match self.policy {
            Policy::Priority { .. } => {
                let up_to = self.by_arrival.range(..=(virtual_arrival, u64::MAX));
                up_to.map(|(_, phase_id)| *phase_id).next_back()
            }
            _ => self.order.last(),
        };
        if let Some(phase) = self.joinable_phase(asked.as_deref(), previous, now) {
            // A request that joins a phase overtakes all phases behind it.
            self.passes += u64::from(self.order.last() != Some(phase));
            (self.wait_in(phase, now, signal, kind), asked)
        } else {
            let phase = self.found(asked.map(Cow::into_owned), previous, now, virtual_arrival);
            (self.wait_in(phase, now, signal, kind), None)
        }
    }
}

impl<S: Eq> Queue<S> {
    /// The newest phase that a request for `session` may join: `newest`, or one before it if the
    /// phases behind may be overtaken.
    fn joinable_phase(
        &self,
        session: Option<&S>,
        newest: Option<PhaseId>,
        now: Instant,
    ) -> Option<PhaseId> {
        let session = session?;
        let mut phase = newest?;
        for _ in 0..COMPARED_PHASES {
            let this = &self.phases[phase];
            if this.session.as_ref() == Some(session) && this.waiters.len() < MOST_HOLDERS {
                return Some(phase);
            }
            if self.is_strict(this, || now) {
                return None;
            }
            phase = self.phases.previous(phase)?;
        }
        None
    }

    /// A phase of `session`, which is inside, that may enter now, and how many wait in it: the
    /// first, or another that may overtake. If the room is not `set_up`, a phase that needs set-up
    /// waits.
    pub(super) fn phase_of_session_inside(
        &self,
        session: &S,
        set_up: bool,
    ) -> Option<(PhaseId, usize)> {
        let (phase_id, first) = (self.order.first()?, self.first()?);
        let found = if first.session.as_ref() == Some(session) {
            phase_id
        } else {
            self.overtaking_phase(session, first)?
        };
        let phase = &self.phases[found];
        (set_up || phase.set_ups == 0).then_some((found, phase.waiters.len()))
    }

    /// The newest phase of `session`, which is inside, if it may overtake all phases before it.
    fn overtaking_phase(&self, session: &S, first: &Phase<S>) -> Option<PhaseId> {
        if first.owed || self.order.len() == 1 {
            return None;
        }
        let now = match self.policy {
            Policy::Fifo | Policy::Priority { .. } => return None,
            Policy::Batch { .. } => first.arrived,
            Policy::Eventual { .. } | Policy::BatchFor { .. } => Instant::now(),
        };
        if self.is_strict(first, || now) {
            return None;
        }
        let found = self.joinable_phase(Some(session), self.order.last(), now)?;
        let passes = self.passes - first.passes + self.phases[found].waiters.len() as u64;
        let within =
            !matches!(self.policy, Policy::Batch { passes: most } if passes > u64::from(most));
        within.then_some(found)
    }
}
