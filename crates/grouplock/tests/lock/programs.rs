//! Tasks that a test polls, in random programs: whatever they request and withdraw, no request is
//! lost.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use crate::common::{Woken, poll_with, waiters};
use grouplock::cores::{Core, Phases, Striped};
use grouplock::{GroupLock, Policy, SessionGuard};

/// What the holders know of the room.
#[derive(Default)]
struct Seen {
    /// The number of holders of each session; the last number is for holders that are alone.
    inside: [Cell<usize>; 4],
    /// The session that the room is set up for.
    ready: Cell<u32>,
    most: Option<usize>,
}

const ALONE: u32 = 3;
const NONE: u32 = 9;

impl Seen {
    fn come(&self, session: u32, again: bool) {
        let here = self.inside[session as usize].get();
        let all: usize = self.inside.iter().map(Cell::get).sum();
        assert!(all == here && (session != ALONE || here == 0), "two sessions meet");
        assert!(again || self.most.is_none_or(|most| here < most), "{here} are inside already");
        self.inside[session as usize].set(here + 1);
        if session != ALONE && self.ready.get() != session {
            self.ready.set(NONE);
        }
    }

    fn go(&self, session: u32) {
        let inside = &self.inside[session as usize];
        inside.set(inside.get() - 1);
    }
}

/// Leaves when dropped.
struct Stay(Rc<Seen>, u32);

impl Drop for Stay {
    fn drop(&mut self) {
        self.0.go(self.1);
    }
}

fn come(seen: &Rc<Seen>, session: u32, again: bool) -> Stay {
    seen.come(session, again);
    Stay(Rc::clone(seen), session)
}

/// A future that is ready at the second poll.
async fn pause() {
    let mut first = true;
    std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut first, false) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

type Life<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One participant, from its request until it leaves.
fn life<'a, C: Core<Session = u32>>(
    lock: &'a GroupLock<u32, (), C>,
    seen: Rc<Seen>,
    random: &mut fastrand::Rng,
) -> Life<'a> {
    let (session, next) = (random.u32(..3), random.u32(..3));
    // With a limit, a second guard may be one too many, because other requests may be admitted and
    // not know it yet.
    let kind = random.u8(..if seen.most.is_some() { 6 } else { 7 });
    let stays = random.usize(..6);
    let fails = random.u8(..4) == 0;
    Box::pin(async move {
        let linger = async || {
            for _ in 0..stays {
                pause().await;
            }
        };
        match kind {
            0 => {
                let _guard = lock.exclusive_async().await;
                let _stay = come(&seen, ALONE, false);
                linger().await;
            }
            1 | 2 => {
                let done = lock
                    .enter_with_result_async(session, async |(): &mut ()| {
                        seen.ready.set(NONE);
                        let _stay = come(&seen, ALONE, false);
                        linger().await;
                        if fails {
                            return Err(());
                        }
                        seen.ready.set(session);
                        Ok(())
                    })
                    .await;
                if let Ok(_guard) = done {
                    assert_eq!(seen.ready.get(), session, "not set up");
                    let _stay = come(&seen, session, false);
                    linger().await;
                }
            }
            3 => {
                let mut guard = lock.enter_async(session).await;
                let stay = come(&seen, session, false);
                linger().await;
                drop(stay);
                SessionGuard::switch_async(&mut guard, next).await;
                let _stay = come(&seen, next, false);
                linger().await;
            }
            6 => {
                let guard = lock.enter_async(session).await;
                let stay = come(&seen, session, false);
                let again = SessionGuard::again(&guard);
                let stay_again = come(&seen, session, true);
                linger().await;
                drop(stay);
                drop(guard);
                linger().await;
                drop((stay_again, again));
            }
            4 => {
                let Some(mut guard) = lock.try_enter(session) else { return };
                let stay = come(&seen, session, false);
                linger().await;
                drop(stay);
                let switched = SessionGuard::try_switch(&mut guard, next);
                let session = if switched { next } else { session };
                assert_eq!(*SessionGuard::session(&guard), session);
                let _stay = come(&seen, session, false);
                linger().await;
            }
            _ => {
                let _guard = lock.enter_async(session).await;
                let _stay = come(&seen, session, false);
                linger().await;
            }
        }
    })
}

/// Runs one program. Each participant is polled only after it was woken, or for the first time.
/// Some are dropped in the middle.
fn run<C: Core<Session = u32>>(core: C, most: Option<usize>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let lock = GroupLock::over(core, ());
    let seen = Rc::new(Seen { ready: Cell::new(NONE), most, ..Seen::default() });
    let mut lives: Vec<(Life<'_>, Arc<Woken>, usize)> = Vec::new();
    let mut to_come = 40;
    loop {
        if to_come > 0 && random.u8(..3) == 0 {
            to_come -= 1;
            let (woken, waker) = Woken::new();
            let mut life = life(&lock, Rc::clone(&seen), &mut random);
            if poll_with(&mut life, &waker).is_pending() {
                lives.push((life, woken, 0));
            }
        } else if !lives.is_empty() && random.u8(..20) == 0 {
            drop(lives.swap_remove(random.usize(..lives.len())));
        } else {
            let awake: Vec<_> =
                (0..lives.len()).filter(|i| lives[*i].1.times() > lives[*i].2).collect();
            if awake.is_empty() {
                if to_come > 0 {
                    continue;
                }
                break;
            }
            let who = awake[random.usize(..awake.len())];
            let (life, woken, polled) = &mut lives[who];
            *polled = woken.times();
            let waker = woken.waker();
            if poll_with(life, &waker).is_ready() {
                drop(lives.swap_remove(who));
            }
        }
        let now = lock.snapshot();
        assert!(now.holders > 0 || waiters(&now) == 0, "{now:?}");
    }
    assert!(lives.is_empty(), "{} are forgotten: {:?}", lives.len(), lock.snapshot());
    let end = lock.snapshot();
    assert_eq!((end.holders, end.waiting.len()), (0, 0));
    assert!(lock.try_exclusive().is_some());
}

#[test]
fn nobody_is_forgotten() {
    let policies = [
        Policy::EVENTUAL,
        Policy::Fifo,
        Policy::Batch { passes: 3 },
        Policy::BatchFor { wait: std::time::Duration::from_micros(20) },
    ];
    for seed in 0..300 {
        for policy in policies {
            run(Phases::with_policy(policy), None, seed);
            run(Phases::with_policy(policy).at_most(|_| 2), Some(2), seed);
            run(Striped::new(policy), None, seed);
        }
        #[cfg(feature = "handover")]
        run(grouplock::cores::Handover::new(), None, seed);
    }
}
