//! The monitors notice faults: locks that are broken on purpose run under them.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use grouplock_algorithms::claims::{Claims, Text};
use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::memory::{Memory, Word};
use grouplock_algorithms::monitor::{Violation, Watched, Workout};
use grouplock_algorithms::raw::RawGroup;
use grouplock_algorithms::{CapacityError, Session};

/// The claims that the broken locks pretend to fulfil.
fn claims() -> Claims {
    Claims { name: "broken", text: Text::new(file!(), ""), ..Handover::<Watched>::claims() }
}

/// Writes the parts of a lock that do not matter here.
macro_rules! broken_lock {
    ($name:ident, $enter:expr, $exit:expr) => {
        impl RawGroup<Watched> for $name {
            type Process = u64;

            fn claims() -> Claims {
                claims()
            }
            fn new(_: usize) -> Result<Self, CapacityError> {
                Ok($name::default())
            }
            fn join(&self) -> Result<u64, CapacityError> {
                Ok(0)
            }
            unsafe fn leave(&self, _: u64) {}
            unsafe fn enter(&self, me: &mut u64, session: Session) {
                *me = session.get();
                $enter(self, session.get());
            }
            unsafe fn exit(&self, me: &mut u64) {
                $exit(self, *me);
            }
            fn inspect(_: &u64, _: &mut dyn FnMut(&'static str, Word)) {}
        }
    };
}

/// What the monitors report. If the threads happened to run one after the other, there is nothing
/// to report, and the workout runs again.
fn objection<G: RawGroup<Watched> + 'static>(workout: Workout) -> Violation {
    let outcome = (0..50).find_map(|_| workout.group::<G>().err());
    outcome.expect("a broken lock is noticed")
}

/// Admits every process at once.
#[derive(Debug, Default)]
struct OpenDoor;
broken_lock!(OpenDoor, |_: &OpenDoor, _| Watched::doorway_end(), |_: &OpenDoor, _| ());

#[test]
fn an_open_door_breaks_mutual_exclusion() {
    let violation = objection::<OpenDoor>(Workout::default());
    assert_eq!(violation.property, "mutual exclusion");
}

#[test]
fn an_open_door_is_good_enough_for_one_session() {
    let workout = Workout { sessions: 1, ..Workout::default() };
    assert_eq!(workout.group::<OpenDoor>().expect("nothing conflicts").entries, 2000);
}

/// A correct lock, except that the last exit is not counted. The next session waits forever.
#[derive(Debug, Default)]
struct Forgetful {
    inside: Mutex<(u64, usize, usize)>,
    empty: Condvar,
}

impl Forgetful {
    fn enter(&self, session: u64) {
        Watched::doorway_end();
        let mut inside = self.inside.lock().expect("no panic while it is held");
        while inside.1 > 0 && inside.0 != session {
            inside = self.empty.wait(inside).expect("no panic while it is held");
        }
        inside.0 = session;
        inside.1 += 1;
        inside.2 += 1;
    }

    fn exit(&self) {
        let mut inside = self.inside.lock().expect("no panic while it is held");
        // The hundredth exit is not counted.
        if inside.2 < 100 {
            inside.1 -= 1;
        }
        self.empty.notify_all();
    }
}
broken_lock!(Forgetful, Forgetful::enter, |lock: &Forgetful, _| lock.exit());

#[test]
fn a_lock_that_forgets_leaves_somebody_behind() {
    let workout = Workout { patience: Duration::from_millis(300), ..Workout::default() };
    let violation = workout.group::<Forgetful>().unwrap_err();
    assert_eq!(violation.property, "nobody left behind");
}

/// A group lock as people write it by hand. It is correct, but requests for the session inside
/// overtake the waiters.
#[derive(Debug, Default)]
struct HandWritten {
    inside: Mutex<(u64, usize)>,
    empty: Condvar,
}

impl HandWritten {
    fn enter(&self, session: u64) {
        Watched::doorway_end();
        let mut inside = self.inside.lock().expect("no panic while it is held");
        while inside.1 > 0 && inside.0 != session {
            inside = self.empty.wait(inside).expect("no panic while it is held");
        }
        *inside = (session, inside.1 + 1);
    }

    fn exit(&self) {
        let mut inside = self.inside.lock().expect("no panic while it is held");
        inside.1 -= 1;
        self.empty.notify_all();
    }
}
broken_lock!(HandWritten, HandWritten::enter, |lock: &HandWritten, _| lock.exit());

#[test]
fn the_hand_written_group_lock_is_not_first_come_first_served() {
    let workout = Workout { threads: 8, passages: 2000, ..Workout::default() };
    let violation = objection::<HandWritten>(workout);
    assert_eq!(violation.property, "first come first served");
}
