//! `grouplock serve`: a member, as its user sees it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use grouplock_testing::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The configuration of the only member of a cluster.
fn config(scratch: &Scratch, port: u16) -> PathBuf {
    let path = scratch.join("node.toml");
    let text = format!(
        "id = 0\ndata = \"data\"\nstatus = \"127.0.0.1:0\"\n[cluster]\nname = \"one\"\n\
         members = [{{ address = \"127.0.0.1:{port}\" }}]\ncoterie = \"majority\"\n[tls]\nplaintext = true\n"
    );
    std::fs::write(&path, text).expect("a configuration");
    path
}

/// A member that ends with the test.
struct Member {
    child: Child,
    /// It stays open: a member prints more than one line if something is wrong.
    _output: BufReader<ChildStdout>,
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(config: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grouplock"));
    command.arg("serve").arg("--config").arg(config).args(more);
    command
}

fn run(config: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = serve(config, more).output().expect("it can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

/// A ready member, and its output. Tries other ports if another program takes the free one.
fn start(scratch: &Scratch) -> (Member, PathBuf, String) {
    for _ in 0..10 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let port = listener.local_addr().expect("it has one").port();
        drop(listener);
        let config = config(scratch, port);
        let mut child = serve(&config, &["--log", "debug"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it can be read");
        let member = Member { child, _output: output };
        if !line.is_empty() {
            return (member, config, line);
        }
    }
    panic!("no free port");
}

#[test]
fn a_member_runs_until_it_is_told_to_end() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let scratch = Scratch::new();
        let (mut member, config, line) = start(&scratch);
        assert!(line.starts_with("ready: member 0 of 1, listening on 127.0.0.1:"), "{line}");
        assert!(line.contains(", status on http://127.0.0.1:"), "{line}");
        let (code, _, stderr) = run(&config, &[]);
        assert_eq!(code, Some(125));
        assert!(stderr.contains("is used by another process"), "{stderr}");
        kill(Pid::from_raw(member.child.id().cast_signed()), signal).expect("it is our child");
        let deadline = Instant::now() + Duration::from_secs(30);
        let status = loop {
            if let Some(status) = member.child.try_wait().expect("it is our child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn a_configuration_is_checked_without_starting() {
    let scratch = Scratch::new();
    let config = config(&scratch, 7100);
    let (code, stdout, stderr) = run(&config, &["--check"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("is good: member 0 of 1"), "{stdout}");
    assert!(!scratch.join("data").exists(), "it has started");
    let text = std::fs::read_to_string(&config).expect("it is there");
    std::fs::write(&config, text.replace("majority", "plane")).expect("it can be written");
    let (code, stdout, stderr) = run(&config, &["--check"]);
    assert_eq!((code, stdout.as_str()), (Some(125), ""));
    for part in ["node.toml", "cluster.coterie", "`plane` with 1 members", "3, 7, 13, 21 or 31"] {
        assert!(stderr.contains(part), "{part} is missing in: {stderr}");
    }
    let (code, _, stderr) = run(&scratch.join("none.toml"), &[]);
    assert_eq!(code, Some(125));
    assert!(stderr.contains("none.toml"), "{stderr}");
}
