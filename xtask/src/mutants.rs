//! `GroupLock` with one thing wrong: loom or shuttle must notice.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::run::{Program, root};
use crate::steps::finish;

/// One thing wrong: what, in which file of the default core, instead of what, and which tool notices.
struct Mutant {
    what: &'static str,
    file: &'static str,
    text: &'static str,
    instead: &'static str,
    tool: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "nobody is told that somebody waits",
        file: "locked.rs",
        text: "                    bits |= NOTIFY;",
        instead: "                    bits |= 0;",
        tool: "shuttle",
    },
    Mutant {
        what: "a future that was granted the room and is dropped keeps it",
        file: "mod.rs",
        text: "            self.give_back(if exclusive { ONE | EXCLUSIVE } else { ONE });\n        } else {",
        instead: "            let _ = exclusive;\n        } else {",
        tool: "shuttle",
    },
    Mutant {
        what: "the door is open while the name changes",
        file: "word.rs",
        text: "const DOOR: u32 = ASK | CHANGING |",
        instead: "const DOOR: u32 = ASK |",
        tool: "shuttle",
    },
    Mutant {
        what: "who declines an invitation counts as invited still",
        file: "queue.rs",
        text: "            phase.invited -= usize::from(waiter.invited);\n            waiter.invited = false;",
        instead: "            let _ = &waiter.invited;",
        tool: "shuttle",
    },
    Mutant {
        what: "entering is relaxed",
        file: "coming.rs",
        text: "let before = self.word.fetch_add(ONE, Acquire);",
        instead: "let before = self.word.fetch_add(ONE, Relaxed);",
        tool: "loom",
    },
    Mutant {
        what: "leaving is relaxed",
        file: "mod.rs",
        text: "if word::left_work(self.word.fetch_sub(count, Release)) {",
        instead: "if word::left_work(self.word.fetch_sub(count, Relaxed)) {",
        tool: "loom",
    },
];

/// Tries them all, in a copy of the sources.
pub(crate) fn run() -> ExitCode {
    finish(copy().and_then(|()| {
        let survivors: Vec<_> = MUTANTS
            .iter()
            .filter_map(|mutant| match notice(mutant) {
                Ok(true) => None,
                Ok(false) => Some(mutant.what.to_owned()),
                Err(reason) => Some(reason),
            })
            .collect();
        println!("mutants: {} of {} noticed", MUTANTS.len() - survivors.len(), MUTANTS.len());
        if survivors.is_empty() { Ok(()) } else { Err(survivors.join("; ")) }
    }))
}

const TREE: &str = "target/mutants/tree";

/// Copies what git knows.
fn copy() -> Result<(), String> {
    let listed = Command::new("git").arg("ls-files").current_dir(root()).output();
    let listed = listed.map_err(|reason| format!("git could not be started: {reason}"))?;
    for file in String::from_utf8_lossy(&listed.stdout).lines() {
        let to = root().join(TREE).join(file);
        let copied = fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))
            .and_then(|()| fs::copy(root().join(file), &to));
        copied.map_err(|reason| format!("`{file}` could not be copied: {reason}"))?;
    }
    Ok(())
}

/// Whether the tool notices the mutant.
fn notice(mutant: &Mutant) -> Result<bool, String> {
    let path = root().join(TREE).join("crates/grouplock/src/cores/phases").join(mutant.file);
    let told = |reason| format!("`{}`: {reason}", path.display());
    let right = fs::read_to_string(&path).map_err(told)?;
    if !right.contains(mutant.text) {
        return Err(format!("{}: `{}` does not have the text any more", mutant.what, mutant.file));
    }
    fs::write(&path, right.replacen(mutant.text, mutant.instead, 1)).map_err(told)?;
    let manifest = format!("{TREE}/Cargo.toml");
    let folder = format!("target/mutants/{}", mutant.tool);
    let test = |last: &str| {
        let test = ["test", "--release", "--manifest-path", &manifest, "--target-dir", &folder];
        Program::cargo(&test)
            .arguments(&["-p", "grouplock", "--test", mutant.tool])
            .arguments(if last.is_empty() { &[] } else { std::slice::from_ref(&last) })
            .variable("RUSTFLAGS", &format!("--cfg {}", mutant.tool))
    };
    let builds = test("--no-run").succeeds();
    let noticed = builds && !test("").succeeds();
    fs::write(&path, right).map_err(told)?;
    println!(
        "{:8} {}: {}",
        mutant.tool,
        mutant.what,
        if noticed { "noticed" } else { "NOT NOTICED" }
    );
    if builds { Ok(noticed) } else { Err(format!("{}: does not compile", mutant.what)) }
}
