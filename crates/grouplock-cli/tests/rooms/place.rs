//! A directory for the rooms of one test, and the commands of the test.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any operation on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A directory that the test removes at its end.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: it only matters that each number is used once.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("grouplock-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a directory for the test can be made");
        Place { path }
    }

    /// The directory of the rooms.
    pub(crate) fn rooms(&self) -> PathBuf {
        self.path.join("rooms")
    }

    /// A file for the output of a command.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The program with these arguments, and the rooms of this place.
    pub(crate) fn grouplock(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_grouplock"));
        command.args(arguments);
        command
    }

    /// Any program, with the rooms of this place.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).env("GROUPLOCK_AT", self.rooms());
        for variable in ["ROOM", "SESSION", "EPOCH", "HOLDER", "HELD", "RECOVERED"] {
            command.env_remove(format!("GROUPLOCK_{variable}"));
        }
        grouplock_testing::with_default_signals(&mut command);
        command
    }

    /// Runs it to its end: its exit code, stdout and stderr.
    pub(crate) fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&mut self.grouplock(arguments))
    }

    /// A script for sh(1) that finds the program as `$G`, and the rooms of this place.
    pub(crate) fn script(&self, text: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", text]).env("G", env!("CARGO_BIN_EXE_grouplock"));
        command
    }

    /// A holder that stays until it is ended. Returns when it is inside.
    pub(crate) fn occupy(&self, room: &str, session: &str) -> Running {
        let mark = self.file(&format!("inside-{room}-{session}-{}", unique()));
        let script = format!("echo > '{}'; exec sleep 1000", mark.display());
        let running = Running::start(self.grouplock(&["run", "-q", room, session, "-c", &script]));
        until("somebody is inside", || mark.exists());
        running
    }

    /// The room in the output of `status --json`.
    pub(crate) fn status(&self, room: &str) -> Value {
        let (code, text, trouble) = self.said(&["status", "--json", room]);
        assert_eq!(code, 0, "{trouble}");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// The number of waiters.
    pub(crate) fn waiters(&self, room: &str) -> usize {
        let status = self.status(room);
        let phases = status["waiting"].as_array().expect("a list");
        phases.iter().map(|phase| phase["members"].as_array().map_or(0, Vec::len)).sum()
    }

    /// Whether the room has no holder and no waiter. A room that does not exist is empty.
    pub(crate) fn is_empty(&self, room: &str) -> bool {
        let (code, text, trouble) = self.said(&["status", room]);
        assert!(code == 0 || trouble.contains("there is no room"), "{trouble}");
        !text.contains("  inside: ") && !text.contains("  waiting: ")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // After a failed test, its processes may still write to the directory.
        _ = fs::remove_dir_all(&self.path);
    }
}

/// A process that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Running(command.spawn().expect("the program starts"))
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a process number is small")
    }

    pub(crate) fn send(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal)
            .expect("it can be sent");
    }

    /// Its stdout, which must be piped.
    pub(crate) fn stdout(&mut self) -> Heard {
        Heard::listen(self.0.stdout.take().expect("it is piped"))
    }

    /// Its stderr, which must be piped.
    pub(crate) fn stderr(&mut self) -> Heard {
        Heard::listen(self.0.stderr.take().expect("it is piped"))
    }

    /// Waits until it ends. Returns its status.
    pub(crate) fn ending(mut self) -> ExitStatus {
        let mut ending = None;
        until("the program ends", || {
            ending = self.0.try_wait().expect("it is our child");
            ending.is_some()
        });
        ending.expect("it has ended")
    }

    /// Waits until it ends. Returns its exit code, or 128 + n if signal n has ended it, as in
    /// shells.
    pub(crate) fn code(self) -> Option<i32> {
        let ending = self.ending();
        ending.code().or_else(|| ending.signal().map(|signal| 128 + signal))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// The output of a pipe or a terminal, as it arrives.
pub(crate) struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Heard {
    pub(crate) fn listen(mut source: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let listener = std::thread::spawn(move || {
            let mut some = [0; 4096];
            // Reading from a terminal whose process has ended is an error.
            while let Ok(count @ 1..) = source.read(&mut some) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend(&some[..count]);
            }
        });
        Heard { bytes, listener }
    }

    /// The output so far.
    pub(crate) fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the output has this text.
    pub(crate) fn until_says(&self, what: &str) {
        until_else(|| self.text().contains(what), || format!("{what:?} in {:?}", self.text()));
    }

    /// All output, when no process can write any more.
    pub(crate) fn to_end(&self) -> String {
        until_else(|| self.listener.is_finished(), || format!("the end of {:?}", self.text()));
        self.text()
    }
}

/// Runs a command to its end: its exit code (128 + n if signal n has ended it), stdout and stderr.
pub(crate) fn told(command: &mut Command) -> (i32, String, String) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("the program starts"));
    let (text, trouble) = (running.stdout(), running.stderr());
    let (text, trouble) = (text.to_end(), trouble.to_end());
    (running.code().unwrap_or(-1), text, trouble)
}

/// Copies a program in another process. If this process had the copy open for writing, a child of
/// another test could inherit the descriptor, and a file that is open for writing cannot be run.
pub(crate) fn install(program: &Path, to: &Path) {
    let (code, _, trouble) = told(Command::new("cp").arg(program).arg(to));
    assert_eq!(code, 0, "{trouble}");
}

/// Waits until a condition is true.
pub(crate) fn until(what: &str, true_now: impl FnMut() -> bool) {
    until_else(true_now, || what.to_owned());
}

/// Waits until a condition is true. Says after a failure what it waited for.
pub(crate) fn until_else(mut true_now: impl FnMut() -> bool, what: impl Fn() -> String) {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !true_now() {
        assert!(start.elapsed() < LONG, "it never came: {}", what());
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Waits until a command has written a whole line to a file.
pub(crate) fn line_of(file: &Path) -> String {
    let mut text = String::new();
    until(&format!("{} has a line", file.display()), || {
        text = fs::read_to_string(file).unwrap_or_default();
        text.ends_with('\n')
    });
    text.trim_end().to_owned()
}

/// A number that no other test of this run has.
pub(crate) fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: it only matters that each number is used once.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The state letter of a process, as in ps(1). `None` if the process does not exist or is a zombie.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (state != 'Z' && state != 'X').then_some(state)
}

/// The live processes that satisfy a condition.
pub(crate) fn processes(mut wanted: impl FnMut(i32) -> bool) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state(*pid).is_some() && wanted(*pid)).collect()
}

/// The live children of a process.
pub(crate) fn children(parent: i32) -> Vec<i32> {
    processes(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(1) == Some(&parent.to_string())
    })
}

/// The live processes with this text among their arguments.
pub(crate) fn mentioning(text: &str) -> Vec<i32> {
    processes(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    })
}
