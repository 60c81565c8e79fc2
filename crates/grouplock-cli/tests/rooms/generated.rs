//! Completions and manual pages.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use grouplock_testing::{current_test, skip};

use crate::place::{Place, told};

/// Whether a shell accepts a script. `None` if the shell is not installed.
fn accepts(shell: &str, check: &str, script: &str) -> Option<bool> {
    let mut child =
        Command::new(shell).arg(check).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    stdin.write_all(script.as_bytes()).ok()?;
    drop(stdin);
    Some(child.wait_with_output().ok()?.status.success())
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = place.said(&["completions", shell]);
        assert_eq!(code, 0);
        for word in ["run", "acquire", "doctor", "no-wait", "conflict-exit-code"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        match accepts(shell, "-n", &script) {
            Some(accepted) => assert!(accepted, "{shell} does not accept its completions"),
            None => skip(&current_test(), &format!("{shell} is not installed")),
        }
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let place = Place::new();
    let script = place.said(&["completions", "bash"]).1;
    let ask = format!(
        "{script}\nCOMP_WORDS=(grouplock run --conf); COMP_CWORD=2; _grouplock grouplock --conf run; \
         echo ${{COMPREPLY[@]}}"
    );
    let answer = told(Command::new("bash").args(["--norc", "-c", &ask]));
    assert_eq!(answer.1.trim(), "--conflict-exit-code");
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let place = Place::new();
    let (code, page, _) = place.said(&["man"]);
    assert_eq!(code, 0);
    assert!(page.contains(".TH grouplock 1"), "{page}");
    let directory = place.file("man");
    let out = directory.to_string_lossy().into_owned();
    let (code, _, trouble) = place.said(&["man", "--out", &out]);
    assert_eq!(code, 125, "the directory does not exist");
    assert!(trouble.contains(&out), "{trouble}");
    fs::create_dir(&directory).expect("it can be made");
    assert_eq!(place.said(&["man", "--out", &out]).0, 0);
    for (name, word) in
        [("grouplock", "run"), ("grouplock-run", "conflict"), ("grouplock-acquire", "duration")]
    {
        let page = fs::read_to_string(directory.join(format!("{name}.1"))).expect("it is there");
        assert!(page.contains(".TH") && page.contains(word), "{name}");
        for section in ["EXIT STATUS", "ENVIRONMENT", "EXAMPLES"] {
            assert!(page.contains(&format!(".SH \"{section}\"\n")), "{name}: {section}");
        }
    }
    let acquire = fs::read_to_string(directory.join("grouplock-acquire.1")).expect("it is there");
    assert!(acquire.contains("go on after its death are not protected"), "{acquire}");
    let lacks = |name: &str| {
        let page = fs::read_to_string(directory.join(format!("grouplock-{name}.1")));
        !page.expect("it is there").contains("EXIT STATUS")
    };
    let commands = ["status", "top", "release", "held", "remove", "doctor"];
    assert!(!commands.iter().any(|name| lacks(name)), "each has its exit codes");
}

#[test]
fn the_help_says_what_a_command_does_beyond_its_first_line() {
    let place = Place::new();
    let mut texts = vec![("path", "Creates the room")];
    if cfg!(feature = "top") {
        texts.push(("top", "page down"));
    }
    if cfg!(feature = "gbp") {
        texts.push(("serve", "begins with `ready:`"));
    }
    for (command, text) in texts {
        let (code, help, _) = place.said(&[command, "--help"]);
        assert_eq!(code, 0, "{command}");
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(text), "{help}");
    }
}
