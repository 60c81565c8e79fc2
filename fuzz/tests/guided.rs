//! The program `guided` without libFuzzer: it reads findings again, and refuses bad arguments.

use std::fs;
use std::process::{Command, Output};

use grouplock_fuzz::{TARGETS, named};
use grouplock_testing::Scratch;

fn guided(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_guided")).args(arguments).output().expect("it can be started")
}

/// Its message when it refuses.
fn refused(arguments: &[&str]) -> String {
    let ended = guided(arguments);
    assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(ended.stderr).expect("text")
}

#[test]
fn each_target_reads_its_files_again() {
    let scratch = Scratch::new();
    let listed = String::from_utf8(guided(&["--targets"]).stdout).expect("text");
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        TARGETS.map(|(name, _)| format!("target {name}"))
    );
    for (name, _) in TARGETS {
        let (right, other) = (scratch.join("right"), scratch.join("other"));
        fs::write(&right, named(name).right()).expect("it can be written");
        fs::write(&other, "other").expect("as above");
        let files = [&right, &other].map(|path| path.to_str().expect("text"));
        let ended = guided(&[name, files[0], files[1]]);
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.success() && said.contains("other: 5 bytes\nnothing was found"),
            "{said}"
        );
    }
}

#[test]
fn bad_arguments_are_named() {
    let scratch = Scratch::new();
    let (folder, file) = (scratch.text(), scratch.join("file"));
    fs::write(&file, "").expect("it can be written");
    let file = file.to_str().expect("text");
    assert!(refused(&[]).contains("a target is missing"));
    assert!(refused(&["frame", file]).contains("no target `frame`; there are frames, log,"));
    assert!(
        refused(&["frames"]).contains("a file to read or a directory to search with is missing")
    );
    assert!(refused(&["frames", "/no/file"]).contains("`/no/file` is not there"));
    assert!(refused(&["frames", file, folder]).contains("is a directory: it goes alone"));
    assert!(refused(&["--targets", "frames"]).contains("`frames` is one argument too many"));
    // These need libFuzzer.
    for arguments in [&["frames", folder][..], &["frames", "-runs=1", file]] {
        assert!(refused(arguments).contains("built without libFuzzer"));
    }
}
