//! Threads on the real lock.
use grouplock::{GroupLock, Policy};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

fn storm<C>(lock: &GroupLock<u64, AtomicU64, C>, threads: u64, sessions: u64, rounds: u64)
where
    C: grouplock::cores::Cancellable<u64> + Sync,
{
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for t in 0..threads {
            let most = &most;
            scope.spawn(move || {
                let mut rng = t * 7919 + 1;
                let mut held = 0u64;
                for _ in 0..rounds {
                    rng ^= rng << 13;
                    rng ^= rng >> 7;
                    rng ^= rng << 17;
                    let s = rng % sessions;
                    match (rng >> 32) % 8 {
                        0 => {
                            let mut g = lock.exclusive();
                            let v = g.get_mut();
                            assert_eq!(*v >> 32, 0);
                            *v += 1;
                            *v -= 1;
                        }
                        1 => {
                            if let Some(g) = lock.try_enter_for(s, Duration::from_micros(rng % 50))
                            {
                                let old = g.fetch_add(1, SeqCst);
                                let _ = old;
                                g.fetch_sub(1, SeqCst);
                                held += 1;
                            }
                        }
                        k => {
                            let mut g = lock.enter(s);
                            let old = g.fetch_add((s + 1) << 32, SeqCst);
                            let n = old >> 32;
                            assert!(n.is_multiple_of(s + 1), "session {s} found {n}");
                            most.fetch_max((n / (s + 1)) as usize + 1, SeqCst);
                            if k == 2 {
                                std::thread::yield_now();
                            }
                            g.fetch_sub((s + 1) << 32, SeqCst);
                            if k == 3 {
                                g.switch((s + 1) % sessions);
                                assert_eq!(*g.session(), (s + 1) % sessions);
                            }
                            held += 1;
                        }
                    }
                }
                held
            });
        }
    });
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
    eprintln!("most inside {}", most.load(SeqCst));
}

#[test]
fn policies() {
    for policy in [
        Policy::default(),
        Policy::Fifo,
        Policy::Batch { passes: 10 },
        Policy::Priority { aging: Duration::from_millis(1) },
        Policy::Eventual { patience: Duration::ZERO },
        Policy::Eventual { patience: Duration::MAX },
    ] {
        eprintln!("{policy:?}");
        storm(&GroupLock::with_policy(policy, AtomicU64::new(0)), 8, 3, 20_000);
    }
    eprintln!("striped");
    storm(&GroupLock::striped(AtomicU64::new(0)), 8, 3, 20_000);
}
