//! Rooms on a GBP cluster pass the suite that all kinds of rooms have to pass. Members are processes.

mod members;

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use grouplock_quorum::home;
use grouplock_room::conformance::{Subject, Victim, case};
use grouplock_room::{Guard, Places, Policy, Room, RoomError, RoomOptions};
use members::{Members, Plan};
use nix::sys::signal::Signal;

/// A cluster that is shared by the tests that run at the same time, and ends with the last of them.
struct Shared {
    plan: Plan,
    running: Mutex<Weak<Members>>,
}

impl Shared {
    const fn new(members: u16, policy: &'static str) -> Self {
        let plan = Plan { members, coterie: "plane", policy, lease: "2s", retry: "300ms" };
        Shared { plan, running: Mutex::new(Weak::new()) }
    }

    fn get(&self) -> Arc<Members> {
        let mut running = self.running.lock().unwrap();
        running.upgrade().unwrap_or_else(|| {
            let members = Arc::new(Members::start(&self.plan));
            *running = Arc::downgrade(&members);
            members
        })
    }
}

static THREE: Shared = Shared::new(3, "fifo");
static SEVEN: Shared = Shared::new(7, "fifo");

/// Rooms of one cluster.
struct OnCluster(Arc<Members>);

fn open(place: &str, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
    Places::new().with(grouplock_quorum::opener()).open(place, room, options)
}

impl Subject for OnCluster {
    fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
        open(&self.0.place(), room, options)
    }

    fn victim(&self, room: &str, session: &str) -> Option<Box<dyn Victim>> {
        Some(Box::new(Process::start(&self.0.place(), room, session)))
    }

    /// Stops the home for good. Who calls this has a cluster of its own.
    fn take_away(&self, _: &str, guard: &Guard<'_>) -> bool {
        let home = home(guard.session(), self.0.addresses.len() as u16);
        self.0.signal(home.0, Signal::SIGSTOP);
        true
    }

    fn soon(&self) -> Duration {
        Duration::from_secs(15)
    }
}

/// A process that enters and stays.
struct Process(Child);

const VICTIM: &str = "GROUPLOCK_TEST_VICTIM";

impl Process {
    fn start(place: &str, room: &str, session: &str) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command
            .args(["--exact", "victim", "--nocapture", "--test-threads=1"])
            .env(VICTIM, [place, room, session].join("\u{1f}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        Process(members::spawn(command))
    }
}

impl Victim for Process {
    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn kill(mut self: Box<Self>) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: a process to be killed.
#[test]
fn victim() {
    let Ok(role) = std::env::var(VICTIM) else { return };
    members::die_with_parent();
    let role: Vec<_> = role.split('\u{1f}').collect();
    let room = open(role[0], role[1], &RoomOptions::new()).expect("the room can be opened");
    let guard = room.enter(role[2]).expect("it is admitted at some time");
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(guard);
}

/// Not a test: a member.
#[test]
fn member() {
    members::be_a_member();
}

/// The loss is brought about by stopping a member, which the other cases need.
fn subject(test: &str) -> OnCluster {
    if test.ends_with("a_loss_is_told") {
        return OnCluster(Arc::new(Members::start(&Plan::fifo(3))));
    }
    OnCluster(THREE.get())
}

grouplock_room::conformance_tests!(subject(std::thread::current().name().unwrap_or_default()));

mod seven {
    use super::{OnCluster, SEVEN, case};

    fn holds(name: &str) {
        (case(name).expect("the suite has this case").run)(&OnCluster(SEVEN.get()));
    }

    #[test]
    fn no_two_sessions_overlap_in_a_storm() {
        holds("no_two_sessions_overlap_in_a_storm");
    }

    #[test]
    fn fifo_serves_conflicting_requests_in_order() {
        holds("fifo_serves_conflicting_requests_in_order");
    }

    #[test]
    fn epochs_grow_with_every_phase() {
        holds("epochs_grow_with_every_phase");
    }

    #[test]
    fn a_withdrawal_lets_those_behind_in() {
        holds("a_withdrawal_lets_those_behind_in");
    }
}

/// A cluster has one policy, so the case that wants two needs two clusters.
struct WithPriorities {
    minute: OnCluster,
    moment: OnCluster,
}

impl Subject for WithPriorities {
    fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
        let aging = match options.policy {
            Some(Policy::Priority { aging }) => aging,
            _ => Duration::from_secs(60),
        };
        let cluster = if aging < Duration::from_secs(1) { &self.moment } else { &self.minute };
        cluster.open(room, options)
    }
}

#[test]
fn with_priorities_those_are_a_head_start() {
    let cluster = |policy| OnCluster(Arc::new(Members::start(&Plan { policy, ..Plan::fifo(3) })));
    let subject =
        WithPriorities { minute: cluster("priority:60s"), moment: cluster("priority:20ms") };
    let room = subject.open("promised", &RoomOptions::new()).expect("it can be opened");
    assert!(room.capabilities().priority, "or the case would check the refusal only");
    (case("priority_is_a_head_start").expect("the suite has this case").run)(&subject);
}
