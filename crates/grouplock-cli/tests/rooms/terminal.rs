//! On a terminal: the waiting line, Ctrl-C, Ctrl-Z, `top`.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use grouplock_testing::{Heard, Running, until, until_else};
use nix::libc;
use nix::pty::{Winsize, openpty};

use crate::place::{Place, children, line_of, state};

/// A terminal with a process on it.
struct Screen {
    keyboard: File,
    shown: Heard,
    process: Running,
}

impl Screen {
    fn start(command: Command) -> Self {
        Self::with_columns(command, 80)
    }

    fn with_columns(mut command: Command, columns: u16) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("there are terminals");
        let side = |fd: &OwnedFd| File::from(fd.try_clone().expect("there are descriptors"));
        command.stdin(side(&pty.slave)).stdout(side(&pty.slave)).stderr(side(&pty.slave));
        command.env("TERM", "xterm");
        let terminal = pty.slave.as_raw_fd();
        let own_terminal = move || {
            nix::unistd::setsid()?;
            // SAFETY: the descriptor is the terminal, inherited from the parent.
            let owned = unsafe { libc::ioctl(terminal, libc::TIOCSCTTY, 0) };
            nix::errno::Errno::result(owned)?;
            Ok(())
        };
        grouplock_testing::with_default_signals(&mut command);
        // SAFETY: it makes two system calls, and touches no memory of the parent.
        unsafe { command.pre_exec(own_terminal) };
        let process = Running::start(command);
        drop(pty.slave);
        let shown = Heard::listen(side(&pty.master));
        Screen { keyboard: File::from(pty.master), shown, process }
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    fn until_shows(&self, what: &str) {
        self.shown.until_says(what);
    }
}

/// An interactive shell. `grouplock run` runs as its jobs.
fn shell(place: &Place) -> Screen {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-i"]).env("PS1", "ready> ").env("HISTFILE", "/dev/null");
    bash.env("GROUPLOCK_AT", place.rooms()).env("G", env!("CARGO_BIN_EXE_grouplock"));
    let screen = Screen::start(bash);
    screen.until_shows("ready> ");
    screen
}

#[test]
fn a_waiting_program_shows_its_wait_and_the_holders() {
    let place = Place::new();
    let holder = place.occupy("db", "backup");
    let screen = Screen::start(place.grouplock(&["run", "db", "migration", "-c", "echo done"]));
    let pid = holder.pid();
    screen.until_shows("for migration in db, next; inside: backup (");
    screen.until_shows(&format!(" {pid}, "));
    // The line is rewritten in place, and its age grows.
    screen.until_shows("waiting 1.");
    let text = screen.shown.text();
    assert!(text.contains("\r\u{1b}[Kwaiting ") && !text.contains('\n'), "{text:?}");
    for line in text.split("\r\u{1b}[K") {
        assert!(line.chars().count() < 80, "{line:?}");
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM)
        .expect("it is there");
    screen.until_shows("\r\u{1b}[Kdone");
    assert_eq!(screen.process.code(), Some(0));
}

#[test]
fn a_terminal_that_does_not_know_its_width_shows_the_line_and_wide_characters_fit() {
    let place = Place::new();
    let _holder = place.occupy("db", "backup");
    let screen =
        Screen::with_columns(place.grouplock(&["run", "db", "migration", "--", "true"]), 0);
    screen.until_shows("for migration in db, next; inside: backup (");
    let wide = "数据库".repeat(20);
    let screen = Screen::with_columns(place.grouplock(&["run", "db", &wide, "--", "true"]), 40);
    screen.until_shows("数据库");
    for line in screen.shown.text().split("\r\u{1b}[K") {
        let columns: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
        assert!(columns < 40, "{line:?}");
    }
}

#[test]
fn quiet_is_quiet_on_a_terminal_too() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    let screen =
        Screen::start(place.grouplock(&["run", "-q", "-w", "0.8", "r", "b", "--", "true"]));
    assert_eq!(screen.process.code(), Some(124));
    assert_eq!(screen.shown.to_end(), "");
}

#[test]
fn control_c_reaches_the_command_once() {
    let place = Place::new();
    let (ready, got) = (place.file("ready"), place.file("got"));
    let script = format!(
        "trap 'echo INT >> \"{got}\"' INT; echo > '{ready}'; \
         for i in $(seq 600); do [ -e '{got}' ] && break; sleep 0.1; done; sleep 0.3; exit 9",
        got = got.display(),
        ready = ready.display()
    );
    let mut screen = shell(&place);
    screen.type_in(&format!(
        "$G run r s -- sh -c '{}'; echo code=$?\n",
        script.replace('\'', "'\\''")
    ));
    until("the trap is set", || ready.exists());
    screen.type_in("\u{3}");
    screen.until_shows("code=9");
    assert_eq!(std::fs::read_to_string(&got).expect("it came"), "INT\n");
    screen.type_in("$G run r s -c 'echo ru''ns; exec sleep 100'\n");
    screen.until_shows("runs");
    screen.type_in("\u{3}");
    screen.type_in("echo code=$?\n");
    screen.until_shows("code=130");
}

#[test]
fn control_c_ends_a_loop() {
    let place = Place::new();
    let mut screen = shell(&place);
    screen.type_in("for i in 1 2 3; do $G run r s -c 'echo ro''und '$i'; exec sleep 100'; done\n");
    screen.until_shows("round 1");
    screen.type_in("\u{3}");
    screen.type_in("echo o''ver\n");
    screen.until_shows("over");
    assert!(!screen.shown.text().contains("round 2"), "{}", screen.shown.text());
}

#[test]
fn control_c_ends_the_wait() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    let mut screen = shell(&place);
    screen.type_in("$G run r b -- true\n");
    until("it waits", || place.waiters("r") == 1);
    screen.type_in("\u{3}");
    screen.type_in("echo code=$?\n");
    screen.until_shows("code=130");
    assert_eq!(place.waiters("r"), 0);
}

#[test]
fn control_z_stops_both_and_fg_continues_both() {
    let place = Place::new();
    let pid = place.file("pid");
    let mut screen = shell(&place);
    let script = format!("echo $$ > {}; exec sleep 100", pid.display());
    screen.type_in(&format!("$G run r s -c '{script}'\n"));
    let command: i32 = line_of(&pid).parse().expect("a number");
    let ours = children(screen.process.pid())[0];
    screen.type_in("\u{1a}");
    screen.until_shows("Stopped");
    until("both are stopped", || (state(command), state(ours)) == (Some('T'), Some('T')));
    screen.type_in("jobs\n");
    // A stopped holder still holds.
    assert_eq!(place.said(&["run", "-n", "r", "other", "--", "true"]).0, 124);
    screen.type_in("fg\n");
    until("both go on", || (state(command), state(ours)) == (Some('S'), Some('S')));
    // A second time, as the first time could have changed something.
    screen.type_in("\u{1a}");
    until("both are stopped", || (state(command), state(ours)) == (Some('T'), Some('T')));
    screen.type_in("bg\n");
    until("both go on", || (state(command), state(ours)) == (Some('S'), Some('S')));
    screen.type_in("kill %1; wait; echo ov''er\n");
    screen.until_shows("over");
    assert!(place.is_empty("r"));
}

#[test]
fn a_waiter_that_is_stopped_is_not_admitted() {
    for command in ["run -v r b -- true", "enter -v --fd 9 r b", "acquire -v r b"] {
        let place = Place::new();
        let holder = place.occupy("r", "a");
        let mut screen = shell(&place);
        let file = place.rooms().join("r.room");
        screen.type_in(&format!("exec 9<>'{}'; $G {command}\n", file.display()));
        until("it waits", || place.waiters("r") == 1);
        let ours = children(screen.process.pid())[0];
        for _ in 0..2 {
            screen.type_in("\u{1a}");
            until("it is stopped", || state(ours) == Some('T'));
            assert_eq!(place.waiters("r"), 0, "{command}: it has withdrawn first");
            screen.type_in("fg\n");
            until("it waits again", || place.waiters("r") == 1);
        }
        screen.type_in("\u{1a}");
        until("it is stopped", || state(ours) == Some('T'));
        drop(holder);
        assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "c", "--", "true"]).0, 0);
        assert!(!screen.shown.text().contains("inside r: b"), "{command}");
        screen.type_in("fg\n");
        screen.until_shows("inside r: b");
    }
}

#[test]
fn a_background_job_that_reads_the_terminal_stops_as_the_shell_expects() {
    let place = Place::new();
    let mut screen = shell(&place);
    screen.type_in("$G run r s -- sh -c 'read line; echo got $line' &\n");
    until("it runs", || !place.is_empty("r"));
    let ours = children(screen.process.pid())[0];
    until("it is stopped", || state(ours) == Some('T'));
    screen.type_in("fg\n");
    until("it goes on", || state(ours) == Some('S'));
    screen.type_in("a line\n");
    screen.until_shows("got a line");
}

#[test]
fn a_program_that_suspends_itself_suspends_the_job() {
    let place = Place::new();
    let mut screen = shell(&place);
    screen.type_in("$G run r s -c 'kill -TSTP $$; echo back again'\n");
    screen.until_shows("Stopped");
    screen.type_in("fg\n");
    screen.until_shows("\nback again");
}

/// The text on a screen of 24 lines after all output: enough of a terminal for `top`.
fn picture(written: &str) -> String {
    let mut screen = vec![[' '; 80]; 24];
    let (mut row, mut column) = (0, 0);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            if let Some(cell) = screen.get_mut(row).and_then(|line| line.get_mut(column)) {
                *cell = c;
            }
            column += 1;
            continue;
        }
        // The program sends only sequences of the form ESC [ numbers letter.
        let parameters = control_sequence(&mut rest);
        if let Some(place) = parameters.strip_suffix('H') {
            let mut numbers = place.split(';').map(|number| number.parse().unwrap_or(1_usize));
            row = numbers.next().unwrap_or(1) - 1;
            column = numbers.next().unwrap_or(1) - 1;
        } else if parameters == "2J" {
            screen.fill([' '; 80]);
        }
    }
    screen.iter().map(|line| line.iter().collect::<String>() + "\n").collect()
}

/// The parameters and the letter of a control sequence, after its ESC.
fn control_sequence(rest: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    for c in rest.skip(1) {
        text.push(c);
        if c.is_ascii_alphabetic() {
            break;
        }
    }
    text
}

/// Waits for a screen that contains this text.
fn shows(screen: &Screen, what: &str) {
    let picture = || picture(&screen.shown.text());
    until_else(|| picture().contains(what), || format!("{what} in\n{}", picture()));
}

#[test]
fn top_shows_rooms_in_use_first_and_scrolls_and_stops() {
    let place = Place::new();
    for room in ["aa", "bb"] {
        assert_eq!(place.said(&["run", room, "s", "--", "true"]).0, 0);
    }
    let _first = place.occupy("zz", "busy");
    let crowd: Vec<Running> = (0..20)
        .map(|number| {
            let session = format!("session {number:02}");
            Running::start(place.grouplock(&["run", "zz", &session, "--", "true"]))
        })
        .collect();
    until("all wait", || place.waiters("zz") == crowd.len());
    let mut screen = shell(&place);
    screen.type_in("$G top -i 0.1\n");
    shows(&screen, "> zz ");
    shows(&screen, "inside: busy");
    shows(&screen, "PgDn for more");
    for _ in 0..10 {
        screen.type_in("\u{1b}[6~");
    }
    shows(&screen, "waiting 20: ");
    for _ in 0..10 {
        screen.type_in("\u{1b}[5~");
    }
    shows(&screen, "inside: busy");
    let top = children(screen.process.pid())[0];
    screen.type_in("\u{1a}");
    until("it is stopped", || state(top) == Some('T'));
    screen.type_in("fg\n");
    until("it goes on", || state(top) != Some('T'));
    screen.type_in("q");
    until("it has ended", || state(top).is_none());
}

#[test]
fn top_is_a_live_picture_with_keys() {
    let place = Place::new();
    let _first = place.occupy("alpha", "one");
    let mut screen = Screen::start(place.grouplock(&["top", "-i", "0.1"]));
    shows(&screen, "inside: one");
    let _second = place.occupy("beta", "two");
    shows(&screen, "  beta         two");
    shows(&screen, "> alpha        one");
    screen.type_in("\u{1b}[B");
    shows(&screen, "inside: two");
    screen.type_in("\u{1b}[A");
    shows(&screen, "inside: one");
    screen.type_in("q");
    assert_eq!(screen.process.code(), Some(0));
}

#[test]
fn top_fits_a_terminal_of_many_columns() {
    let place = Place::new();
    // Columns times lines do not fit into sixteen bits.
    let mut screen = Screen::with_columns(place.grouplock(&["top"]), 3000);
    screen.until_shows("no rooms yet");
    screen.type_in("q");
    assert_eq!(screen.process.code(), Some(0));
}
