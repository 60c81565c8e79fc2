//! Storms of threads and tasks on the real lock. Property monitors check them: no two sessions are
//! inside together, every request ends, and first come is first served where that is promised.
//! Holders panic, timeouts expire, and futures are dropped at any time.

mod executor;
mod participant;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[cfg(feature = "handover")]
use grouplock::cores::Handover;
use grouplock::cores::{Core, Phases, Striped};
use grouplock::{GroupLock, Policy};
use grouplock_algorithms::monitor::{Concurrency, Event, Exclusion, Fcfs, Journal, LeftBehind};
use participant::{Data, Participant, data};

/// The number of passages of each participant.
fn passages() -> usize {
    let asked = std::env::var("GROUPLOCK_PASSAGES").ok().map(|number| {
        number.parse().unwrap_or_else(|_| panic!("GROUPLOCK_PASSAGES={number} is not a number"))
    });
    // The thread sanitizer checks the order of accesses, and takes ten times as long.
    asked.unwrap_or(if cfg!(tsan) { 150 } else { 400 })
}

const POLICIES: [Policy; 6] = [
    Policy::EVENTUAL,
    Policy::Eventual { patience: Duration::ZERO },
    Policy::Eventual { patience: Duration::MAX },
    Policy::Fifo,
    Policy::Batch { passes: 10 },
    Policy::BatchFor { wait: Duration::from_micros(100) },
];

/// Checks the journals of the participants. Returns how much they shared.
#[track_caller]
fn judge(journals: &[Journal]) -> Concurrency {
    let mut concurrency = Concurrency::default();
    Journal::judge(journals, &mut Exclusion::default()).unwrap_or_else(|v| panic!("{v}"));
    Journal::judge(journals, &mut concurrency).unwrap_or_else(|v| panic!("{v}"));
    if journals.len() <= 64 {
        Journal::judge(journals, &mut LeftBehind::default()).unwrap_or_else(|v| panic!("{v}"));
    }
    println!(
        "{} passages, at most {} inside, {} changes of session",
        concurrency.entries, concurrency.most_inside, concurrency.switches
    );
    concurrency
}

#[track_caller]
fn assert_free<T, C: Core<Session = u32>>(lock: &GroupLock<u32, T, C>) {
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0), "{seen:?}");
    drop(lock.try_exclusive().expect("the room is empty"));
}

/// Threads, and as many tasks on two more threads, on one lock.
fn storm<C: Core<Session = u32> + Send + Sync + 'static>(
    lock: GroupLock<u32, Data, C>,
    gives_up: bool,
    threads: u64,
    tasks: u64,
) -> Vec<Journal>
where
    C::Pass: Send,
    C::Waiting: Send,
{
    let lock = Arc::new(lock);
    let journals = Arc::new(Mutex::new(Vec::new()));
    let passages = passages();
    thread::scope(|scope| {
        for seed in 0..threads {
            let (lock, journals) = (&lock, &journals);
            scope.spawn(move || {
                let mut participant = Participant::new(seed, gives_up);
                (0..passages).for_each(|_| participant.pass(lock));
                journals.lock().expect("no thread panics").push(participant.journal);
            });
        }
        let works = (0..tasks).map(|seed| {
            let (lock, journals) = (Arc::clone(&lock), Arc::clone(&journals));
            let work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task(
                lock,
                Participant::new(1000 + seed, gives_up),
                passages / 4 + 1,
                journals,
            ));
            work
        });
        executor::run(2, works);
    });
    assert_free(&lock);
    std::mem::take(&mut *journals.lock().expect("no thread panics"))
}

async fn task<C: Core<Session = u32>>(
    lock: Arc<GroupLock<u32, Data, C>>,
    mut participant: Participant,
    passages: usize,
    journals: Arc<Mutex<Vec<Journal>>>,
) {
    for _ in 0..passages {
        participant.pass_async(&*lock).await;
    }
    journals.lock().expect("no thread panics").push(participant.journal);
}

#[test]
fn threads_and_tasks_at_once() {
    for policy in POLICIES {
        println!("{policy:?}");
        let concurrency =
            judge(&storm(GroupLock::over(Phases::with_policy(policy), data()), true, 6, 24));
        assert!(concurrency.most_inside > 1, "nothing was shared");
    }
    println!("priorities");
    let priorities = GroupLock::with_priorities(
        Duration::from_micros(100),
        |session: Option<&u32>| session.map_or(1, |session| *session),
        data(),
    );
    let concurrency = judge(&storm(priorities, true, 6, 24));
    assert!(concurrency.most_inside > 1, "nothing was shared");
}

#[test]
fn striped_threads_and_tasks_at_once() {
    for policy in POLICIES {
        println!("{policy:?}");
        judge(&storm(GroupLock::over(Striped::new(policy), data()), true, 6, 24));
    }
}

#[test]
fn first_come_is_first_served() {
    let journals = storm(GroupLock::over(Phases::with_policy(Policy::Fifo), data()), false, 6, 40);
    judge(&journals);
    Journal::judge(&journals, &mut Fcfs::default()).unwrap_or_else(|v| panic!("{v}"));
    let journals = storm(GroupLock::over(Striped::new(Policy::Fifo), data()), false, 6, 40);
    judge(&journals);
    Journal::judge(&journals, &mut Fcfs::default()).unwrap_or_else(|v| panic!("{v}"));
}

/// The same storm with a policy that allows overtaking. The monitor must report it. Otherwise it
/// would not notice a wrong `Fifo`.
#[cfg(not(tsan))]
#[test]
fn the_monitor_of_first_come_first_served_can_object() {
    let policy = Policy::Eventual { patience: Duration::MAX };
    let objected = (0..10).any(|_| {
        let journals = storm(GroupLock::over(Phases::with_policy(policy), data()), false, 6, 40);
        Journal::judge(&journals, &mut Fcfs::default()).is_err()
    });
    assert!(objected, "overtaking was not noticed");
}

#[cfg(feature = "handover")]
#[test]
fn handover_threads_and_tasks_at_once() {
    let concurrency = judge(&storm(GroupLock::over(Handover::new(), data()), true, 6, 24));
    assert!(concurrency.most_inside > 1, "nothing was shared");
}

#[cfg(feature = "handover")]
#[test]
fn handover_serves_requests_in_their_order() {
    let journals = storm(GroupLock::over(Handover::new(), data()), false, 6, 40);
    judge(&journals);
    Journal::judge(&journals, &mut Fcfs::default()).unwrap_or_else(|v| panic!("{v}"));
}

// The thread sanitizer needs no long queues.
const MANY: u64 = if cfg!(tsan) { 1_000 } else { 10_000 };

/// Ten thousand tasks, with three passages each, on a plain executor.
#[test]
fn ten_thousand_tasks_on_a_plain_executor() {
    for policy in [Policy::EVENTUAL, Policy::Fifo] {
        ten_thousand_tasks(Phases::with_policy(policy));
    }
    #[cfg(feature = "handover")]
    ten_thousand_tasks(Handover::new());
}

fn ten_thousand_tasks<C: Core<Session = u32> + Send + Sync + 'static>(core: C)
where
    C::Pass: Send,
    C::Waiting: Send,
{
    let lock = Arc::new(GroupLock::over(core, data()));
    let journals = Arc::new(Mutex::new(Vec::new()));
    let works = (0..MANY).map(|seed| {
        let (lock, journals) = (Arc::clone(&lock), Arc::clone(&journals));
        let work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(task(lock, Participant::new(seed, true), 3, journals));
        work
    });
    executor::run(2, works);
    let journals = std::mem::take(&mut *journals.lock().expect("no thread panics"));
    assert_eq!(journals.len() as u64, MANY);
    judge(&journals);
    assert_free(&lock);
}

/// The same on tokio, where some have a timeout and some are aborted.
#[test]
fn ten_thousand_tasks_on_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("threads can be started");
    for policy in [Policy::EVENTUAL, Policy::Batch { passes: 50 }] {
        let lock = Arc::new(GroupLock::with_policy(policy, data()));
        let journals = Arc::new(Mutex::new(Vec::new()));
        let (ended, aborted) = runtime.block_on(async {
            let tasks: Vec<_> = (0..MANY)
                .map(|seed| {
                    let (lock, journals) = (Arc::clone(&lock), Arc::clone(&journals));
                    match seed % 10 {
                        0 => runtime.spawn(async move {
                            let time = Duration::from_micros(seed % 1000);
                            let entering = lock.enter_async((seed % 3) as u32);
                            drop(tokio::time::timeout(time, entering).await);
                        }),
                        1 => runtime.spawn(async move {
                            let guard = lock.enter_arc_async((seed % 3) as u32).await;
                            tokio::time::sleep(Duration::from_micros(seed % 50)).await;
                            drop(guard);
                        }),
                        _ => runtime.spawn(task(lock, Participant::new(seed, true), 3, journals)),
                    }
                })
                .collect();
            // One kind is aborted in any state: waiting, admitted and not polled, or inside.
            tasks.iter().skip(1).step_by(10).for_each(tokio::task::JoinHandle::abort);
            let (mut ended, mut aborted) = (0, 0);
            for task in tasks {
                match task.await {
                    Ok(()) => ended += 1,
                    Err(reason) => {
                        assert!(reason.is_cancelled(), "{reason}");
                        aborted += 1;
                    }
                }
            }
            (ended, aborted)
        });
        println!("{policy:?}: {ended} ended, {aborted} were aborted");
        let journals = std::mem::take(&mut *journals.lock().expect("no thread panics"));
        assert_eq!(journals.len() as u64, MANY / 10 * 8);
        judge(&journals);
        assert_free(&*lock);
    }
}

/// The monitors notice a lock that does not lock.
#[test]
fn an_open_door_is_noticed() {
    let mut journals = vec![Journal::default(), Journal::default()];
    for (number, journal) in journals.iter_mut().enumerate() {
        journal.note(Event::Request(number as u64 + 1));
        journal.note(Event::Enter);
    }
    assert!(Journal::judge(&journals, &mut Exclusion::default()).is_err());
    assert!(Journal::judge(&journals, &mut LeftBehind::default()).is_err());
}

/// Tasks on another library's executor, each on a thread of its own.
#[test]
fn futures_run_on_futures_executor() {
    let lock = GroupLock::new(data());
    let journals: Vec<Journal> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                let lock = &lock;
                scope.spawn(move || {
                    let mut participant = Participant::new(seed, true);
                    futures_executor::block_on(async {
                        for _ in 0..passages() {
                            participant.pass_async(lock).await;
                        }
                    });
                    participant.journal
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    judge(&journals);
    assert_free(&lock);
}

/// A long queue of futures of different sessions behind a holder. Some withdraw, in any order. Some
/// arrive later and join. All others enter.
#[cfg(not(tsan))] // it has one thread
#[test]
fn sixteen_thousand_wait() {
    const WAITERS: usize = 16_000;
    for policy in POLICIES {
        let lock = GroupLock::with_policy(policy, ());
        let inside = lock.enter(u32::MAX);
        let mut random = fastrand::Rng::with_seed(11);
        let mut waiting: Vec<_> =
            (0..WAITERS as u32).map(|number| (number, lock.enter_async(number / 2))).collect();
        for (_, future) in &mut waiting {
            crate::common::pending(future);
        }
        // Every second one withdraws. As many arrive for the sessions that arrived last.
        random.shuffle(&mut waiting);
        waiting.truncate(WAITERS / 2);
        waiting.sort_by_key(|(number, _)| *number);
        for number in 0..WAITERS as u32 / 2 {
            let mut late = lock.enter_async(WAITERS as u32 / 2 - 1 - number % 16);
            crate::common::pending(&mut late);
            waiting.push((WAITERS as u32 + number, late));
        }
        assert_eq!(crate::common::waiters(&lock.snapshot()), WAITERS);
        drop(inside);
        // Each phase admits the next one when it leaves.
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain_mut(|(_, future)| crate::common::poll(future).is_pending());
            assert!(waiting.len() < before, "no request enters: {policy:?}");
        }
        let seen = lock.snapshot();
        assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
    }
}
