//! What happens when processes are killed.

use super::{Subject, Victim, assert_empty, eventually, open, snapshot};
use crate::room::Room;
use crate::snapshot::Snapshot;

/// A process inside, or waiting if another session is inside.
fn victim(
    subject: &dyn Subject,
    room: &Room,
    name: &str,
    session: &str,
) -> Option<Box<dyn Victim>> {
    let victim = subject.victim(name, session);
    let Some(victim) = victim else {
        eprintln!("notice: this subject has no process to kill; its death was not tried");
        return None;
    };
    let pid = victim.pid();
    eventually(subject, "the process to be killed is there", || is_there(&snapshot(room), pid));
    Some(victim)
}

/// Waits until it is inside: that takes time also in an idle room.
fn until_inside(subject: &dyn Subject, room: &Room, pid: u32) {
    let inside =
        |seen: Snapshot| seen.inside.is_some_and(|it| it.members.iter().any(|m| m.pid == pid));
    eventually(subject, "the process to be killed is inside", || inside(snapshot(room)));
}

fn is_there(seen: &Snapshot, pid: u32) -> bool {
    let phases = seen.waiting.iter().chain(&seen.inside);
    phases.flat_map(|phase| &phase.members).any(|member| member.pid == pid)
}

pub(super) fn a_death_is_reported_to_the_next_holder(subject: &dyn Subject) {
    let room = open(subject, "dead holder");
    let before = room.enter("s").expect("it is empty").epoch();
    let Some(victim) = victim(subject, &room, "dead holder", "s") else { return };
    let pid = victim.pid();
    until_inside(subject, &room, pid);
    let seen = snapshot(&room);
    assert!(seen.epoch > before);
    std::thread::scope(|scope| {
        let waiter = || {
            let guard = room.request("t").timeout(subject.soon()).enter();
            guard.expect("a dead holder does not hold")
        };
        let (one, other) = (scope.spawn(waiter), scope.spawn(waiter));
        super::until_waiting(subject, &room, 2);
        victim.kill();
        let guards = [one.join().expect("no panic"), other.join().expect("no panic")];
        for guard in &guards {
            assert!(guard.epoch() > seen.epoch, "the epoch grows over a death");
            let told = guard.recovered();
            if !room.capabilities().reports_deaths {
                assert_eq!(told, None, "the capabilities deny that it tells");
                continue;
            }
            let told = told.expect("everyone in the next phase is told");
            assert_eq!((told.epoch, told.session.as_str(), told.pid), (seen.epoch, "s", pid));
        }
        let joined = room.request("t").timeout(subject.soon()).enter().expect("it is shared");
        assert_eq!(joined.recovered().is_some(), room.capabilities().reports_deaths);
    });
    let next = room.request("u").timeout(subject.soon()).enter().expect("it is empty");
    if room.capabilities().acknowledge {
        assert!(next.recovered().is_some(), "nobody has said that it is repaired");
        next.acknowledge().expect("it can be said");
        next.leave().expect("it can be left");
        let last = room.request("u").timeout(subject.soon()).enter().expect("it is empty");
        assert_eq!(last.recovered(), None, "it is repaired");
    } else {
        assert_eq!(next.recovered(), None, "the phase after that is not told");
        next.leave().expect("it can be left");
    }
    assert_empty(subject, &room);
}

pub(super) fn a_dead_waiter_holds_nobody_up(subject: &dyn Subject) {
    let room = open(subject, "dead waiter");
    let inside = room.enter("s").expect("it is empty");
    let Some(victim) = victim(subject, &room, "dead waiter", "t") else { return };
    assert!(room.try_enter("s").is_err(), "it waits");
    victim.kill();
    let joined = room.request("s").timeout(subject.soon()).enter();
    let joined = joined.expect("the dead do not wait");
    assert_eq!(joined.epoch(), inside.epoch());
    assert_eq!(joined.recovered(), None, "nobody died inside");
    drop((inside, joined));
    assert_empty(subject, &room);
}

pub(super) fn survivors_of_a_phase_keep_it(subject: &dyn Subject) {
    let room = open(subject, "survivors");
    let inside = room.enter("s").expect("it is empty");
    let Some(victim) = victim(subject, &room, "survivors", "s") else { return };
    let pid = victim.pid();
    until_inside(subject, &room, pid);
    victim.kill();
    eventually(subject, "the death is noticed", || !is_there(&snapshot(&room), pid));
    assert!(room.try_enter("t").is_err(), "one is still inside");
    assert_eq!(inside.standing(), crate::Standing::Held);
    inside.leave().expect("it can be left");
    let next = room.request("t").timeout(subject.soon()).enter().expect("it is empty");
    assert_eq!(next.recovered().is_some(), room.capabilities().reports_deaths);
    drop(next);
    assert_empty(subject, &room);
}
