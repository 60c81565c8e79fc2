//! An admitted waiter is woken. It does not have to poll.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Builder, Scope, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Room, RoomError, Standing};

use crate::process::{self, Actor, LONG, Scratch, until, until_waiting};

/// How long a waiter sleeps before it checks by itself.
const NAP: Duration = Duration::from_millis(20);

/// Whether all threads of this process with that name sleep.
fn all_sleep(name: &str) -> bool {
    let (sleep, all) = sleeping(name);
    sleep == all
}

/// How many threads with this name sleep, and how many there are.
pub(crate) fn sleeping(name: &str) -> (usize, usize) {
    let threads = fs::read_dir("/proc/self/task").expect("/proc is mounted").flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    let states = stats.filter_map(|stat| {
        // A line has a number, the name in parentheses, and a letter for the state.
        let (before, state) = stat.rsplit_once(") ")?;
        before.ends_with(&format!("({name}")).then(|| state.starts_with('S'))
    });
    states.fold((0, 0), |(sleep, all), sleeps| (sleep + usize::from(sleeps), all + 1))
}

/// Whether the holder wakes a waiter when it leaves. `name` is the name of the thread that sleeps.
///
/// A waiter that enters within [`NAP`] of its request has not slept to the end of its nap, so it
/// was woken. A longer wait proves nothing on a busy machine: then the test tries again.
fn is_woken(name: &str, enter: impl Fn(&Room) -> Guard<'_> + Sync) -> bool {
    let scratch = Scratch::new();
    let open = || Room::open(scratch.path(), "room").expect("it can be opened");
    let (room, other) = (open(), open());
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        let inside = room.enter("here").expect("it is empty");
        let took = std::thread::scope(|scope| {
            let waits = || {
                let asked = Instant::now();
                drop(enter(&other));
                asked.elapsed()
            };
            let waiter = std::thread::Builder::new().name(name.to_owned());
            let waiter = waiter.spawn_scoped(scope, waits).expect("a thread can be had");
            until_waiting(&room, 1);
            until("the waiter sleeps", || all_sleep(name));
            inside.leave().expect("it can be left");
            waiter.join().expect("no panic")
        });
        if took < NAP {
            return true;
        }
    }
    false
}

#[test]
fn a_thread_is_woken() {
    assert!(is_woken("waiting-thread", |room| {
        room.request("there").timeout(LONG).enter().expect("it is admitted")
    }));
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_task_is_woken() {
    // The room starts a thread of this name, which sleeps for the task.
    assert!(is_woken("grouplock-wait", |room| {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut entering = Box::pin(room.request("there").timeout(LONG).enter_async());
        loop {
            match entering.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(guard) => return guard.expect("it is admitted"),
                Poll::Pending => std::thread::park_timeout(LONG),
            }
        }
    }));
}

/// How often the threads of a process went to sleep voluntarily.
fn naps(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let status = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let count = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok())
    };
    status.filter_map(count).sum()
}

#[test]
fn waiting_costs_no_wake_ups_and_a_death_ends_it() {
    let scratch = Scratch::new();
    let room = Room::open(scratch.path(), "room").expect("it can be opened");
    let mut holder = process::guest_inside(&scratch, "room", "here");
    let waiters: Vec<_> = ["there", "elsewhere", "there"]
        .iter()
        .enumerate()
        .map(|(place, session)| {
            let waiter = process::start_guest(&scratch, "room", session);
            until_waiting(&room, place + 1);
            waiter
        })
        .collect();
    // The first nap is short. After it, the waiter watches another slot.
    let calm = |waiter: &Actor| {
        let before = naps(waiter.pid());
        std::thread::sleep(Duration::from_secs(1));
        naps(waiter.pid()) - before
    };
    until("each waiter sleeps for long", || waiters.iter().all(|waiter| calm(waiter) <= 2));
    // It is in the middle of the line: it delays no other waiter, and its death is not reported.
    let [first, mut second, third] = <[Actor; 3]>::try_from(waiters).expect("three");
    second.kill();
    until_waiting(&room, 2);
    let died = Instant::now();
    holder.kill();
    for waiter in [&first, &third] {
        assert_eq!(waiter.hear().as_deref(), Some("inside"));
    }
    println!("a death was acted on within {:?}", died.elapsed());
    assert_eq!(room.snapshot().expect("it can be seen").deaths, 1);
}

/// A waiter that a limit excludes notices the death of any holder.
#[test]
fn a_death_makes_room_for_one_more() {
    let scratch = Scratch::new();
    let room = Room::open(scratch.path(), "room").expect("it can be opened");
    let mut holders = ["s"; 3].map(|session| process::guest_inside(&scratch, "room", session));
    let three = 3.try_into().expect("not zero");
    std::thread::scope(|scope| {
        let waits = || room.request("s").at_most(three).timeout(LONG).enter().map(drop);
        let waiter = scope.spawn(waits);
        until_waiting(&room, 1);
        std::thread::sleep(Duration::from_millis(100));
        // Neither the first nor the last dies.
        let died = Instant::now();
        holders[1].kill();
        waiter.join().expect("no panic").expect("it may enter");
        println!("a death was acted on within {:?}", died.elapsed());
    });
}

#[test]
fn waits_for_one_holder_share_a_thread() {
    let mut process = Actor::start("waking::impatient", &["impatient"]);
    assert_eq!(process.hear().as_deref(), Some("1 watch"));
    assert!(process.end().success());
}

/// Not a test: a process in which one handle enters again and again, and another waits in vain for
/// longer than a nap each time.
#[test]
fn impatient() {
    if process::role().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let open = || Room::open(scratch.path(), "room").expect("it can be opened");
    let (room, other) = (open(), open());
    for _ in 0..8 {
        let inside = room.enter("here").expect("it is empty");
        let waited = other.request("there").timeout(3 * NAP).enter();
        assert!(waited.is_err_and(|error| error.is_conflict()));
        inside.leave().expect("it can be left");
    }
    let watch = || {
        let threads = fs::read_dir("/proc/self/task").expect("/proc is mounted").flatten();
        let names =
            threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
        names.filter(|name| name.trim_end() == "grouplock-watch").count()
    };
    // A thread has its name some time after it was started.
    until("there is one", || watch() > 0);
    process::say(&format!("{} watch", watch()));
}

/// How often one that sleeps for long checks by itself.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Whether one that sleeps for long is woken by an event, and does not find it by itself. `event`
/// returns how long that took. A long time proves nothing on a busy machine: then it tries again.
fn is_told(mut event: impl FnMut() -> Duration) -> bool {
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        if event() < HEARTBEAT / 2 {
            return true;
        }
    }
    false
}

/// A thread that waits for `there` in the room, at most with so many.
fn wait_in<'s>(
    scope: &'s Scope<'s, '_>,
    room: &'s Room,
    (session, most): (&'s str, u32),
) -> ScopedJoinHandle<'s, Result<Guard<'s>, RoomError>> {
    let most = most.try_into().expect("not zero");
    scope.spawn(move || room.request(session).at_most(most).timeout(LONG).enter())
}

/// After this time a waiter watches other slots.
fn until_it_watches() {
    std::thread::sleep(5 * NAP);
}

#[test]
fn a_watch_learns_at_once_that_its_holder_leaves_or_switches() {
    for switches in [false, true] {
        let told = is_told(|| {
            let scratch = Scratch::new();
            let room = Room::open(scratch.path(), "room").expect("it can be opened");
            let guard = room.enter("here").expect("it is empty");
            let watch = guard.watch();
            std::thread::scope(|scope| {
                let watches = Builder::new().name("watching-end".to_owned());
                let watches = watches.spawn_scoped(scope, || (watch.wait(), Instant::now()));
                until("it sleeps", || sleeping("watching-end") == (1, 1));
                let ended = Instant::now();
                let switched = if switches {
                    Some(guard.switch("there").expect("nobody else is here"))
                } else {
                    guard.leave().expect("it can be left");
                    None
                };
                let (standing, noticed) = watches.expect("a thread").join().expect("no panic");
                assert_eq!(standing, Standing::Left);
                drop(switched);
                noticed.duration_since(ended)
            })
        });
        assert!(told, "switches: {switches}");
    }
}

/// A wait that is served by the thread of an earlier wait for the same holder.
#[test]
fn a_later_waiter_learns_at_once_of_a_death() {
    assert!(is_told(|| {
        let scratch = Scratch::new();
        let room = Room::open(scratch.path(), "room").expect("it can be opened");
        let mut holder = process::guest_inside(&scratch, "room", "here");
        let waited = room.request("there").timeout(5 * NAP).enter();
        assert!(waited.is_err_and(|error| error.is_conflict()));
        std::thread::scope(|scope| {
            let waiter = wait_in(scope, &room, ("there", 9));
            until_waiting(&room, 1);
            until_it_watches();
            let died = Instant::now();
            holder.kill();
            drop(waiter.join().expect("no panic").expect("the dead do not hold"));
            died.elapsed()
        })
    }));
}

/// Two wait behind a limit. One enters, and the other, which watched it, watches all holders.
#[test]
fn the_next_in_line_learns_at_once_of_a_death() {
    assert!(is_told(|| {
        let scratch = Scratch::new();
        let room = Room::open(scratch.path(), "room").expect("it can be opened");
        let mut holders = ["s"; 2].map(|session| process::guest_inside(&scratch, "room", session));
        std::thread::scope(|scope| {
            let first = wait_in(scope, &room, ("s", 2));
            until_waiting(&room, 1);
            let second = wait_in(scope, &room, ("s", 2));
            until_waiting(&room, 2);
            until_it_watches();
            holders[0].kill();
            let _first = first.join().expect("no panic").expect("there is a place");
            let died = Instant::now();
            holders[1].kill();
            drop(second.join().expect("no panic").expect("there is a place"));
            died.elapsed()
        })
    }));
}

#[test]
fn a_waiter_learns_at_once_that_the_room_is_corrupt() {
    assert!(is_told(|| {
        let scratch = Scratch::new();
        let open = || Room::open(scratch.path(), "room").expect("it can be opened");
        let (room, other) = (open(), open());
        let _inside = room.enter("here").expect("it is empty");
        std::thread::scope(|scope| {
            let waiter = wait_in(scope, &other, ("there", 9));
            until_waiting(&room, 1);
            until_it_watches();
            // No room has this verdict.
            let file = File::options().write(true).open(room.file().expect("there is one"));
            file.and_then(|file| file.write_all_at(&[7], 232)).expect("it can be written");
            let noticed = Instant::now();
            assert!(matches!(room.snapshot(), Err(RoomError::Corrupt { .. })));
            let waited = waiter.join().expect("no panic");
            assert!(matches!(waited, Err(RoomError::Corrupt { .. })), "{waited:?}");
            noticed.elapsed()
        })
    }));
}

/// A waiter watches a slot, and later another owner of the same slot.
#[test]
fn a_wait_for_the_next_owner_of_a_slot_costs_nothing() {
    let scratch = Scratch::new();
    let room = Room::open(scratch.path(), "room").expect("it can be opened");
    let file = File::open(room.file().expect("there is one")).expect("it can be opened");
    // How often the latch was released.
    let changes = || {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 216).expect("it is long enough");
        u64::from_ne_bytes(bytes)
    };
    for _ in 0..2 {
        let mut holder = process::guest_inside(&scratch, "room", "here");
        std::thread::scope(|scope| {
            let waiter = wait_in(scope, &room, ("there", 9));
            until_waiting(&room, 1);
            until_it_watches();
            // One that does not sleep takes the latch thousands of times.
            let before = changes();
            std::thread::sleep(25 * NAP);
            let so_many = changes() - before;
            assert!(so_many < 50, "{so_many} changes");
            holder.kill();
            let entered = waiter.join().expect("no panic").expect("the dead do not hold");
            entered.leave().expect("it can be left");
        });
    }
}

#[test]
fn a_task_that_withdraws_leaves_no_thread() {
    let mut process = Actor::start("waking::withdrawing", &["withdrawing"]);
    assert_eq!(process.hear().as_deref(), Some("it is told"));
    assert!(process.end().success());
}

/// Not a test: a process in which a task withdraws after a long wait.
#[test]
fn withdrawing() {
    if process::role().is_none() {
        return;
    }
    let told = is_told(|| {
        let scratch = Scratch::new();
        let open = || Room::open(scratch.path(), "room").expect("it can be opened");
        let (room, other) = (open(), open());
        let _inside = room.enter("here").expect("it is empty");
        let mut entering = Box::pin(other.enter_async("there"));
        assert!(entering.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        until_it_watches();
        until("its thread sleeps", || sleeping("grouplock-wait") == (1, 1));
        let withdrew = Instant::now();
        drop(entering);
        until("its thread ends", || sleeping("grouplock-wait").1 == 0);
        withdrew.elapsed()
    });
    process::say(if told { "it is told" } else { "it sleeps on" });
}

/// `cargo test --release -p grouplock-room --test directory many_waiters -- --ignored --nocapture`
#[test]
#[ignore = "takes half a minute and prints figures"]
fn many_waiters_use_nothing() {
    let scratch = Scratch::new();
    let room = Room::open(scratch.path(), "room").expect("it can be opened");
    let holder = process::guest_inside(&scratch, "room", "here");
    let waiters: Vec<_> =
        (0..300).map(|n| process::start_guest(&scratch, "room", &n.to_string())).collect();
    until_waiting(&room, 300);
    std::thread::sleep(Duration::from_secs(6));
    let ticks = |pid: u32| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let fields: Vec<_> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
        [11, 12].iter().map(|at| fields[*at].parse::<u64>().expect("a number")).sum()
    };
    let all =
        |of: &dyn Fn(u32) -> u64| -> u64 { waiters.iter().map(|waiter| of(waiter.pid())).sum() };
    let (slept, ran) = (all(&naps), all(&ticks));
    std::thread::sleep(Duration::from_secs(20));
    println!(
        "300 waiters: {} wake-ups and {} ms of processor time in 20 s",
        all(&naps) - slept,
        (all(&ticks) - ran) * 10,
    );
    drop(holder);
}
