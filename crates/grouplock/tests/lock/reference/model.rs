//! A reference model of the lock: requests in a list, and the rules of each policy in plain code.

use std::time::Duration;

use grouplock::GroupLock;

/// The policies, with [`priority`] for `Policy::Priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Fifo,
    Eventual { patience: Duration },
    Batch { passes: u32 },
    Priority { aging: Duration },
}

impl Policy {
    /// A lock with this policy.
    pub(crate) fn lock(self) -> GroupLock<u8, ()> {
        match self {
            Policy::Priority { aging } => GroupLock::with_priorities(aging, priority, ()),
            other => GroupLock::with_policy(other.shipped(), ()),
        }
    }

    /// The policy of the lock.
    pub(crate) fn shipped(self) -> grouplock::Policy {
        match self {
            Policy::Fifo => grouplock::Policy::Fifo,
            Policy::Eventual { patience } => grouplock::Policy::Eventual { patience },
            Policy::Batch { passes } => grouplock::Policy::Batch { passes },
            Policy::Priority { .. } => panic!("only a lock with priorities has this policy"),
        }
    }
}

/// Requests that will enter together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// `None` for a request to be alone.
    pub(crate) session: Option<u8>,
    pub(crate) members: Vec<usize>,
    /// How many requests have overtaken any since it arrived.
    passed: u32,
    priority: u32,
}

/// The room and the list of waiting requests. A request has a number.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    policy: Policy,
    /// The requests of the holders.
    pub(crate) inside: Option<u8>,
    pub(crate) holders: Vec<usize>,
    pub(crate) waiting: Vec<Group>,
}

/// The priority of a session, for [`Policy::Priority`].
pub(crate) fn priority(session: Option<&u8>) -> u32 {
    session.map_or(1, |session| u32::from(*session))
}

impl Model {
    /// Of the policies with a clock, it supports those with a time of zero or a time that is longer
    /// than any program.
    pub(crate) fn new(policy: Policy) -> Self {
        Model { policy, inside: None, holders: Vec::new(), waiting: Vec::new() }
    }

    /// Returns whether a request for `session` would enter at once.
    pub(crate) fn admits(&self, session: Option<u8>) -> bool {
        let fits = self.holders.is_empty() || session.is_some() && self.inside == session;
        fits && self.may_overtake(session)
    }

    fn may_overtake(&self, session: Option<u8>) -> bool {
        self.waiting.iter().all(|group| match self.policy {
            Policy::Eventual { patience } => !patience.is_zero(),
            Policy::Fifo => false,
            Policy::Batch { passes } => {
                group.passed < passes && session.is_some() && session == self.inside
            }
            Policy::Priority { .. } => priority(session.as_ref()) > group.priority,
        })
    }

    /// Request `who` enters if no wait is needed.
    pub(crate) fn try_enter(&mut self, who: usize, session: Option<u8>) -> bool {
        let admitted = self.admits(session);
        if admitted {
            self.waiting.iter_mut().for_each(|group| group.passed += 1);
            self.inside = session;
            self.holders.push(who);
        }
        admitted
    }

    /// Request `who` enters or joins the waiters.
    pub(crate) fn ask(&mut self, who: usize, session: Option<u8>) {
        if self.try_enter(who, session) {
            return;
        }
        let priority = priority(session.as_ref());
        let same_session = |group: &Group| session.is_some() && group.session == session;
        let end = self.waiting.len();
        // The group that it joins, or the position of a new one.
        let joined = match self.policy {
            Policy::Fifo => end.checked_sub(1).filter(|i| same_session(&self.waiting[*i])),
            Policy::Eventual { patience } => (0..end).rfind(|i| {
                same_session(&self.waiting[*i]) && (!patience.is_zero() || i + 1 == end)
            }),
            Policy::Batch { passes } => (0..end).rfind(|i| {
                same_session(&self.waiting[*i])
                    && self.waiting[i + 1..].iter().all(|group| group.passed < passes)
            }),
            Policy::Priority { .. } => {
                let ahead = self.waiting.iter().filter(|group| group.priority >= priority).count();
                ahead.checked_sub(1).filter(|i| same_session(&self.waiting[*i]))
            }
        };
        if let Some(i) = joined {
            self.waiting[i].members.push(who);
            if i + 1 < end {
                self.waiting.iter_mut().for_each(|group| group.passed += 1);
            }
        } else {
            let place = match self.policy {
                Policy::Priority { .. } => {
                    self.waiting.iter().filter(|group| group.priority >= priority).count()
                }
                _ => end,
            };
            let group = Group { session, members: vec![who], passed: 0, priority };
            self.waiting.insert(place, group);
        }
    }

    /// Request `who` leaves, or withdraws.
    pub(crate) fn go(&mut self, who: usize) {
        self.holders.retain(|holder| *holder != who);
        for group in &mut self.waiting {
            group.members.retain(|member| *member != who);
        }
        self.waiting.retain(|group| !group.members.is_empty());
        self.settle();
    }

    /// Returns whether `who` can switch to `session` without a wait.
    pub(crate) fn switches(&self, who: usize, session: u8) -> bool {
        self.inside == Some(session) || self.holders == [who] && self.may_overtake(Some(session))
    }

    /// Switches.
    pub(crate) fn switch(&mut self, session: u8) {
        if self.inside != Some(session) {
            self.waiting.iter_mut().for_each(|group| group.passed += 1);
            self.inside = Some(session);
            self.settle();
        }
    }

    /// The only holder opens the room to `session`.
    pub(crate) fn downgrade(&mut self, session: u8) {
        self.inside = Some(session);
        self.settle();
    }

    /// A free room goes to the first group. A group for the session inside joins it: the first
    /// group, or another if the policy lets so many requests overtake.
    fn settle(&mut self) {
        while !self.waiting.is_empty() {
            let joins = |group: &Group| group.session.is_some() && group.session == self.inside;
            if self.holders.is_empty() || joins(&self.waiting[0]) {
                let first = self.waiting.remove(0);
                self.inside = first.session;
                self.holders.extend(first.members);
                continue;
            }
            let Some(i) = self.waiting.iter().rposition(joins) else { break };
            let count = self.waiting[i].members.len() as u32;
            let allowed = match self.policy {
                Policy::Eventual { patience } => !patience.is_zero(),
                Policy::Batch { passes } => {
                    self.waiting.iter().all(|group| group.passed + count <= passes)
                }
                Policy::Fifo | Policy::Priority { .. } => false,
            };
            if !allowed {
                break;
            }
            self.holders.extend(self.waiting.remove(i).members);
            self.waiting.iter_mut().for_each(|group| group.passed += count);
        }
    }
}
