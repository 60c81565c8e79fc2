//! The test suite for every kind of rooms.
//!
//! A backend says how to open its rooms ([`Subject`]) and runs all [`CASES`], each as a test of its
//! own:
//!
//! ```
//! use grouplock_room::conformance::Subject;
//! use grouplock_room::{Room, RoomError, RoomOptions};
//!
//! struct InDirectory(std::path::PathBuf);
//!
//! impl Subject for InDirectory {
//!     fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
//!         Room::open_with(self.0.as_path(), room, options)
//!     }
//! }
//!
//! # let directory = std::env::temp_dir().join(format!("grouplock-doc-suite-{}", std::process::id()));
//! let subject = InDirectory(directory.clone());
//! let case = grouplock_room::conformance::case("different_sessions_exclude").expect("it exists");
//! (case.run)(&subject);
//! # std::fs::remove_dir_all(directory).ok();
//! ```
//!
//! In a test file, `grouplock_room::conformance_tests!(subject())` makes a `#[test]` of every case.
//!
//! A case that needs a feature that the backend lacks ([`Capabilities`](crate::Capabilities))
//! checks that the backend refuses it.

mod abilities;
mod deaths;
mod exclusion;
mod order;
mod storm;
mod tasks;
mod waiting;

use std::time::{Duration, Instant};

use crate::error::RoomError;
use crate::guard::Guard;
use crate::room::{Room, RoomOptions};

/// A kind of rooms under test.
pub trait Subject: Sync {
    /// Opens a room, as another process would: each handle is a participant of its own. Every case
    /// uses its own names.
    ///
    /// # Errors
    /// The errors of the backend.
    fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError>;

    /// Starts a process that enters `session` of `room`, or waits for it. `None` if that is not
    /// possible. Then the cases about deaths are skipped with a notice.
    fn victim(&self, room: &str, session: &str) -> Option<Box<dyn Victim>> {
        _ = (room, session);
        None
    }

    /// Takes a holding away, as a removed file or a lost lease would. `false` if that is not
    /// possible.
    fn take_away(&self, room: &str, guard: &Guard<'_>) -> bool {
        _ = (room, guard);
        false
    }

    /// The longest time that an expected event may take, deaths included.
    fn soon(&self) -> Duration {
        Duration::from_secs(10)
    }
}

/// A process that a case kills.
pub trait Victim {
    /// Its process id, as snapshots show it.
    fn pid(&self) -> u32;

    /// Kills it, so that it cannot react.
    fn kill(self: Box<Self>);
}

/// One promise.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Checks it, and panics if it does not hold.
    pub run: fn(&dyn Subject),
}

macro_rules! cases {
    ($($module:ident :: $case:ident,)*) => {
        /// All cases.
        pub const CASES: &[Case] = &[
            $(Case { name: stringify!($case), run: $module::$case },)*
        ];

        /// Makes a test of every [case](crate::conformance::CASES). Each test evaluates the
        /// expression to make its subject.
        #[macro_export]
        macro_rules! conformance_tests {
            ($subject:expr) => {
                $(
                    #[test]
                    fn $case() {
                        let case = $crate::conformance::case(stringify!($case));
                        (case.expect("the suite has this case").run)(&$subject);
                    }
                )*
            };
        }
    };
}

cases! {
    exclusion::same_session_shares,
    exclusion::different_sessions_exclude,
    exclusion::names_are_compared_exactly,
    exclusion::the_longest_name_works_and_a_longer_one_is_refused,
    exclusion::epochs_grow_with_every_phase,
    exclusion::a_policy_is_kept_or_refused,
    exclusion::an_owned_guard_outlives_its_handle,
    exclusion::the_snapshot_shows_holders_and_waiters,
    exclusion::the_watch_reports_the_end,
    exclusion::a_loss_is_reported,
    order::fifo_serves_conflicting_requests_in_order,
    order::fifo_admits_no_request_before_a_waiter,
    order::batch_joins_within_its_bound,
    order::priority_is_a_head_start,
    waiting::a_waiter_is_admitted_when_the_room_empties,
    waiting::a_timeout_leaves_no_trace,
    waiting::no_patience_leaves_no_trace,
    waiting::a_moment_in_the_past_is_no_patience,
    waiting::progress_is_reported_and_can_end_the_wait,
    waiting::a_withdrawal_admits_the_requests_behind,
    tasks::a_task_enters_and_waits,
    tasks::a_dropped_future_leaves_no_trace,
    tasks::a_granted_and_dropped_future_gives_back,
    tasks::a_task_times_out,
    deaths::a_death_is_reported_to_the_next_holder,
    deaths::a_dead_waiter_holds_nobody_up,
    deaths::survivors_of_a_phase_keep_it,
    storm::no_two_sessions_overlap_in_a_storm,
    abilities::alone_excludes_its_own_name,
    abilities::what_cannot_be_done_is_refused_at_once,
    abilities::at_most_so_many_are_inside,
    abilities::a_downgrade_lets_others_join_at_once,
    abilities::a_downgrade_to_another_name_is_a_change_of_session,
    abilities::a_switch_overtakes_nobody,
    abilities::a_set_up_runs_once_and_before_others,
    abilities::a_set_up_for_a_name_too_long_is_refused,
    abilities::a_failed_set_up_is_tried_again_by_the_next,
    abilities::the_last_one_tears_down,
    abilities::several_rooms_are_entered_in_one_order,
}

/// The case of that name.
pub fn case(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// A room that only this case uses.
fn open(subject: &dyn Subject, room: &str) -> Room {
    subject.open(room, &RoomOptions::new()).expect("a room with default options can be opened")
}

/// Waits until the condition holds.
fn eventually(subject: &dyn Subject, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + subject.soon();
    while !holds() {
        assert!(Instant::now() < deadline, "not within {:?}: {what}", subject.soon());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the room has that many waiters.
fn until_waiting(subject: &dyn Subject, room: &Room, waiters: usize) {
    eventually(subject, &format!("{waiters} waiting"), || snapshot(room).waiters() == waiters);
}

fn snapshot(room: &Room) -> crate::Snapshot {
    room.snapshot().expect("a room can be looked at")
}

/// The room has no holders and no waiters, and can be entered.
fn assert_empty(subject: &dyn Subject, room: &Room) {
    let seen = snapshot(room);
    assert_eq!((seen.session(), seen.waiters()), (None, 0), "something was left behind: {seen:?}");
    let fresh = room.request("a session nobody has used").timeout(subject.soon()).enter();
    fresh.expect("an empty room can be entered").leave().expect("and left");
}
