//! Tests with faults. Clients use rooms as any program would. Each client and each member is a
//! process of its own. One kind of fault is injected again and again. All clients record when they
//! were inside. A checker that is no part of the protocol reads the records: no two sessions are
//! inside at once, and epochs grow and are shared. After the faults, every client has to enter
//! again.
//!
//! `cargo xtask soak` runs the long version. `GROUPLOCK_FAULTS=docs/quorum/faults.md cargo test -p
//! grouplock-quorum --test network -- --ignored long` writes the table in `docs/quorum/faults.md`.

mod proxy;
mod walker;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Options, PATIENCE, eventually};
use grouplock_testing::overlaps::{Ledger, now};
use nix::sys::signal::Signal;
use proxy::Proxy;
use walker::Walker;

#[test]
fn walker() {
    walker::play();
}

/// The lease of the members, in milliseconds.
const LEASE: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    MemberKilled,
    MemberStopped,
    ClientKilled,
    ClientStopped,
    LinksCut,
    DiskFull,
    DataLost,
}

impl Fault {
    const ALL: [Fault; 8] = [
        Fault::Nothing,
        Fault::MemberKilled,
        Fault::MemberStopped,
        Fault::ClientKilled,
        Fault::ClientStopped,
        Fault::LinksCut,
        Fault::DiskFull,
        Fault::DataLost,
    ];

    fn words(self) -> &'static str {
        match self {
            Fault::Nothing => "nothing",
            Fault::MemberKilled => "a member is killed (SIGKILL), and started again within 0.5 s",
            Fault::MemberStopped => {
                "a member is stopped (SIGSTOP) for a quarter to one and a half leases"
            }
            Fault::ClientKilled => "a client is killed (SIGKILL), and another comes",
            Fault::ClientStopped => {
                "a client is stopped (SIGSTOP) for one and a half to two leases"
            }
            Fault::LinksCut => {
                "all connections to a member are cut, those of clients and those of members"
            }
            Fault::DiskFull => {
                "a member's log cannot grow (RLIMIT_FSIZE) until it ends; then it is started again"
            }
            Fault::DataLost => {
                "a member is killed and its data are removed; it is started again, and the next fault waits until it votes"
            }
        }
    }
}

struct Play {
    cluster: Cluster,
    proxies: Vec<Proxy>,
    place: String,
    walkers: Vec<Walker>,
    lives: usize,
    ledger: Ledger,
}

impl Play {
    fn start(fault: Fault, members: u16, clients: usize) -> Self {
        let options = Options { lease: "1s", retry: "100ms", ..Options::new(members) };
        let mut cluster = Cluster::prepare(options);
        let mut proxies = Vec::new();
        if fault == Fault::LinksCut {
            proxies = cluster.addresses().into_iter().map(Proxy::before).collect();
            for id in 0..cluster.len() {
                let mut text = cluster.toml(id);
                for (real, proxy) in cluster.addresses().iter().zip(&proxies) {
                    text = text.replace(real.as_str(), &proxy.address);
                }
                let text = format!("listen = \"{}\"\n{text}", cluster.address(id));
                fs::write(cluster.config(id), text).expect("a configuration");
            }
        }
        (0..cluster.len()).for_each(|id| cluster.launch(id));
        cluster.wait_connected();
        let addresses: Vec<_> = if proxies.is_empty() {
            cluster.addresses()
        } else {
            proxies.iter().map(|proxy| proxy.address.clone()).collect()
        };
        let ledger = Ledger::open(cluster.scratch.path().join("ledger"));
        let place = format!("gbp://{}", addresses.join(","));
        let walkers = Vec::new();
        let mut play = Play { cluster, proxies, place, walkers, lives: 0, ledger };
        for _ in 0..clients {
            let walker = play.new_walker();
            play.walkers.push(walker);
        }
        play
    }

    fn new_walker(&mut self) -> Walker {
        self.lives += 1;
        Walker::start(format!("client-{}", self.lives), self.cluster.scratch.path(), &self.place)
    }

    /// Injects the fault once, and restores the cluster.
    fn inject(&mut self, fault: Fault) {
        let some_member = fastrand::usize(..self.cluster.len());
        let some_client = fastrand::usize(..self.walkers.len());
        sleep(Duration::from_millis(fastrand::u64(20..200)));
        match fault {
            Fault::Nothing => sleep(Duration::from_millis(100)),
            Fault::MemberKilled => {
                self.cluster.kill(some_member);
                sleep(Duration::from_millis(fastrand::u64(..500)));
                self.cluster.launch(some_member);
            }
            Fault::MemberStopped => {
                self.cluster.signal(some_member, Signal::SIGSTOP);
                sleep(Duration::from_millis(fastrand::u64(LEASE / 4..LEASE * 3 / 2)));
                self.cluster.signal(some_member, Signal::SIGCONT);
            }
            Fault::ClientKilled => {
                let walker = &mut self.walkers[some_client];
                self.ledger.kill(&walker.name.clone(), || walker.kill());
                self.walkers[some_client] = self.new_walker();
            }
            Fault::ClientStopped => {
                self.walkers[some_client].signal(Signal::SIGSTOP);
                sleep(Duration::from_millis(fastrand::u64(LEASE * 3 / 2..LEASE * 2)));
                self.walkers[some_client].signal(Signal::SIGCONT);
            }
            Fault::LinksCut => {
                self.proxies[some_member].cut();
            }
            Fault::DiskFull => {
                self.cluster.kill(some_member);
                let log = fs::read_dir(self.cluster.data(some_member)).expect("a directory");
                let sizes = log.flatten().filter_map(|file| file.metadata().ok());
                let size = sizes.map(|file| file.len()).max().unwrap_or(0);
                // The shell counts in blocks of 512 bytes.
                let blocks = u32::try_from(size / 512).expect("it is small") + 4;
                self.cluster.limits.insert(some_member, blocks);
                if self.cluster.try_launch(some_member).is_ok() {
                    assert_eq!(
                        self.cluster.wait(some_member),
                        Some(1),
                        "it ends when it cannot write"
                    );
                }
                self.cluster.limits.clear();
                self.cluster.launch(some_member);
            }
            Fault::DataLost => {
                let again = |cluster: &Cluster| {
                    cluster.log(some_member).matches("it continues with memory").count()
                };
                let before = again(&self.cluster);
                self.cluster.kill(some_member);
                fs::remove_dir_all(self.cluster.data(some_member)).expect("it has data");
                self.cluster.launch(some_member);
                eventually("it has a memory again", || again(&self.cluster) > before);
            }
        }
    }

    fn stays(&self) -> usize {
        self.ledger.check(PATIENCE).unwrap_or_else(|wrong| panic!("{wrong}"))
    }
}

/// The result of one kind of fault.
struct Row {
    fault: Fault,
    members: u16,
    clients: usize,
    seconds: f64,
    injected: u32,
    stays: usize,
    refused: u64,
    /// The time until every client had entered again.
    recovery: Duration,
}

/// Panics if a property does not hold.
fn holds(fault: Fault, members: u16, clients: usize, time: Duration) -> Row {
    let mut play = Play::start(fault, members, clients);
    eventually("they enter", || play.stays() > 20);
    let start = Instant::now();
    let mut injected = 0;
    while start.elapsed() < time {
        play.inject(fault);
        injected += u32::from(fault != Fault::Nothing);
    }
    let seconds = start.elapsed().as_secs_f64();
    let stays = play.stays();
    // Without faults every client enters, and more than once.
    let (calm, since) = (Instant::now(), now());
    let names: BTreeSet<_> = play.walkers.iter().map(|walker| walker.name.clone()).collect();
    eventually("everybody enters again", || play.ledger.entered_since(since).is_superset(&names));
    let recovery = calm.elapsed();
    fs::write(play.cluster.scratch.path().join("stop"), "").expect("it can be written");
    let deadline = Instant::now() + PATIENCE;
    while !play.walkers.iter_mut().all(Walker::has_ended) {
        assert!(Instant::now() < deadline, "a client does not end");
        sleep(Duration::from_millis(10));
    }
    play.stays();
    let refused = fs::metadata(play.cluster.scratch.path().join("refused"));
    let refused = refused.map_or(0, |file| file.len());
    Row { fault, members, clients, seconds, injected, stays, refused, recovery }
}

#[test]
fn links_are_cut() {
    holds(Fault::LinksCut, 3, 3, Duration::from_secs(2));
}

#[test]
fn a_client_is_stopped() {
    holds(Fault::ClientStopped, 3, 3, Duration::from_secs(3));
}

#[test]
fn a_member_is_stopped() {
    holds(Fault::MemberStopped, 3, 3, Duration::from_secs(3));
}

#[test]
fn data_are_lost() {
    holds(Fault::DataLost, 3, 3, Duration::from_secs(2));
}

#[test]
#[ignore = "minutes: for cargo xtask soak"]
fn soak_every_fault() {
    let mut rows = Vec::new();
    for (members, clients) in [(3, 6), (7, 10)] {
        for fault in Fault::ALL {
            let row = holds(fault, members, clients, Duration::from_secs(20));
            println!("{} entries: {}", row.stays, line(&row));
            rows.push(row);
        }
    }
    if let Some(path) = std::env::var_os("GROUPLOCK_FAULTS") {
        // Tests run in the directory of their crate.
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::write(root.join(path), page(&rows)).expect("the page can be written");
    }
}

fn line(row: &Row) -> String {
    let Row { fault, members, clients, seconds, injected, stays, refused, recovery } = row;
    format!(
        "| {} | {members} | {clients} | {seconds:.0} s | {injected} | {stays} | {refused} | {:.1} s |",
        fault.words(),
        recovery.as_secs_f64()
    )
}

const INTRODUCTION: &str = "\
# GBP with faults

*For people who rely on a GBP cluster.*

Written by `GROUPLOCK_FAULTS=docs/quorum/faults.md cargo test -p grouplock-quorum --test network -- --ignored long`; the figures are those of one run.

Members and clients are processes on one machine; leases take 1 s. Each client repeatedly enters one of six sessions through `grouplock_room::Room`, stays up to
6 ms and leaves. It records when it was inside by CLOCK_MONOTONIC, which all processes share. It counts as inside until the last moment at which its
guard was held. One kind of fault is injected repeatedly, each time at a random member or client.

A program that has no part in the protocol checks the records of the clients: no two sessions are inside at once; an epoch is never smaller than an
earlier one; one epoch belongs to one session only; after the last fault every client enters once more. **If a check fails, the run stops and there is
no page**: in all the entries below the checks held.

* **stale writes refused**: a resource that keeps the largest epoch it has seen refused a write of a client that lost its holding between the last check
  and the write. A lease alone cannot prevent that.
* **all in again**: how long after the last fault every client had entered once more.

| fault | members | clients | time | injected | entries | stale writes refused | all in again |
|---|---|---|---|---|---|---|---|
";

fn page(rows: &[Row]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for row in rows {
        _ = writeln!(page, "{}", line(row));
    }
    page
}
