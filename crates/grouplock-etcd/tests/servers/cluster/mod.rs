//! Clusters of real etcd servers. A test can kill them, stop them and cut them off.
//!
//! The thread that makes a cluster must live as long as the cluster: the servers die with that
//! thread. So no server is left when a test ends in any way.

#![allow(dead_code, reason = "no test file needs all of it")]

pub(crate) mod gateway;
pub(crate) mod network;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grouplock_testing::{Scratch, current_test, free_port, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::server::is_installed;
use gateway::Status;
use network::{MORTAL, Network};

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The version of the installed etcd, such as "etcd 3.4.23".
pub(crate) fn version() -> Option<String> {
    let output = Command::new("etcd").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next()?.strip_prefix("etcd Version: ").map(|number| format!("etcd {number}"))
}

/// Several etcd servers.
pub(crate) struct Cluster {
    // The order matters: the servers end first, then their network, then their directory.
    members: Vec<Member>,
    network: Option<Network>,
    folder: Scratch,
}

struct Member {
    client: SocketAddr,
    command: Vec<String>,
    log: PathBuf,
    process: Option<Child>,
}

impl Cluster {
    /// Starts so many servers on the loopback of this machine. `None`, with a notice, if etcd is
    /// not installed.
    pub(crate) fn start(members: u8) -> Option<Self> {
        is_installed().then(|| {
            let address = |_| SocketAddr::from(([127, 0, 0, 1], free_port()));
            let clients = (0..members).map(address).collect();
            let peers = (0..members).map(address).collect();
            Self::run(clients, peers, None)
        })
    }

    /// Starts three servers on a network that can be cut. `None`, with a notice, if this machine
    /// does not allow it.
    pub(crate) fn start_apart() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        match Network::new(3) {
            Ok(network) => {
                let clients = (0..3).map(|member| network.client(member)).collect();
                let peers = (0..3).map(Network::peer).collect();
                Some(Self::run(clients, peers, Some(network)))
            }
            Err(reason) => {
                skip(&current_test(), &format!("no network namespaces: {reason}"));
                None
            }
        }
    }

    fn run(clients: Vec<SocketAddr>, peers: Vec<SocketAddr>, network: Option<Network>) -> Self {
        let folder = Scratch::new();
        let all: Vec<String> = (0..).zip(&peers).map(|(i, p)| format!("m{i}=http://{p}")).collect();
        let member = |(number, (client, peer)): (usize, (SocketAddr, SocketAddr))| {
            let inside = network.as_ref().map(|network| network.enter(number)).unwrap_or_default();
            let flags = [
                ("--name", format!("m{number}")),
                ("--data-dir", folder.path().join(format!("m{number}")).display().to_string()),
                ("--listen-client-urls", format!("http://{client}")),
                ("--advertise-client-urls", format!("http://{client}")),
                ("--listen-peer-urls", format!("http://{peer}")),
                ("--initial-advertise-peer-urls", format!("http://{peer}")),
                ("--initial-cluster", all.join(",")),
                ("--initial-cluster-token", folder.path().display().to_string()),
                // Elections take half a second instead of one to two. Leases of one second are
                // possible.
                ("--heartbeat-interval", "50".to_owned()),
                ("--election-timeout", "500".to_owned()),
                ("--logger", "zap".to_owned()),
            ];
            let mut command: Vec<String> = MORTAL.map(str::to_owned).to_vec();
            command.extend(inside);
            command.push("etcd".to_owned());
            command.extend(flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]));
            let log = folder.path().join(format!("m{number}.log"));
            Member { client, command, log, process: None }
        };
        let members = clients.into_iter().zip(peers).enumerate().map(member).collect();
        let mut cluster = Cluster { members, network, folder };
        for number in 0..cluster.members.len() {
            cluster.members[number].start();
        }
        cluster.await_health();
        cluster
    }

    /// The addresses for clients.
    pub(crate) fn endpoints(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.client).collect()
    }

    /// The place of rooms on this cluster, with leases of so many seconds.
    pub(crate) fn place(&self, ttl: u64) -> String {
        let hosts: Vec<String> = self.endpoints().iter().map(SocketAddr::to_string).collect();
        format!("etcd://{}?ttl={ttl}", hosts.join(","))
    }

    /// Calls a method of etcd on the first member that answers.
    pub(crate) fn call(&self, path: &str, request: &Value) -> Value {
        let calls = self.members.iter().map(|member| {
            gateway::call(member.client, path, request, Duration::from_secs(5))
                .map_err(|error| error.to_string())
        });
        let mut errors = Vec::new();
        for call in calls {
            match call {
                Ok(answer) => return answer,
                Err(error) => errors.push(error),
            }
        }
        panic!("no member answers to {path}: {errors:?}")
    }

    /// Calls a method of etcd on one member.
    pub(crate) fn call_on(&self, member: usize, path: &str, request: &Value) -> Value {
        let server = self.members[member].client;
        gateway::call(server, path, request, Duration::from_secs(5)).expect("the member answers")
    }

    fn statuses(&self) -> Vec<Option<Status>> {
        self.members.iter().map(|member| gateway::status(member.client).ok()).collect()
    }

    /// Whether clients reach a member.
    pub(crate) fn answers(&self, member: usize) -> bool {
        gateway::status(self.members[member].client).is_ok()
    }

    /// The leader, as the members with the latest term report it.
    pub(crate) fn leader(&self) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.statuses();
            let latest =
                seen.iter().flatten().max_by_key(|status| (status.leader != 0, status.term));
            if let Some(latest) = latest
                && let Some(leader) = seen
                    .iter()
                    .position(|status| status.is_some_and(|status| status.member == latest.leader))
            {
                return leader;
            }
            assert!(Instant::now() < deadline, "there is no leader: {seen:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The revision of the store, from any member.
    pub(crate) fn revision(&self) -> i64 {
        self.statuses().into_iter().flatten().map(|status| status.revision).max().unwrap_or(0)
    }

    /// The ids of all clients whose entry was deleted with its lease since a revision, by the
    /// servers' own events. A client that leaves deletes its mark at the same revision.
    pub(crate) fn entries_ended_since(&self, revision: i64) -> BTreeSet<String> {
        let history = |member: &Member| {
            gateway::deletions(member.client, "grouplock/", revision)
                .ok()
                .filter(|it| !it.is_empty())
        };
        let deleted = self.members.iter().find_map(history).unwrap_or_default();
        let left = |key: &str, at: i64| deleted.contains(&(format!("{key}."), at));
        let entries = deleted
            .iter()
            .filter(|(key, at)| key.contains("/q/") && !key.ends_with('.') && !left(key, *at));
        entries.filter_map(|(key, _)| Some(key.rsplit_once('/')?.1.to_owned())).collect()
    }

    /// Waits until all members agree on a leader and writing works.
    pub(crate) fn await_health(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.statuses();
            let agreed = seen.iter().all(|status| {
                status.is_some_and(|status| {
                    status.leader != 0
                        && Some((status.leader, status.term))
                            == seen[0].map(|first| (first.leader, first.term))
                })
            });
            if agreed && self.members.iter().all(Member::writes) {
                return;
            }
            for member in &mut self.members {
                if let Some(status) = member.process.as_mut().and_then(|it| it.try_wait().ok()?) {
                    panic!("etcd ended with {status}:\n{}", member.last_words());
                }
            }
            assert!(Instant::now() < deadline, "the cluster does not become healthy: {seen:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills a member as a power failure would.
    pub(crate) fn kill(&mut self, member: usize) {
        self.members[member].end();
    }

    /// Starts a member that was killed, with the data it had.
    pub(crate) fn restart(&mut self, member: usize) {
        self.members[member].start();
    }

    /// Stops a member as if its machine had frozen.
    pub(crate) fn stop(&self, member: usize) {
        self.members[member].signal(Signal::SIGSTOP);
    }

    /// Lets a stopped member continue.
    pub(crate) fn go_on(&self, member: usize) {
        self.members[member].signal(Signal::SIGCONT);
    }

    /// The network, if this cluster has one that can be cut.
    pub(crate) fn network(&self) -> &Network {
        self.network.as_ref().expect("the cluster was started apart")
    }
}

impl Member {
    fn start(&mut self) {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.expect("the log can be written");
        let errors = log.try_clone().expect("a file can be shared");
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null()).stdout(log).stderr(errors);
        self.process = Some(command.spawn().expect("etcd can be started"));
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("the member runs");
        let pid = i32::try_from(process.id()).expect("a process number is small");
        kill(Pid::from_raw(pid), signal).expect("a child can be signalled");
    }

    fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended already.
            _ = process.kill();
            _ = process.wait();
        }
    }

    fn writes(&self) -> bool {
        let request = json!({ "key": "aGVhbHRo" });
        gateway::call(self.client, "/v3/kv/put", &request, Duration::from_secs(1)).is_ok()
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if std::thread::panicking() {
            _ = writeln!(std::io::stderr(), "etcd on {}:\n{}", self.client, self.last_words());
        }
        self.end();
    }
}
