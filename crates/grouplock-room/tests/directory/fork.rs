//! A child that inherits an open room.

use grouplock_room::remote::Clients;
use grouplock_room::{Room, RoomError, Standing};
use nix::libc;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::process::{self, Actor, Scratch, until};

/// Runs `work` in a child and returns its verdict. It should not allocate much, but glibc permits
/// it.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` and ends. No other thread can hold a lock of the allocator,
    // since this process runs one test alone.
    match unsafe { fork() }.expect("a process can be made") {
        ForkResult::Child => {
            let verdict = work();
            // SAFETY: ends the process without running destructors of the test harness.
            unsafe { libc::_exit(i32::from(!verdict)) }
        }
        ForkResult::Parent { child } => {
            let mut ended = WaitStatus::StillAlive;
            until("the child ends", || {
                ended = waitpid(child, Some(WaitPidFlag::WNOHANG)).expect("it is our child");
                ended != WaitStatus::StillAlive
            });
            ended == WaitStatus::Exited(child, 0)
        }
    }
}

#[test]
fn a_child_neither_uses_nor_disturbs_what_it_inherits() {
    let mut parent = Actor::start("fork::parent", &["parent"]);
    assert_eq!(parent.hear().as_deref(), Some("well"));
    assert!(parent.end().success());
}

/// Not a test: the process that forks, which must have no other threads.
#[test]
fn parent() {
    if process::role().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let room = Room::open(scratch.path(), "room").expect("made");
    for shared in [false, true] {
        let guard = room.enter("s").expect("it is empty");
        let joined = shared.then(|| room.enter("s").expect("it is shared"));
        let inherited = std::cell::Cell::new(Some((guard, joined)));
        assert!(in_child(|| {
            let refused = matches!(room.enter("s"), Err(RoomError::Forked))
                && matches!(room.try_enter("t"), Err(RoomError::Forked));
            // To drop the parent's guard in the child changes nothing.
            drop(inherited.take());
            // The child's own handle is another participant: the parent is inside.
            let own = Room::open(scratch.path(), "room").expect("it can be opened");
            let excluded = own.try_enter("t").is_err_and(|error| error.is_conflict());
            let shared = own.enter("s").is_ok_and(|guard| guard.leave().is_ok());
            refused && excluded && shared
        }));
        let (guard, joined) = inherited.take().expect("the child took its own copy");
        assert_eq!(guard.standing(), Standing::Held);
        let other = Room::open(scratch.path(), "room").expect("it can be opened");
        assert!(other.try_enter("t").is_err_and(|error| error.is_conflict()));
        guard.leave().expect("it can be left");
        drop(joined);
        other.try_enter("t").expect("it is empty").leave().expect("it can be left");
    }
    // The child drops its copy of the handle. The parent's slots stay.
    let guard = room.enter("s").expect("it is empty");
    let copy = std::cell::Cell::new(Some(room.clone()));
    assert!(in_child(|| {
        drop(copy.take());
        true
    }));
    assert_eq!(guard.standing(), Standing::Held);
    guard.leave().expect("it can be left");
    // The threads of a client of servers do not exist in the child. It starts a client of its own.
    let clients = Clients::<&str, &str>::new();
    let ours = clients.at("place", || Ok::<_, ()>("ours")).expect("it starts");
    assert!(in_child(|| {
        clients.at("place", || Ok::<_, ()>("the child's")).is_ok_and(|own| *own == "the child's")
    }));
    assert_eq!(clients.at("place", || Err("not called")), Ok(ours));
    process::say("well");
}
