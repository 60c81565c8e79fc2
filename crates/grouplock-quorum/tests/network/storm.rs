//! Clients in processes of their own enter and leave. Members and clients are killed at random
//! moments. No two sessions are inside at once, and epochs grow.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::client::Walker;
use crate::cluster::{Cluster, Options, PATIENCE, eventually};
use grouplock_quorum::Settings;
use grouplock_testing::overlaps::{Ledger, now};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

const PLAY: &str = "GROUPLOCK_TEST_WALKER";
const LEASE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(100);

/// Runs a client if this process was started as one. It enters and leaves until the file `stop`
/// exists.
#[test]
fn walker() {
    let Ok(play) = std::env::var(PLAY) else { return };
    set_pdeathsig(Signal::SIGKILL).expect("the kernel can end us with our parent");
    let mut words = play.split(' ');
    let (name, directory) = (words.next().expect("a name"), words.next().expect("a directory"));
    let addresses: Vec<String> = words.map(str::to_owned).collect();
    let settings = Settings { retry: RETRY, lease: Some(LEASE), ..Settings::default() };
    let mut page = Ledger::open(Path::new(directory).join("ledger")).page(name);
    let mut walker = Walker::new(&addresses, settings, "room");
    while !Path::new(directory).join("stop").exists() {
        let session = format!("session-{}", fastrand::u8(..6));
        let Some(epoch) = walker.enter(&session, Duration::from_secs(2)) else { continue };
        // The grant may be old. So the client checks that it is inside after it has read the clock.
        let entered = now();
        if !walker.is_inside() {
            continue;
        }
        page.enter(entered, &session, epoch);
        let last = walker.stay(Duration::from_millis(fastrand::u64(..8)));
        page.leave(last.unwrap_or(entered));
        walker.leave();
    }
    std::process::exit(0);
}

struct Walkers {
    children: Vec<Child>,
}

impl Walkers {
    fn spawn(name: &str, cluster: &Cluster) -> Child {
        let directory = cluster.scratch.path().display().to_string();
        let play = format!("{name} {directory} {}", cluster.addresses().join(" "));
        Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "storm::walker", "--nocapture", "--test-threads=1"])
            .env(PLAY, play)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("this program can be started")
    }
}

impl Drop for Walkers {
    fn drop(&mut self) {
        for child in &mut self.children {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// How often each thing was done, for the reader of the output.
#[derive(Debug, Default)]
struct Done {
    members_killed: u32,
    clients_killed: u32,
    stays: usize,
    stays_after: usize,
}

fn storm(members: u16, clients: usize, time: Duration) -> Done {
    let options = Options { lease: "2s", retry: "100ms", ..Options::new(members) };
    let mut cluster = Cluster::start(options);
    cluster.wait_connected();
    let ledger = Ledger::open(cluster.scratch.path().join("ledger"));
    let stays = || ledger.check(PATIENCE).unwrap_or_else(|wrong| panic!("{wrong}"));
    let name = |number: usize, life: u32| format!("client-{number}-{life}");
    let mut lives = vec![0; clients];
    let children = (0..clients).map(|number| Walkers::spawn(&name(number, 0), &cluster)).collect();
    let mut walkers = Walkers { children };
    let mut done = Done::default();
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(fastrand::u64(50..350)));
        if fastrand::u8(..5) == 0 {
            let victim = fastrand::usize(..clients);
            let child = &mut walkers.children[victim];
            let killed = ledger
                .kill(&name(victim, lives[victim]), || child.kill().and_then(|()| child.wait()));
            killed.expect("it is our child");
            lives[victim] += 1;
            let new = Walkers::spawn(&name(victim, lives[victim]), &cluster);
            walkers.children[victim] = new;
            done.clients_killed += 1;
        } else {
            let victim = fastrand::usize(..usize::from(members));
            cluster.kill(victim);
            std::thread::sleep(Duration::from_millis(fastrand::u64(..200)));
            cluster.launch(victim);
            done.members_killed += 1;
        }
        stays();
    }
    // The clients go on when the faults end, also after the leases of the dead.
    done.stays = stays();
    eventually("they go on", || stays() > done.stays + 50);
    std::fs::write(cluster.scratch.path().join("stop"), "").expect("it can be written");
    let deadline = Instant::now() + PATIENCE;
    for child in &mut walkers.children {
        let status = loop {
            assert!(Instant::now() < deadline, "a client does not end");
            match child.try_wait().expect("it is our child") {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        assert!(status.success(), "a client ended with {status}");
    }
    done.stays_after = stays();
    assert!(done.members_killed > 0 && done.stays > 0, "{done:?}");
    println!("{members} members, {clients} clients, {time:?}: {done:?}");
    done
}

#[test]
fn three_members_killed_at_random() {
    storm(3, 4, Duration::from_secs(6));
}

#[test]
fn seven_members_killed_at_random() {
    storm(7, 4, Duration::from_secs(6));
}

/// For `cargo xtask soak`.
#[test]
#[ignore = "takes minutes"]
fn soak_three_members_killed_at_random() {
    storm(3, 5, Duration::from_secs(120));
}

/// For `cargo xtask soak`.
#[test]
#[ignore = "takes minutes"]
fn soak_seven_members_killed_at_random() {
    storm(7, 6, Duration::from_secs(120));
}
