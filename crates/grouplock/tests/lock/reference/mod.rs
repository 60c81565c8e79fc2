//! The lock and a reference model run random programs. After every step the same requests are
//! inside and the same requests wait, in the same order. Exactly the admitted requests were woken.
//!
//! One thread runs all participants, as futures, so a run repeats exactly.

mod guarantees;
mod model;

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::common::{Woken, poll_with};
use grouplock::cores::{Core, Striped};
use grouplock::future::{Enter, Exclusive};
use grouplock::{ExclusiveGuard, GroupLock, SessionGuard};
use guarantees::Guarantees;
use model::{Model, Policy};
use proptest::prelude::*;

/// One participant.
enum Slot<'a, C: Core<Session = u8>> {
    Idle,
    Entering(Enter<'a, u8, (), C>, Arc<Woken>),
    EnteringAlone(Exclusive<'a, u8, (), C>, Arc<Woken>),
    Inside(SessionGuard<'a, u8, (), C>),
    Alone(ExclusiveGuard<'a, u8, (), C>),
}

const SLOTS: usize = 7;
const SESSIONS: u8 = 3;

/// A step of a program. Its meaning depends on the state of the participant.
type Step = (u8, usize, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..16_u8, 0..SLOTS, 0..=SESSIONS), 1..150)
}

/// A lock and its reference model.
struct Twins<'a, C: Core<Session = u8>> {
    lock: &'a GroupLock<u8, (), C>,
    model: Model,
    guarantees: Guarantees,
    slots: Vec<Slot<'a, C>>,
    /// Whether the lock has the policy of the model. If not, a blocking call may wait forever where
    /// the model says that it enters.
    alike: bool,
    /// Whether the lock shows two groups as one after the group between them has gone. They enter
    /// together in any case.
    merges: bool,
}

impl<'a, C: Core<Session = u8>> Twins<'a, C> {
    fn new(policy: Policy, lock: &'a GroupLock<u8, (), C>) -> Self {
        let slots = (0..SLOTS).map(|_| Slot::Idle).collect();
        let (model, guarantees) = (Model::new(policy), Guarantees::new(policy));
        Twins { lock, model, guarantees, slots, alike: true, merges: false }
    }

    fn step(&mut self, (kind, who, number): Step) {
        // The last number means an exclusive request.
        let session = (number < SESSIONS).then_some(number);
        let slot = std::mem::replace(&mut self.slots[who], Slot::Idle);
        self.slots[who] = match slot {
            Slot::Idle => self.come(kind, who, session),
            Slot::Entering(future, woken) => {
                self.wait(kind, who, future, woken, Slot::Inside, Slot::Entering)
            }
            Slot::EnteringAlone(future, woken) => {
                self.wait(kind, who, future, woken, Slot::Alone, Slot::EnteringAlone)
            }
            Slot::Inside(mut guard) => match session {
                Some(session)
                    if kind % 3 == 0 && self.alike && self.model.switches(who, session) =>
                {
                    SessionGuard::switch(&mut guard, session);
                    self.guarantees.switched(who, &self.model, session);
                    self.model.switch(session);
                    assert_eq!(*SessionGuard::session(&guard), session);
                    Slot::Inside(guard)
                }
                _ => {
                    drop(guard);
                    self.model.go(who);
                    Slot::Idle
                }
            },
            Slot::Alone(guard) => match session {
                Some(session) if kind % 3 == 0 => {
                    let guard = ExclusiveGuard::downgrade(guard, session);
                    self.model.downgrade(session);
                    Slot::Inside(guard)
                }
                _ => {
                    drop(guard);
                    self.model.go(who);
                    Slot::Idle
                }
            },
        };
        self.compare();
    }

    /// A participant whose request waits withdraws or polls.
    fn wait<F: Future<Output: Sized> + Unpin>(
        &mut self,
        kind: u8,
        who: usize,
        mut future: F,
        woken: Arc<Woken>,
        inside: impl FnOnce(F::Output) -> Slot<'a, C>,
        waiting: impl FnOnce(F, Arc<Woken>) -> Slot<'a, C>,
    ) -> Slot<'a, C> {
        if kind.is_multiple_of(4) {
            self.model.go(who);
            drop(future);
            return Slot::Idle;
        }
        let polled = poll_with(&mut future, &woken.waker());
        assert_eq!(polled.is_ready(), self.model.holders.contains(&who), "whether {who} is inside");
        match polled {
            Poll::Ready(guard) => inside(guard),
            Poll::Pending => waiting(future, woken),
        }
    }

    /// An idle participant makes a request.
    fn come(&mut self, kind: u8, who: usize, session: Option<u8>) -> Slot<'a, C> {
        let lock = self.lock;
        let admits = self.model.admits(session);
        let past = Instant::now();
        let inside = |guard| guard_or_idle(guard, Slot::Inside);
        let alone = |guard| guard_or_idle(guard, Slot::Alone);
        let slot = match (kind, session) {
            (0..=1, Some(session)) => inside(lock.try_enter(session)),
            (0..=1, None) => alone(lock.try_exclusive()),
            (2, Some(session)) => inside(lock.try_enter_for(session, Duration::ZERO)),
            (2, None) => alone(lock.try_exclusive_for(Duration::ZERO)),
            (3, Some(session)) => inside(lock.try_enter_until(session, past)),
            (3, None) => alone(lock.try_exclusive_until(past)),
            (4, Some(session)) if admits && self.alike => Slot::Inside(lock.enter(session)),
            (4, None) if admits && self.alike => Slot::Alone(lock.exclusive()),
            (5, Some(session)) if admits && self.model.waiting.is_empty() => {
                // After so many entries, a striped lock favours the session.
                (0..70).for_each(|_| drop(lock.enter(session)));
                self.guarantees.came(who, &self.model, Some(session));
                Slot::Inside(lock.enter(session))
            }
            (_, Some(session)) => {
                let mut future = lock.enter_async(session);
                let (woken, waker) = Woken::new();
                self.guarantees.came(who, &self.model, Some(session));
                self.model.ask(who, Some(session));
                return match poll_with(&mut future, &waker) {
                    Poll::Ready(guard) => Slot::Inside(guard),
                    Poll::Pending => Slot::Entering(future, woken),
                };
            }
            (_, None) => {
                let mut future = lock.exclusive_async();
                let (woken, waker) = Woken::new();
                self.guarantees.came(who, &self.model, None);
                self.model.ask(who, None);
                return match poll_with(&mut future, &waker) {
                    Poll::Ready(guard) => Slot::Alone(guard),
                    Poll::Pending => Slot::EnteringAlone(future, woken),
                };
            }
        };
        if admits && kind != 5 {
            self.guarantees.came(who, &self.model, session);
        }
        assert_eq!(self.model.try_enter(who, session), !matches!(slot, Slot::Idle));
        slot
    }

    fn compare(&mut self) {
        let seen = self.lock.snapshot();
        let model = &self.model;
        assert_eq!(seen.holders, model.holders.len(), "{seen:?} {model:?}");
        if !model.holders.is_empty() {
            assert_eq!(seen.session, model.inside, "{seen:?} {model:?}");
        }
        assert_eq!(seen.exclusive, !model.holders.is_empty() && model.inside.is_none());
        let waiting: Vec<_> = seen.waiting.iter().map(|w| (w.session, w.waiters)).collect();
        let mut expected: Vec<_> =
            model.waiting.iter().map(|group| (group.session, group.members.len())).collect();
        if self.merges {
            expected.dedup_by(|next, before| {
                let same = next.0.is_some() && next.0 == before.0;
                before.1 += if same { next.1 } else { 0 };
                same
            });
        }
        assert_eq!(waiting, expected, "{model:?}");
        for (who, slot) in self.slots.iter().enumerate() {
            if let Slot::Entering(_, woken) | Slot::EnteringAlone(_, woken) = slot {
                let granted = model.holders.contains(&who);
                assert_eq!(woken.times(), usize::from(granted), "{who}: {model:?}");
            }
        }
        self.guarantees.check(model);
    }

    /// All participants leave or withdraw, in the order of the slots. Then there are none.
    fn finish(mut self) {
        for who in 0..SLOTS {
            self.slots[who] = Slot::Idle;
            self.model.go(who);
            self.compare();
        }
        drop(self.lock.try_exclusive().expect("the room is empty"));
    }
}

fn guard_or_idle<'a, C: Core<Session = u8>, G>(
    guard: Option<G>,
    slot: impl FnOnce(G) -> Slot<'a, C>,
) -> Slot<'a, C> {
    guard.map_or(Slot::Idle, slot)
}

fn run<C: Core<Session = u8>>(policy: Policy, lock: &GroupLock<u8, (), C>, program: &[Step]) {
    play(Twins::new(policy, lock), program);
}

fn play<C: Core<Session = u8>>(mut twins: Twins<'_, C>, program: &[Step]) {
    for step in program {
        twins.step(*step);
    }
    twins.finish();
}

/// The number of programs for each test.
fn programs() -> ProptestConfig {
    let asked = std::env::var("GROUPLOCK_PROGRAMS").ok().map(|number| {
        number.parse().unwrap_or_else(|_| panic!("GROUPLOCK_PROGRAMS={number} is not a number"))
    });
    let cases = asked.unwrap_or(2000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

macro_rules! policies {
    ($($name:ident: $policy:expr;)*) => {
        $(
            mod $name {
                use super::*;

                proptest! {
                    #![proptest_config(programs())]

                    #[test]
                    fn phases(program in steps()) {
                        run($policy, &$policy.lock(), &program);
                    }
                }
            }
        )*
    };
}

policies! {
    fifo: Policy::Fifo;
    batch_0: Policy::Batch { passes: 0 };
    batch_1: Policy::Batch { passes: 1 };
    batch_3: Policy::Batch { passes: 3 };
    eventual_at_once: Policy::Eventual { patience: Duration::ZERO };
    eventual_never: Policy::Eventual { patience: Duration::MAX };
    priority: Policy::Priority { aging: Duration::from_secs(1_000_000) };
    priority_absolute: Policy::Priority { aging: Duration::MAX };
}

mod striped {
    use super::*;

    proptest! {
        #![proptest_config(programs())]

        #[test]
        fn fifo(program in steps()) {
            run(Policy::Fifo, &GroupLock::over(Striped::new(grouplock::Policy::Fifo), ()), &program);
        }

        #[test]
        fn batch(program in steps()) {
            let policy = Policy::Batch { passes: 2 };
            run(policy, &GroupLock::over(Striped::new(policy.shipped()), ()), &program);
        }

        #[test]
        fn eventual_never(program in steps()) {
            let policy = Policy::Eventual { patience: Duration::MAX };
            run(policy, &GroupLock::over(Striped::new(policy.shipped()), ()), &program);
        }
    }
}

#[cfg(feature = "handover")]
mod handover {
    use super::*;

    proptest! {
        #![proptest_config(programs())]

        #[test]
        fn fifo(program in steps()) {
            let lock = GroupLock::over(grouplock::cores::Handover::new(), ());
            play(Twins { merges: true, ..Twins::new(Policy::Fifo, &lock) }, &program);
        }
    }
}

/// A wrong policy is noticed: the lock and the model differ.
#[test]
fn the_paper_tells_policies_apart() {
    let policies = [
        Policy::Fifo,
        Policy::Batch { passes: 1 },
        Policy::Batch { passes: 3 },
        Policy::Eventual { patience: Duration::MAX },
        Policy::Priority { aging: Duration::from_secs(1_000_000) },
    ];
    for paper in policies {
        for shipped in policies.into_iter().filter(|shipped| *shipped != paper) {
            let mut random = fastrand::Rng::with_seed(7);
            let parted = (0..2000).any(|_| {
                let program: Vec<Step> = (0..60)
                    .map(|_| (random.u8(..16), random.usize(..SLOTS), random.u8(..=SESSIONS)))
                    .collect();
                let twins = || {
                    let lock = shipped.lock();
                    play(Twins { alike: false, ..Twins::new(paper, &lock) }, &program);
                };
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(twins)).is_err()
            });
            assert!(parted, "{shipped:?} does not differ from {paper:?}");
        }
    }
}
