//! Rooms on a GBP cluster pass the suite for all kinds of rooms. Members are processes.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::cluster::{Cluster, Options};
use grouplock_quorum::home;
use grouplock_room::conformance::{Subject, Victim, case};
use grouplock_room::{Guard, Places, Policy, Room, RoomError, RoomOptions};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

/// Rooms of one cluster.
#[derive(Clone)]
struct OnCluster(Arc<Mutex<Cluster>>);

impl OnCluster {
    fn start(options: Options) -> Self {
        // Processes end with the thread that started them. It must not be the thread of a test.
        OnCluster(on_lasting_thread(move || Arc::new(Mutex::new(Cluster::start(options)))))
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> String {
        format!("gbp://{}", self.cluster().addresses().join(","))
    }
}

/// Does work on a thread that lives as long as this process.
fn on_lasting_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let done = tell.send(work());
        while done.is_ok() {
            std::thread::park();
        }
    });
    told.recv().expect("it does not panic")
}

/// Leases are as short as a busy machine allows, because deaths are noticed by them.
fn options(members: u16) -> Options {
    Options { lease: "4s", ..Options::new(members) }
}

/// A cluster for all tests that run at the same time. It ends with the last of them.
struct Shared {
    members: u16,
    running: Mutex<Weak<Mutex<Cluster>>>,
}

impl Shared {
    fn get(&self) -> OnCluster {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = running.upgrade() {
            return OnCluster(cluster);
        }
        let cluster = OnCluster::start(options(self.members));
        *running = Arc::downgrade(&cluster.0);
        cluster
    }
}

static THREE: Shared = Shared { members: 3, running: Mutex::new(Weak::new()) };
static SEVEN: Shared = Shared { members: 7, running: Mutex::new(Weak::new()) };

fn open(place: &str, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
    Places::new().with(grouplock_quorum::opener()).open(place, room, options)
}

impl Subject for OnCluster {
    fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
        open(&self.place(), room, options)
    }

    fn victim(&self, room: &str, session: &str) -> Option<Box<dyn Victim>> {
        Some(Box::new(Process::start(&self.place(), room, session)))
    }

    /// Stops the home for good. The caller needs a cluster of its own.
    fn take_away(&self, _: &str, guard: &Guard<'_>) -> bool {
        let cluster = self.cluster();
        let home = home(guard.session(), cluster.len() as u16);
        cluster.signal(home.index(), Signal::SIGSTOP);
        true
    }

    fn soon(&self) -> Duration {
        Duration::from_secs(15)
    }
}

/// A process that enters and stays inside.
struct Process(Child);

const VICTIM: &str = "GROUPLOCK_TEST_VICTIM";

impl Process {
    fn start(place: &str, room: &str, session: &str) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command
            .args(["--exact", "conformance::victim", "--nocapture", "--test-threads=1"])
            .env(VICTIM, [place, room, session].join("\u{1f}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        Process(on_lasting_thread(move || command.spawn().expect("this program can be started")))
    }
}

impl Victim for Process {
    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn kill(mut self: Box<Self>) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Not a test: a process to be killed.
#[test]
fn victim() {
    let Ok(role) = std::env::var(VICTIM) else { return };
    set_pdeathsig(Signal::SIGKILL).expect("the kernel can end us with our parent");
    let role: Vec<_> = role.split('\u{1f}').collect();
    let room = open(role[0], role[1], &RoomOptions::new()).expect("the room can be opened");
    let guard = room.enter(role[2]).expect("it is admitted at some time");
    _ = std::io::stdin().read_line(&mut String::new());
    drop(guard);
}

/// The loss is caused by stopping a member, which the other cases need.
fn subject(test: &str) -> OnCluster {
    if test.ends_with("a_loss_is_reported") {
        return OnCluster::start(options(3));
    }
    THREE.get()
}

grouplock_room::conformance_tests!(subject(std::thread::current().name().unwrap_or_default()));

mod seven {
    use super::{SEVEN, case};

    fn holds(name: &str) {
        (case(name).expect("the suite has this case").run)(&SEVEN.get());
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
    fn a_withdrawal_admits_the_requests_behind() {
        holds("a_withdrawal_admits_the_requests_behind");
    }
}

/// A cluster has one policy, so a case with two policies needs two clusters.
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
    let cluster = |policy| OnCluster::start(Options { policy, ..options(3) });
    let subject =
        WithPriorities { minute: cluster("priority:60s"), moment: cluster("priority:20ms") };
    let room = subject.open("promised", &RoomOptions::new()).expect("it can be opened");
    assert!(room.capabilities().priority, "or the case would check the refusal only");
    (case("priority_is_a_head_start").expect("the suite has this case").run)(&subject);
}
