//! Deaths before every single change of the shared state.
//!
//! Each play has an operation that a process performs beside others. The process starts again and
//! again. It kills itself before the first change of the operation, before the second, and so on,
//! until it survives. After every death the others must be where they would have been: exclusion
//! holds, every waiter that may enter enters, epochs grow.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Policy, Room, RoomError, RoomOptions, Standing, kill_points};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;

use crate::process::{self, Actor, LONG, Scratch, until_waiting};

/// A process that performs the operation of a play and dies before change `steps`. Says whether it
/// survived.
struct Stage {
    actor: Actor,
    /// Its output.
    said: Vec<String>,
}

impl Stage {
    /// Starts it, and waits until everything before the operation is done.
    fn set(play: &str, scratch: &Scratch, steps: u32) -> Self {
        Self::set_with(play, scratch, steps, -1)
    }

    /// The same with a descriptor that the process inherits.
    fn set_with(play: &str, scratch: &Scratch, steps: u32, descriptor: i32) -> Self {
        let role = [play, scratch.text(), &steps.to_string(), &descriptor.to_string()];
        let actor = Actor::start("kill_points::actor", &role);
        assert_eq!(actor.hear().as_deref(), Some("ready"), "{play}, step {steps}");
        Stage { actor, said: Vec::new() }
    }

    fn perform(&mut self) -> bool {
        self.actor.tell("go");
        while let Some(said) = self.actor.hear() {
            if said == "survived" {
                return true;
            }
            self.said.push(said);
        }
        assert_eq!(self.actor.end().signal(), Some(9), "it ended, but not by its own hand");
        false
    }
}

/// Not a test: a process of these plays.
#[test]
#[expect(clippy::too_many_lines, reason = "a few lines for each play")]
fn actor() {
    let Some(role) = process::role() else { return };
    let (play, directory) = (role[0].as_str(), role[1].as_str());
    let steps: u32 = role[2].parse().expect("a number");
    let open = || Room::open(directory, "room").expect("it can be opened");
    let go = || {
        process::say("ready");
        assert_eq!(process::listen().as_deref(), Some("go"));
        kill_points::arm(steps);
    };
    let survive = || {
        kill_points::arm(u32::MAX);
        process::say("survived");
        while process::listen().is_some() {}
    };
    match play {
        "come and go" => {
            go();
            let room = open();
            room.enter("s").expect("it is empty").leave().expect("it can be left");
            drop(room);
            survive();
        }
        "wait" => {
            let room = open();
            go();
            let waited = room.request("t").timeout(Duration::from_millis(120)).enter();
            assert!(waited.is_err_and(|error| error.is_conflict()));
            survive();
        }
        "wait for another" => {
            let room = open();
            go();
            let waited = room.request("u").timeout(Duration::from_millis(120)).enter();
            assert!(waited.is_err_and(|error| error.is_conflict()));
            survive();
        }
        "leave" => {
            let room = open();
            let guard = room.enter("s").expect("it is empty");
            go();
            guard.leave().expect("it can be left");
            survive();
        }
        "set up" => {
            let room = open();
            go();
            let set_up = || {
                process::say("set up");
                Ok(())
            };
            let guard = room.request("s").set_up(set_up).timeout(LONG).enter();
            guard.expect("it can be set up").leave().expect("it can be left");
            survive();
        }
        "switch" => {
            let room = open();
            let guard = room.exclusive().expect("it is empty");
            go();
            guard.switch("s").expect("it is admitted").leave().expect("it can be left");
            survive();
        }
        "bury" => {
            let room = open();
            go();
            let guard = room.request("t").timeout(LONG).enter().expect("the dead do not hold");
            assert!(guard.recovered().is_some(), "it is the first to enter");
            process::say("told");
            guard.leave().expect("it can be left");
            survive();
        }
        "open a used slot" => {
            go();
            let room = open();
            drop(room.request("s").timeout(LONG).enter().expect("it is admitted"));
            survive();
        }
        "remove" => {
            go();
            Room::remove(directory, "room").expect("nobody uses it");
            survive();
        }
        "hand over" | "leave for another" => {
            let room = open();
            let number = role[3].parse().expect("a number");
            // SAFETY: the test has opened it for this process, and it stays open while the process
            // runs.
            let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
            if play == "hand over" {
                let guard = room.enter("s").expect("it is empty");
                go();
                guard.keep_by(descriptor, std::process::id()).expect("it can be handed over");
            } else {
                go();
                assert!(room.leave_kept(descriptor, false).expect("it can be left"));
            }
            survive();
        }
        "hold" => {
            let room = open();
            let guard = room.enter("s").expect("it is empty");
            go();
            survive();
            drop(guard);
        }
        unknown => panic!("no play is called {unknown}"),
    }
}

/// Runs all steps of a play. `around` prepares the room, lets the process perform, and checks.
fn walk(least: u32, mut around: impl FnMut(u32, &Scratch) -> bool) {
    for steps in 1.. {
        let scratch = Scratch::new();
        if around(steps, &scratch) {
            println!("survived at step {steps}");
            assert!(steps > least, "there are more than {least} steps, not {steps}");
            return;
        }
        assert!(steps < 2000, "this never ends");
    }
}

fn open(scratch: &Scratch) -> Room {
    Room::open(scratch.path(), "room").expect("it can be opened")
}

fn enter<'r>(room: &'r Room, session: &str, steps: u32) -> Guard<'r> {
    let entered = room.request(session).timeout(LONG).enter();
    entered.unwrap_or_else(|error| panic!("after step {steps}: {error}: {:?}", room.snapshot()))
}

/// The room works, for old handles and new ones, and its epochs are beyond `epoch`.
fn assert_works(scratch: &Scratch, room: &Room, epoch: u64, steps: u32) {
    let mut last = epoch;
    for session in ["t", "s", "u"] {
        for room in [room, &open(scratch)] {
            let guard = enter(room, session, steps);
            assert!(guard.epoch() > last, "step {steps}: epoch {} after {last}", guard.epoch());
            last = guard.epoch();
            let joined = enter(room, session, steps);
            assert_eq!(joined.epoch(), last);
            assert!(room.try_enter("v").is_err_and(|error| error.is_conflict()));
        }
    }
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!((seen.holders(), seen.waiters()), (0, 0), "step {steps}: {seen:?}");
    // Every entry of the history is true, and is there once.
    assert!(seen.recent.iter().all(|past| past.entries > 0), "step {steps}: {:?}", seen.recent);
    assert!(
        seen.recent.windows(2).all(|pair| pair[0].epoch < pair[1].epoch),
        "step {steps}: {:?}",
        seen.recent
    );
}

/// A process that enters an empty room and leaves may die at any step. The room goes on.
#[test]
fn coming_and_going() {
    walk(20, |steps, scratch| {
        let mut stage = Stage::set("come and go", scratch, steps);
        let survived = stage.perform();
        assert_works(scratch, &open(scratch), 0, steps);
        survived
    });
}

#[test]
fn coming_and_going_where_others_are() {
    walk(8, |steps, scratch| {
        let room = open(scratch);
        let epoch = enter(&room, "u", steps).epoch();
        let mut stage = Stage::set("come and go", scratch, steps);
        let survived = stage.perform();
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

#[test]
fn waiting_and_withdrawing() {
    walk(25, |steps, scratch| {
        let room = open(scratch);
        let inside = enter(&room, "s", steps);
        let mut stage = Stage::set("wait", scratch, steps);
        let survived = stage.perform();
        assert_eq!(inside.standing(), Standing::Held, "step {steps}");
        assert!(
            room.try_enter("t").is_err_and(|error| error.is_conflict()),
            "step {steps}: someone is inside"
        );
        let joined = enter(&room, "s", steps);
        assert_eq!(joined.epoch(), inside.epoch(), "step {steps}");
        let epoch = inside.epoch();
        inside.leave().unwrap_or_else(|error| panic!("after step {steps}: {error}"));
        joined.leave().unwrap_or_else(|error| panic!("after step {steps}: {error}"));
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

/// The process leaves a room in which others wait.
fn leaving(policy: Policy) {
    walk(15, |steps, scratch| {
        let options = RoomOptions::new().policy(policy);
        let room = Room::open_with(scratch.path(), "room", &options).expect("it can be opened");
        let mut stage = Stage::set("leave", scratch, steps);
        let epoch = room.snapshot().expect("it can be looked at").epoch;
        let survived = std::thread::scope(|scope| {
            let waiters = [("t", 1), ("u", 2), ("t", 3)].map(|(session, place)| {
                let room = &room;
                let waiter = scope.spawn(move || {
                    let guard = enter(room, session, steps);
                    assert!(guard.epoch() > epoch);
                    std::thread::sleep(Duration::from_millis(1));
                });
                until_waiting(room, place);
                waiter
            });
            let survived = stage.perform();
            for waiter in waiters {
                waiter.join().expect("everyone is admitted");
            }
            survived
        });
        assert_works(scratch, &room, epoch, steps);
        let seen = room.snapshot().expect("it can be looked at");
        assert!(seen.recent.iter().any(|past| past.epoch == epoch), "step {steps}: {seen:?}");
        survived
    });
}

#[test]
fn leaving_to_waiters() {
    leaving(Policy::Fifo);
}

#[test]
fn leaving_to_a_batch() {
    leaving(Policy::Batch { passes: 5 });
}

/// A process that buries a dead holder may die at any step. Another process gets the report.
#[test]
fn burying_and_reporting() {
    walk(30, |steps, scratch| {
        let room = open(scratch);
        let mut holder = Stage::set("hold", scratch, u32::MAX);
        let epoch = room.snapshot().expect("it can be looked at").epoch;
        let mut stage = Stage::set("bury", scratch, steps);
        holder.actor.kill();
        let survived = stage.perform();
        if stage.said.is_empty() {
            // The process with the report died before it could use it. So another process must get
            // the report.
            let guard = enter(&room, "u", steps);
            assert!(guard.recovered().is_some(), "step {steps}: nobody was told");
        }
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

/// Stops a process while no other process waits for its update.
fn stop_between_updates(actor: &Actor, room: &Room) {
    let deadline = Instant::now() + LONG;
    loop {
        actor.stop();
        // This is not exact in the middle of an update.
        if room.snapshot().expect("it can be looked at").exact {
            return;
        }
        actor.signal(Signal::SIGCONT);
        assert!(Instant::now() < deadline, "it is always in the middle of an update");
    }
}

/// A process that buries a holder and admits another one dies. The admitted process must get the
/// report.
#[test]
fn burying_for_somebody_else() {
    walk(60, |steps, scratch| {
        let room = open(scratch);
        let mut holder = Stage::set("hold", scratch, u32::MAX);
        let epoch = room.snapshot().expect("it can be looked at").epoch;
        let mut first = Stage::set("bury", scratch, u32::MAX);
        first.actor.tell("go");
        until_waiting(&room, 1);
        // It must not bury a slot itself.
        stop_between_updates(&first.actor, &room);
        let mut stage = Stage::set("wait for another", scratch, steps);
        holder.actor.kill();
        let survived = stage.perform();
        first.actor.signal(Signal::SIGCONT);
        assert_eq!(first.actor.hear().as_deref(), Some("told"), "step {steps}");
        assert_eq!(first.actor.hear().as_deref(), Some("survived"), "step {steps}");
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

/// There is no free slot. A newcomer has to take the slot of a dead participant, and perhaps the
/// latch with it. Then it dies too.
#[test]
fn inheriting_from_the_dead() {
    for first in [3, 7, 9, 12, 15, 18, 21, 24, 27, 30, 33] {
        walk(3, |steps, scratch| {
            let options = RoomOptions::new().capacity(2.try_into().expect("not zero"));
            let room = Room::open_with(scratch.path(), "room", &options).expect("it can be opened");
            let inside = enter(&room, "s", steps);
            let mut one = Stage::set("wait", scratch, first);
            assert!(!one.perform(), "there are more than {first} steps");
            let mut other = Stage::set("open a used slot", scratch, steps);
            let survived = other.perform();
            assert_eq!(inside.standing(), Standing::Held, "steps {first}, {steps}");
            other.actor.kill();
            assert!(
                room.try_enter("t").is_err_and(|error| error.is_conflict()),
                "steps {first}, {steps}: someone is inside"
            );
            let epoch = inside.epoch();
            inside.leave().unwrap_or_else(|error| panic!("after {first}, {steps}: {error}"));
            let next = enter(&room, "t", steps);
            assert!(next.epoch() > epoch, "steps {first}, {steps}");
            survived
        });
    }
}

/// A process that removes a room may die at any step. The room is removed, or it is as before.
#[test]
fn removing() {
    walk(10, |steps, scratch| {
        let before = open(scratch);
        let epoch = enter(&before, "s", steps).epoch();
        let mut stage = Stage::set("remove", scratch, steps);
        let survived = stage.perform();
        // It is the old room or a new one, never both.
        let now = open(scratch);
        match before.request("s").timeout(LONG).enter() {
            Ok(guard) => {
                assert!(!survived, "it was removed");
                assert!(guard.epoch() > epoch);
                assert!(now.try_enter("t").is_err_and(|error| error.is_conflict()), "step {steps}");
            }
            Err(error) => assert!(matches!(error, RoomError::Removed { .. }), "{error}"),
        }
        assert_works(scratch, &now, 0, steps);
        survived
    });
}

/// A holder that finds the room set up can rely on it.
#[test]
fn setting_up() {
    walk(30, |steps, scratch| {
        let room = open(scratch);
        let mut stage = Stage::set("set up", scratch, steps);
        let survived = stage.perform();
        let guard = enter(&room, "s", steps);
        if guard.prepared().expect("it can be asked").is_some() {
            assert_eq!(stage.said, ["set up"], "step {steps}");
        }
        let epoch = guard.epoch();
        drop(guard);
        let mut done = false;
        let set_up = || {
            done = true;
            Ok(())
        };
        let again = room.request("s").set_up(set_up).timeout(LONG).enter();
        drop(again.expect("it can be set up"));
        assert!(done || stage.said == ["set up"], "step {steps}: nobody has set it up");
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

#[test]
fn switching_while_others_wait() {
    walk(15, |steps, scratch| {
        let room = open(scratch);
        let mut stage = Stage::set("switch", scratch, steps);
        let epoch = room.snapshot().expect("it can be looked at").epoch;
        let survived = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(enter(&room, "t", steps)));
            until_waiting(&room, 1);
            let survived = stage.perform();
            waiter.join().expect("it is admitted");
            survived
        });
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

/// The room's file, open for all processes that start from now on.
fn inherited(room: &Room) -> File {
    let path = room.file().expect("it is in a directory");
    let file = File::options().append(true).open(path).expect("it can be opened");
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).expect("it is open");
    file
}

/// A holding that moves to an open file always has one owner. If it has none, the death is
/// reported.
#[test]
fn handing_a_holding_to_a_descriptor() {
    walk(20, |steps, scratch| {
        let room = open(scratch);
        let file = inherited(&room);
        let mut stage = Stage::set_with("hand over", scratch, steps, file.as_raw_fd());
        let epoch = room.snapshot().expect("it can be looked at").epoch;
        // A waiter watches the slot that gets another owner.
        let (survived, kept) = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(enter(&room, "t", steps)));
            until_waiting(&room, 1);
            let survived = stage.perform();
            let kept = room.kept_by(file.as_fd()).expect("it can be asked");
            if kept.is_some() {
                assert_eq!(room.snapshot().expect("it can be looked at").session(), Some("s"));
                assert!(room.leave_kept(file.as_fd(), false).expect("it can be left"));
            }
            waiter.join().expect("it is admitted");
            (survived, kept)
        });
        assert_eq!(kept.is_some(), kept.as_ref().is_some_and(|kept| kept.epoch == epoch));
        assert!(kept.is_some() || !survived, "it was handed over");
        let deaths = room.snapshot().expect("it can be looked at").deaths;
        assert_eq!(deaths, u64::from(kept.is_none()), "step {steps}");
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}

#[test]
fn leaving_the_holding_of_a_descriptor() {
    walk(20, |steps, scratch| {
        let room = open(scratch);
        let file = inherited(&room);
        let guard = enter(&room, "s", steps);
        let epoch = guard.epoch();
        guard.keep_by(file.as_fd(), std::process::id()).expect("it can be handed over");
        let mut stage = Stage::set_with("leave for another", scratch, steps, file.as_raw_fd());
        let survived = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(enter(&room, "t", steps)));
            until_waiting(&room, 1);
            let survived = stage.perform();
            // If it died before it left, the next one can leave.
            let left = room.leave_kept(file.as_fd(), false).expect("it can be asked");
            assert!(!left || !survived, "it was left");
            waiter.join().expect("it is admitted");
            survived
        });
        assert_eq!(room.snapshot().expect("it can be looked at").deaths, 0, "step {steps}");
        assert_works(scratch, &room, epoch, steps);
        survived
    });
}
