//! Holdings on servers while the machine is suspended. The tests pretend it, for the whole process:
//! so only one runs at a time, and no other test is in this program.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use grouplock_room::backend::{Holding, Submitted};
use grouplock_room::remote::{self, Desk, Grant, LeaseEnd};
use grouplock_room::{HolderId, Patience, Standing};

const SECOND: Duration = Duration::from_secs(1);

/// The grace of every lease here.
const GRACE: Duration = Duration::from_secs(15);

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A holder whose lease lasts until then.
fn inside(until: Instant) -> (Box<dyn Holding>, Desk) {
    let (pending, desk) = remote::ask(HolderId::new("h"), Patience::Unlimited, || {});
    desk.grace(GRACE);
    assert!(desk.granted(Grant { epoch: 1, recovered: None, valid_until: Some(until) }));
    let Ok(Submitted::Granted(holding)) = pending.submitted() else { panic!("it was granted") };
    (holding, desk)
}

fn earlier(time: Instant, seconds: u32) -> Instant {
    time.checked_sub(seconds * SECOND).expect("the clock has such a time")
}

fn is_held(holding: &dyn Holding) -> bool {
    holding.watch().standing() == Standing::Held
}

/// Ends the holding, so that dropping it does not wait for servers.
fn end(desk: &Desk) {
    desk.lost(grouplock_room::Loss::Removed);
}

#[test]
fn a_holder_that_has_slept_learns_when_others_may_enter() {
    let _turn = one_at_a_time();
    let until = Instant::now() + 80 * SECOND;
    let (holding, desk) = inside(until);
    let watch = holding.watch();
    remote::pretend_to_sleep(30 * SECOND);
    assert_eq!(watch.valid_until(), until.checked_sub(30 * SECOND));
    assert!(is_held(&*holding));
    remote::pretend_to_sleep(3570 * SECOND);
    let end_of_lease = earlier(until, 3600);
    assert_eq!(watch.valid_until(), Some(end_of_lease), "before anybody has noticed the loss");
    assert!(!is_held(&*holding));
    assert_eq!(watch.valid_until(), Some(end_of_lease + GRACE));
    remote::pretend_to_sleep(SECOND);
    assert_eq!(watch.valid_until(), (end_of_lease + GRACE).checked_sub(SECOND));
    end(&desk);
}

#[test]
fn a_suspend_before_the_answer_of_the_servers_counts() {
    let _turn = one_at_a_time();
    // The grant.
    let (sent, slept) = (Instant::now(), remote::slept());
    remote::pretend_to_sleep(40 * SECOND);
    let told = LeaseEnd::new(sent + 80 * SECOND, slept);
    let (holding, desk) = inside(told.instant());
    assert_eq!(holding.watch().valid_until(), Some(sent + 40 * SECOND));
    // A renewal.
    let (sent, slept) = (Instant::now(), remote::slept());
    remote::pretend_to_sleep(20 * SECOND);
    let told = LeaseEnd::new(sent + 80 * SECOND, slept);
    assert!(!told.has_passed());
    assert!(desk.renewed(told.instant()));
    assert_eq!(holding.watch().valid_until(), Some(sent + 60 * SECOND));
    remote::pretend_to_sleep(60 * SECOND);
    assert!(told.has_passed());
    assert!(!is_held(&*holding));
}

#[test]
fn a_renewal_after_a_suspend_does_not_restore_what_was_slept() {
    let _turn = one_at_a_time();
    let until = Instant::now() + 80 * SECOND;
    let (holding, desk) = inside(until);
    remote::pretend_to_sleep(40 * SECOND);
    // An old answer. The end that is known is later, and 40 seconds of it were slept.
    assert!(desk.renewed(earlier(until, 50)));
    assert_eq!(holding.watch().valid_until(), until.checked_sub(40 * SECOND));
    remote::pretend_to_sleep(40 * SECOND);
    assert!(!is_held(&*holding));
    assert!(!desk.renewed(until), "it is too late");
}

#[test]
fn a_grant_that_nobody_has_taken_yet_runs_out_too() {
    let _turn = one_at_a_time();
    let until = Instant::now() + 80 * SECOND;
    let (pending, desk) = remote::ask(HolderId::new("h"), Patience::Unlimited, || {});
    assert!(desk.granted(Grant { epoch: 1, recovered: None, valid_until: Some(until) }));
    remote::pretend_to_sleep(40 * SECOND);
    assert!(desk.renewed(earlier(until, 50)));
    let Ok(Submitted::Granted(holding)) = pending.submitted() else { panic!("it was granted") };
    assert_eq!(holding.watch().valid_until(), until.checked_sub(40 * SECOND));
    end(&desk);
}

/// No event reports that the machine was suspended.
#[test]
fn a_watch_that_waits_notices_that_the_machine_was_suspended() {
    let _turn = one_at_a_time();
    let (holding, _desk) = inside(Instant::now() + 3600 * SECOND);
    let watch = holding.watch();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(watch.wait(None)));
    // It waits then. If not, it notices before it waits.
    std::thread::sleep(SECOND / 5);
    remote::pretend_to_sleep(3600 * SECOND);
    let standing = told.recv_timeout(60 * SECOND).expect("it looks at the clock");
    assert!(matches!(standing, Standing::Lost(_)), "{standing:?}");
}
