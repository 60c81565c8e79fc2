//! Rooms on a GBP cluster, as users of the program see them: `grouplock serve` runs three members,
//! and every other command is a separate process.

#[path = "rooms/place.rs"]
#[allow(dead_code, reason = "the other tests need the rest")]
mod place;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use grouplock_testing::{Running, free_port, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use place::{Place, line_of, told};
use serde_json::Value;

/// A cluster of three members, and a directory for the output of the tests.
struct Cluster {
    place: Place,
    at: String,
    members: Vec<Option<Child>>,
}

impl Cluster {
    fn start() -> Self {
        // Another program may take a port before the member listens on it. Then all starts again.
        (0..5).find_map(|_| Self::try_start()).expect("three members start")
    }

    fn try_start() -> Option<Self> {
        let place = Place::new();
        let ports: [u16; 3] = std::array::from_fn(|_| free_port());
        let mut list = String::new();
        for port in &ports {
            _ = writeln!(list, "  {{ address = \"127.0.0.1:{port}\" }},");
        }
        for id in 0..3 {
            let text = format!(
                "id = {id}\ndata = \"data-{id}\"\n\n[cluster]\nname = \"test\"\n\
                 members = [\n{list}]\ncoterie = \"plane\"\npolicy = \"fifo\"\nlease = \"4s\"\n\
                 retry = \"200ms\"\n\n[tls]\nplaintext = true\n"
            );
            fs::write(place.file(&format!("{id}.toml")), text).expect("it can be written");
        }
        let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let at = format!("gbp://{}", hosts.join(","));
        let mut cluster = Cluster { place, at, members: vec![None, None, None] };
        (0..3).all(|id| cluster.launch(id)).then_some(cluster)
    }

    fn launch(&mut self, id: usize) -> bool {
        let config = self.place.file(&format!("{id}.toml"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_grouplock"));
        command.args(["serve", "--log", "warn", "--config"]).arg(config);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the program starts");
        let mut line = String::new();
        let said = child.stdout.take().map(|said| BufReader::new(said).read_line(&mut line));
        self.members[id] = Some(child);
        said.is_some_and(|read| read.is_ok()) && line.starts_with("ready: ")
    }

    fn kill(&mut self, id: usize) {
        if let Some(mut child) = self.members[id].take() {
            _ = child.kill();
            _ = child.wait();
        }
    }

    fn signal(&self, id: usize, signal: Signal) {
        let child = self.members[id].as_ref().expect("it runs");
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it is our child");
    }

    fn grouplock(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.grouplock(arguments);
        command.env("GROUPLOCK_AT", &self.at);
        command
    }

    fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&mut self.grouplock(arguments))
    }

    fn status(&self, room: &str) -> Value {
        let (code, text, trouble) = self.said(&["status", "--json", room]);
        assert_eq!(code, 0, "{trouble}");
        serde_json::from_str(&text).expect("it is JSON")
    }

    fn waiters(&self, room: &str) -> usize {
        self.status(room)["waiting"].as_array().map_or(0, Vec::len)
    }

    /// A holder that stays until it is ended.
    fn occupy(&self, room: &str, session: &str) -> Running {
        let mark = self.place.file(&format!("inside-{room}-{session}"));
        let script = format!("echo > '{}'; exec sleep 1000", mark.display());
        let running = Running::start(self.grouplock(&["run", "-q", room, session, "-c", &script]));
        until("somebody is inside", || mark.exists());
        running
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..3).for_each(|id| self.kill(id));
    }
}

/// The home of a session in a cluster of three members.
fn home(session: &str) -> usize {
    grouplock_quorum::home(session, 3).index()
}

/// A session with this home.
fn session_at(member: usize) -> String {
    let names = (0..).map(|n| format!("session-{n}"));
    names.into_iter().find(|name| home(name) == member).expect("names do not run out")
}

#[test]
fn a_set_up_is_refused_at_once_and_a_death_needs_no_repair() {
    let cluster = Cluster::start();
    let holder = cluster.occupy("build", "release");
    for option in ["--setup", "--teardown"] {
        // It is refused before the wait, and the command does not run.
        for session in ["debug", "release"] {
            let run = ["run", "-w", "1s", option, "true", "build", session, "--", "echo", "ran"];
            let (code, said, trouble) = cluster.said(&run);
            assert_eq!((code, said.as_str()), (125, ""), "{option} {session}: {trouble}");
            assert!(
                trouble.contains("gbp rooms cannot do this: set-up and tear-down"),
                "{trouble}"
            );
        }
    }
    holder.send(Signal::SIGKILL);
    // A death is reported once, so there is nothing to acknowledge.
    let run = ["run", "--repaired", "build", "debug", "-c", "echo $GROUPLOCK_RECOVERED_SESSION"];
    let (code, said, trouble) = cluster.said(&run);
    assert_eq!((code, said.as_str()), (0, "release\n"), "{trouble}");
    let (code, _, trouble) = cluster.said(&["remove", "build"]);
    assert_eq!(code, 125, "{trouble}");
    assert!(trouble.contains("gbp rooms cannot do this: removing a room"), "{trouble}");
}

#[test]
fn commands_share_a_session_and_exclude_others() {
    let cluster = Cluster::start();
    let (code, said, trouble) = cluster.said(&[
        "run",
        "build",
        "release",
        "-c",
        "echo $GROUPLOCK_SESSION $GROUPLOCK_EPOCH",
    ]);
    assert_eq!((code, said.as_str()), (0, "release 1\n"), "{trouble}");
    let holder = cluster.occupy("build", "release");
    assert_eq!(cluster.said(&["run", "-n", "build", "release", "--", "true"]).0, 0);
    let (code, _, trouble) = cluster.said(&["run", "-n", "build", "debug", "--", "true"]);
    assert_eq!(code, 124, "{trouble}");
    assert!(trouble.contains("occupied by the session `release`"), "{trouble}");
    let (code, _, trouble) = cluster.said(&["run", "-w", "300ms", "build", "debug", "--", "true"]);
    assert_eq!(code, 124, "{trouble}");
    let waiter = Running::start(cluster.grouplock(&["run", "build", "debug", "--", "true"]));
    until("somebody waits", || cluster.waiters("build") == 1);
    let (_, shown, _) = cluster.said(&["status"]);
    for text in ["build  policy fifo", "inside: release", "waiting: debug", "sleep 1000"] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    let status = cluster.status("build");
    assert_eq!(status["exact"], true, "{status}");
    assert_eq!(status["unanswered"], Value::Array(Vec::new()));
    holder.send(Signal::SIGTERM);
    assert_eq!(holder.code(), Some(143));
    assert_eq!(waiter.code(), Some(0));
    let status = cluster.status("build");
    assert!(status["inside"].is_null(), "{status}");
    let past: Vec<_> = status["recent"].as_array().expect("a list").iter().collect();
    assert_eq!(past.last().expect("phases are remembered")["session"], "debug", "{status}");
}

#[test]
fn what_is_acquired_is_held_until_it_is_released() {
    let cluster = Cluster::start();
    let (code, token, trouble) = cluster.said(&["acquire", "r", "a"]);
    assert_eq!(code, 0, "{trouble}");
    assert_eq!(cluster.said(&["run", "-n", "r", "b", "--", "true"]).0, 124);
    let (code, _, trouble) = cluster.said(&["release", token.trim_end()]);
    assert_eq!(code, 0, "{trouble}");
    assert_eq!(cluster.said(&["run", "-n", "r", "b", "--", "true"]).0, 0);
    assert_eq!(cluster.said(&["release", token.trim_end()]).0, 123);
}

#[test]
fn a_member_that_is_down_is_named_and_the_others_go_on() {
    let mut cluster = Cluster::start();
    let (down, address) = (0, cluster.at.strip_prefix("gbp://").expect("gbp").to_owned());
    let address = address.split(',').next().expect("three hosts").to_owned();
    assert_eq!(cluster.said(&["run", "r", "a", "--", "true"]).0, 0);
    cluster.kill(down);
    let status = cluster.status("r");
    assert_eq!(status["unanswered"], serde_json::json!([format!("member 0 ({address})")]));
    assert_eq!(status["exact"], false);
    let (_, shown, _) = cluster.said(&["status", "r"]);
    assert!(shown.contains(&format!("no answer from member 0 ({address})")), "{shown}");
    let lost = session_at(down);
    let (code, _, trouble) = cluster.said(&["run", "-n", "r", &lost, "--", "true"]);
    assert_eq!(code, 0, "another member stands in for its home: {trouble}");
    assert_eq!(cluster.said(&["run", "-w", "10", "r", &session_at(1), "--", "true"]).0, 0);
    // A request that waits for a home is admitted when the home comes back.
    let waiter = Running::start(cluster.grouplock(&["run", "r", &lost, "--", "true"]));
    // Mostly it has reached no member yet. Nothing depends on that: it is admitted in both cases.
    std::thread::sleep(Duration::from_millis(300));
    assert!(cluster.launch(down), "it starts again");
    assert_eq!(waiter.code(), Some(0));
}

/// Writes the time to a file again and again, and ignores requests to end.
fn stubborn(file: &str) -> String {
    format!("trap '' TERM; while :; do cat /proc/uptime >> '{file}'; sleep 0.02; done")
}

/// The last time that [`stubborn`] wrote to a file. A kill may have cut off the last line.
fn last_in(file: &Path) -> f64 {
    let text = fs::read_to_string(file).expect("it can be read");
    let whole = text.rsplit_once('\n').expect("it has a line").0;
    time_in(whole.lines().last().expect("it has a line"))
}

/// The first number in a text.
fn time_in(text: &str) -> f64 {
    text.split(' ').next().and_then(|time| time.parse().ok()).expect("the time since the start")
}

#[test]
fn when_the_home_falls_silent_the_command_ends_before_others_enter() {
    let cluster = Cluster::start();
    let session = session_at(1);
    let file = cluster.place.file("beat");
    let script = stubborn(&file.to_string_lossy());
    let run = Running::start(cluster.grouplock(&["run", "r", &session, "-c", &script]));
    line_of(&file);
    cluster.signal(1, Signal::SIGSTOP);
    assert_eq!(run.code(), Some(123), "the place was lost");
    let last = last_in(&file);
    cluster.signal(1, Signal::SIGCONT);
    // It has another home, and needs the vote that the lost holding had.
    let (code, entered, trouble) =
        cluster.said(&["run", "-w", "30", "r", &session_at(0), "--", "cat", "/proc/uptime"]);
    assert_eq!(code, 0, "{trouble}");
    assert!(last < time_in(&entered), "{last} and then {entered}");
    // It was killed, so it does not write any more.
    std::thread::sleep(Duration::from_millis(100));
    assert!((last_in(&file) - last).abs() < f64::EPSILON);
}

#[test]
fn when_run_is_killed_the_command_dies_before_others_enter() {
    let cluster = Cluster::start();
    let file = cluster.place.file("beat");
    let script = stubborn(&file.to_string_lossy());
    let run = Running::start(cluster.grouplock(&["run", "r", "a", "-c", &script]));
    line_of(&file);
    run.send(Signal::SIGKILL);
    let (code, entered, trouble) =
        cluster.said(&["run", "-w", "30", "r", "b", "--", "cat", "/proc/uptime"]);
    assert_eq!(code, 0, "{trouble}");
    let last = last_in(&file);
    assert!(last < time_in(&entered), "{last} and then {entered}");
}

#[test]
fn what_cannot_be_reached_is_named_with_why() {
    let place = Place::new();
    for (at, expected) in [
        ("gbp://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
        ("gbp://127.0.0.1:1?cert=/c.pem", "cacert, cert and key belong together"),
        ("gbp://127.0.0.1:1/path", "there are no paths in a cluster"),
    ] {
        let mut command = place.grouplock(&["run", "--at", at, "r", "s", "--", "true"]);
        let (code, _, trouble) = told(&mut command);
        assert_eq!(code, 125, "{trouble}");
        assert!(trouble.contains(expected), "{expected} in {trouble}");
    }
}
