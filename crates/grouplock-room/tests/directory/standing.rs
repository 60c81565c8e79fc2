//! The fast path: one who comes and goes alone, until somebody else comes.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime};

use grouplock_room::{Guard, Room};

use crate::process::{LONG, Scratch};

/// More often than it takes for the claim to stay at the gate.
const OFTEN: u32 = 40;

fn open(scratch: &Scratch) -> Room {
    Room::open(scratch.path(), "room").expect("it can be opened")
}

/// Comes and goes until entering takes nothing but a look. The last epoch.
fn come_and_go(room: &Room, session: &str) -> u64 {
    let mut epoch = 0;
    for _ in 0..OFTEN {
        let guard = room.enter(session).expect("nobody else is here");
        assert!(guard.epoch() >= epoch);
        epoch = guard.epoch();
        guard.leave().expect("it can be left");
    }
    epoch
}

#[test]
fn a_guard_keeps_its_epoch_when_others_come() {
    let scratch = Scratch::new();
    let (room, other) = (open(&scratch), open(&scratch));
    let mut last = 0;
    for _ in 0..5 {
        let epoch = come_and_go(&room, "here");
        assert!(epoch > last, "{epoch} {last}");
        let guard = room.enter("here").expect("nobody else is here");
        assert_eq!(guard.epoch(), epoch, "no other session was inside");
        assert_eq!(room.snapshot().expect("it can be seen").epoch, epoch);
        assert!(other.try_enter("there").is_err_and(|error| error.is_conflict()));
        let joined = other.enter("here").expect("it is shared");
        assert_eq!((guard.epoch(), joined.epoch()), (epoch, epoch));
        assert_eq!((guard.session(), joined.session()), ("here", "here"));
        drop((joined, guard));
        last = other.try_enter("there").expect("it is empty").epoch();
        assert!(last > epoch);
    }
}

#[test]
fn since_is_the_present_entry() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    come_and_go(&room, "here");
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(50));
        // The clock is a few milliseconds coarse.
        let before = SystemTime::now() - Duration::from_millis(20);
        let guard = room.enter("here").expect("nobody else is here");
        let seen = room.snapshot().expect("it can be seen").inside.expect("someone is inside");
        let [member] = &seen.members[..] else { panic!("one member, not {:?}", seen.members) };
        assert_eq!(member.id, guard.holder());
        assert!(before <= member.since && member.since <= SystemTime::now(), "{:?}", member.since);
    }
}

/// How many are inside, by a count that the room has no part in.
#[derive(Default)]
struct Count {
    here: AtomicU32,
    there: AtomicU32,
}

impl Count {
    fn entered(mine: &AtomicU32, others: &AtomicU32) {
        mine.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others.load(Ordering::SeqCst), 0, "both sessions are inside");
    }

    fn leave(mine: &AtomicU32, guard: Guard<'_>) {
        mine.fetch_sub(1, Ordering::SeqCst);
        guard.leave().expect("it can be left");
    }
}

const ENOUGH: u32 = 100;
const TIME: Duration = Duration::from_millis(1500);

/// One session comes and goes all the time, the other now and then. `leave` is what the first does with its guards.
fn two_sessions<'r>(
    (room, other): (&'r Room, &Room),
    count: &Count,
    mut leave: impl FnMut(Guard<'r>) + Send,
) {
    let (over, entries) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let (here, over, entries) = (&count.here, &over, &entries);
        let coming_and_going = scope.spawn(move || {
            let mut epoch = 0;
            while !over.load(Ordering::Relaxed) {
                let guard = room.enter("here").expect("it can be entered");
                Count::entered(here, &count.there);
                assert!(guard.epoch() >= epoch, "epochs do not go back");
                epoch = guard.epoch();
                leave(guard);
                entries.fetch_add(1, Ordering::Relaxed);
            }
        });
        let started = Instant::now();
        let mut visits = 0;
        // On a busy machine longer, until both have come often enough.
        while !coming_and_going.is_finished() {
            let least = entries.load(Ordering::Relaxed).min(visits);
            if started.elapsed() >= if least < ENOUGH { LONG } else { TIME } {
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
            let guard = other.enter("there").expect("it can be entered");
            Count::entered(&count.there, here);
            Count::leave(&count.there, guard);
            visits += 1;
        }
        over.store(true, Ordering::Relaxed);
        coming_and_going.join().expect("both agree on who is inside");
        let entries = entries.load(Ordering::Relaxed);
        assert!(visits >= ENOUGH && entries >= ENOUGH, "{visits} {entries}");
    });
}

#[test]
fn a_visitor_excludes_one_who_comes_and_goes() {
    let scratch = Scratch::new();
    let (room, other, count) = (open(&scratch), open(&scratch), Count::default());
    two_sessions((&room, &other), &count, |guard| Count::leave(&count.here, guard));
}

#[test]
fn guards_may_be_left_by_another_thread() {
    let scratch = Scratch::new();
    let (room, other, count) = (open(&scratch), open(&scratch), Count::default());
    std::thread::scope(|scope| {
        let (give, take) = sync_channel::<Guard<'_>>(1);
        let here = &count.here;
        scope.spawn(move || take.into_iter().for_each(|guard| Count::leave(here, guard)));
        two_sessions((&room, &other), &count, move |guard| {
            give.send(guard).expect("someone takes it");
        });
    });
}
