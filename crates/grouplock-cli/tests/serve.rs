//! `grouplock serve`: a member, as its user sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use grouplock_testing::{Running, Scratch, free_port, until};
use nix::sys::signal::Signal;

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

/// A ready member, its configuration, and its first line. Tries other ports if another program
/// takes the free one.
fn start(scratch: &Scratch) -> (Running, PathBuf, String) {
    for _ in 0..10 {
        let config = config(scratch, free_port());
        let mut command = serve(&config, &["--log", "debug"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut member = Running::start(command);
        let output = member.stdout();
        let ready = || output.text().contains('\n');
        until("it is ready or ends", || {
            ready() || member.0.try_wait().is_ok_and(|ended| ended.is_some())
        });
        if ready() {
            return (member, config, output.text());
        }
    }
    panic!("no free port");
}

#[test]
fn a_member_runs_until_it_must_end() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let scratch = Scratch::new();
        let (member, config, line) = start(&scratch);
        assert!(line.starts_with("ready: member 0 of 1, listening on 127.0.0.1:"), "{line}");
        assert!(line.contains(", status on http://127.0.0.1:"), "{line}");
        let (code, _, stderr) = run(&config, &[]);
        assert_eq!(code, Some(125));
        assert!(stderr.contains("is used by another process"), "{stderr}");
        member.send(signal);
        assert_eq!(member.code(), Some(0));
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
