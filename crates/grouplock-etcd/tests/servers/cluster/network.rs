//! Members on a network of their own, so that one member can be cut off.
//!
//! ```text
//!   the tests                   a namespace per member              the switch, a namespace as well
//!   gl7m0 198.18.7.1  ────────  client 198.18.7.2 | peer 10.0.0.1  ────────  port0 ┐
//!   gl7m1 198.18.7.5  ────────  client 198.18.7.6 | peer 10.0.0.2  ────────  port1 ├ bridge
//!   gl7m2 198.18.7.9  ────────  client 198.18.7.10 | peer 10.0.0.3 ────────  port2 ┘
//! ```
//!
//! The tests take the far end of a link down, so that packets vanish without an error. The
//! namespaces have no names. Each exists as long as a process in it. That process dies with the
//! thread that made it, so nothing is left even if the tests are killed.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grouplock_testing::LONG;

/// The prefix of a command that dies with the thread that started it.
pub(crate) const MORTAL: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

/// A namespace. A process that sleeps in it keeps it.
struct Namespace(Child);

impl Namespace {
    fn new() -> Result<Self, String> {
        let [program, arguments @ ..] = MORTAL;
        let mut command = Command::new(program);
        command.args(arguments).args(["unshare", "--net", "sleep", "infinity"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut namespace =
            Namespace(child.spawn().map_err(|error| format!("unshare does not start: {error}"))?);
        let ours = fs::read_link("/proc/self/ns/net").map_err(|error| error.to_string())?;
        let path = format!("/proc/{}/ns/net", namespace.0.id());
        let deadline = Instant::now() + LONG;
        loop {
            if fs::read_link(&path).is_ok_and(|theirs| theirs != ours) {
                return Ok(namespace);
            }
            if matches!(namespace.0.try_wait(), Ok(Some(_))) || Instant::now() > deadline {
                return Err("a network namespace cannot be made".to_owned());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The prefix of a command that runs in the namespace.
    fn enter(&self) -> Vec<String> {
        let target = self.0.id().to_string();
        ["nsenter", "--target", &target, "--net"].map(str::to_owned).to_vec()
    }

    fn ip(&self, words: &str) -> Result<(), String> {
        ip(&self.enter(), words)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It may be dead already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn ip(before: &[String], words: &str) -> Result<(), String> {
    let line: Vec<&str> =
        before.iter().map(String::as_str).chain(["ip"]).chain(words.split(' ')).collect();
    let output = Command::new(line[0]).args(&line[1..]).output();
    let output = output.map_err(|error| format!("`{}` does not start: {error}", line[0]))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`ip {words}`: {}", said.trim()))
}

/// The network of a cluster.
pub(crate) struct Network {
    number: u8,
    members: Vec<Namespace>,
    switch: Namespace,
}

impl Network {
    /// Makes a network with so many members. The error says why this machine does not allow it.
    pub(crate) fn new(members: u8) -> Result<Self, String> {
        let switch = Namespace::new()?;
        switch.ip("link add bridge type bridge forward_delay 0")?;
        switch.ip("link set bridge up")?;
        let number = Self::reserve()?;
        // From here on, the value cleans up if a step fails.
        let mut network = Network { number, members: Vec::new(), switch };
        for member in 0..members {
            network.add(member)?;
        }
        Ok(network)
    }

    /// Takes a number that no other network of this machine has. The name of an interface can exist
    /// only once, so the kernel decides.
    fn reserve() -> Result<u8, String> {
        let first = std::process::id() as u8;
        for step in 0..=u8::MAX {
            let number = first.wrapping_add(step);
            match ip(&[], &format!("link add gl{number}m0 type veth peer name gl{number}x")) {
                Err(reason) if reason.contains("File exists") => {}
                other => return other.map(|()| number),
            }
        }
        Err("all 256 networks are in use".to_owned())
    }

    fn add(&mut self, member: u8) -> Result<(), String> {
        let number = self.number;
        self.members.push(Namespace::new()?);
        let [.., namespace] = &self.members[..] else { unreachable!("one was just added") };
        let pid = namespace.0.id();
        let (near, far) = (4 * member + 1, 4 * member + 2);
        if member == 0 {
            ip(&[], &format!("link set gl{number}x netns {pid} name client"))?;
        } else {
            let link = format!("link add gl{number}m{member} type veth peer name client");
            ip(&[], &format!("{link} netns {pid}"))?;
        }
        ip(&[], &format!("addr add 198.18.{number}.{near}/30 dev gl{number}m{member}"))?;
        ip(&[], &format!("link set gl{number}m{member} up"))?;
        namespace.ip(&format!("addr add 198.18.{number}.{far}/30 dev client"))?;
        namespace.ip("link set client up")?;
        namespace.ip("link set lo up")?;
        let link = format!("link add port{member} type veth peer name peer netns {pid}");
        self.switch.ip(&link)?;
        self.switch.ip(&format!("link set port{member} master bridge up"))?;
        namespace.ip(&format!("addr add 10.0.0.{}/24 dev peer", member + 1))?;
        namespace.ip("link set peer up")
    }

    /// The address of a member for the tests.
    pub(crate) fn client(&self, member: u8) -> SocketAddr {
        ([198, 18, self.number, 4 * member + 2], 2379).into()
    }

    /// The address of a member for the other members.
    pub(crate) fn peer(member: u8) -> SocketAddr {
        ([10, 0, 0, member + 1], 2380).into()
    }

    /// The prefix of a command that runs as this member.
    pub(crate) fn enter(&self, member: usize) -> Vec<String> {
        self.members[member].enter()
    }

    /// Takes the link between a member and the others down, or up again.
    pub(crate) fn link_to_members(&self, member: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        self.switch.ip(&format!("link set port{member} {state}")).expect("the link can be set");
    }

    /// Takes the link between a member and the tests down, or up again.
    pub(crate) fn link_to_clients(&self, member: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        self.members[member].ip(&format!("link set client {state}")).expect("the link can be set");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The kernel would also do this, some time after the namespaces have ended.
        for member in 0..self.members.len().max(1) {
            _ = ip(&[], &format!("link del gl{}m{member}", self.number));
        }
    }
}
