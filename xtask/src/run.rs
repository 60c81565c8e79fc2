//! Runs other programs, each with a time limit and in its own process group.
//!
//! A watchman, a shell that reads from our pipe, kills the whole group when the pipe closes. So a
//! program ends at its limit, and with this process, however it ends.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// The limit of builds and installations.
pub(crate) const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The interval between checks of a running program.
const GLANCE: Duration = Duration::from_millis(50);

/// A program that will run in the root of the repository.
pub(crate) struct Program {
    command: Command,
    shown: String,
}

/// How a program ended.
pub(crate) struct Ended {
    /// None if it succeeded, else the reason.
    pub(crate) trouble: Option<String>,
    /// Whether it was killed because it took too long.
    pub(crate) cut_off: bool,
    /// Its output.
    pub(crate) output: String,
    pub(crate) took: Duration,
}

impl Program {
    pub(crate) fn new(name: impl AsRef<Path>) -> Self {
        let name = name.as_ref();
        let mut command = Command::new(name);
        command.current_dir(root()).stdin(Stdio::null()).process_group(0);
        // `cargo xtask` sets its own toolchain. The programs that it starts choose theirs by
        // `+nightly`.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        // It also sets the variables of its package. Build scripts of dependencies read these, and
        // all their dependents would be rebuilt after every call of cargo by hand.
        for (name, _) in std::env::vars_os() {
            let of_package = name.to_str().is_some_and(|name| {
                name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
            });
            if of_package {
                command.env_remove(name);
            }
        }
        Program { command, shown: name.display().to_string() }
    }

    /// Cargo of the default toolchain.
    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        Program::new("cargo").arguments(arguments)
    }

    /// Cargo of the nightly toolchain.
    pub(crate) fn nightly(arguments: &[&str]) -> Self {
        Program::new("cargo").arguments(&["+nightly"]).arguments(arguments)
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        for argument in arguments {
            self.shown.push(' ');
            self.shown.push_str(argument);
        }
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.shown = format!("{name}={value:?} {}", self.shown);
        self.command.env(name, value);
        self
    }

    pub(crate) fn variables(self, variables: &[(&str, &str)]) -> Self {
        variables.iter().fold(self, |program, (name, value)| program.variable(name, value))
    }

    /// A variable that is not shown.
    pub(crate) fn hidden(mut self, name: &str, value: &Path) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// The command line for a shell.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Runs it. Its output goes where ours goes.
    pub(crate) fn run(self) -> Result<(), String> {
        self.run_within(LIMIT)
    }

    /// The same, with another limit.
    pub(crate) fn run_within(mut self, limit: Duration) -> Result<(), String> {
        println!("$ {}", self.shown);
        let ended = self.command.spawn().and_then(|child| watch(child, limit, || None));
        told(&self.shown, ended).map_or(Ok(()), Err)
    }

    /// Runs it without output. Returns whether it succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        let quiet = self.command.stdout(Stdio::null()).stderr(Stdio::null());
        let ended = quiet.spawn().and_then(|child| watch(child, LIMIT, || None));
        ended.is_ok_and(|end| end.is_ok_and(|status| status.success()))
    }

    /// Runs it with its output and its errors in a file. `look` gets the new output, and may return
    /// a reason to kill the program.
    pub(crate) fn watched(
        mut self,
        limit: Duration,
        mut look: impl FnMut(&str) -> Option<String>,
    ) -> Ended {
        let start = Instant::now();
        let mut output = String::new();
        let ended = kept().and_then(|(written, mut read)| {
            self.command.stdout(written.try_clone()?).stderr(written);
            let child = self.command.spawn()?;
            watch(child, limit, || {
                let before = output.len();
                output.push_str(&more(&mut read));
                look(&output[before..])
            })
        });
        let cut_off = ended.as_ref().is_ok_and(Result::is_err);
        Ended { trouble: told(&self.shown, ended), cut_off, output, took: start.elapsed() }
    }

    /// The same without `look`. Prints the output if the program fails.
    pub(crate) fn quietly(self, limit: Duration) -> Result<Ended, String> {
        println!("$ {}", self.shown);
        let mut ended = self.watched(limit, |_| None);
        match ended.trouble.take() {
            None => Ok(ended),
            Some(trouble) => {
                print!("{}", ended.output);
                Err(trouble)
            }
        }
    }
}

/// A new file for writing and reading.
fn kept() -> std::io::Result<(File, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = root().join("target/xtask");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("output-{}-{number}", std::process::id()));
    let written = File::options().create(true).append(true).open(&path)?;
    let read = File::open(&path)?;
    // Only the open files are needed.
    std::fs::remove_file(&path)?;
    Ok((written, read))
}

/// The new output. Half a character becomes a replacement character.
fn more(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // If this fails, the next read gets it, or the output lacks it.
    _ = file.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How a program ended: by itself, or killed for a reason.
type End = Result<ExitStatus, String>;

/// Waits for the end of `child`, and kills its group at `limit` or when `look` has a reason to.
fn watch(
    mut child: Child,
    limit: Duration,
    mut look: impl FnMut() -> Option<String>,
) -> std::io::Result<End> {
    let start = Instant::now();
    let mut watchman = Watchman::over(child.id())?;
    loop {
        let ended = child.try_wait()?;
        let reason = look();
        if let Some(status) = ended {
            watchman.dismiss();
            return Ok(Ok(status));
        }
        let late = || (start.elapsed() > limit).then(|| format!("took longer than {limit:?}"));
        if let Some(reason) = reason.or_else(late) {
            watchman.kill();
            child.wait()?;
            look();
            return Ok(Err(reason));
        }
        std::thread::sleep(GLANCE);
    }
}

/// Why a program did not succeed.
fn told(shown: &str, ended: std::io::Result<End>) -> Option<String> {
    match ended {
        Ok(Ok(status)) if status.success() => None,
        Ok(Ok(status)) => Some(format!("`{shown}` ended with {status}")),
        Ok(Err(reason)) => Some(format!("`{shown}` was killed: {reason}")),
        Err(reason) => Some(format!("`{shown}` could not be run: {reason}")),
    }
}

/// Kills a process group when its pipe closes.
struct Watchman {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Watchman {
    fn over(group: u32) -> std::io::Result<Self> {
        let script = format!("read line; kill -s KILL -- -{group}");
        let mut shell = Command::new("sh");
        // In its own group: an interrupt from the terminal must not end it first.
        shell.args(["-c", &script]).stdin(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut shell = shell.spawn()?;
        let pipe = shell.stdin.take();
        Ok(Watchman { shell, pipe })
    }

    /// The group has ended.
    fn dismiss(&mut self) {
        _ = self.shell.kill();
        _ = self.shell.wait();
    }

    fn kill(&mut self) {
        self.pipe = None;
        _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use grouplock_testing::until;

    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("sh").arguments(&["-c", script])
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let ended = shell("sleep 600").watched(Duration::from_millis(300), |_| None);
        assert!(ended.cut_off && ended.trouble.is_some_and(|why| why.contains("longer")));
        assert!(ended.took < Duration::from_secs(60));
    }

    /// The living processes of a group. Killed processes exist until they are reaped.
    fn alive(group: &str) -> usize {
        let all = shell("ps -eo pgid=,stat=").watched(LIMIT, |_| None).output;
        assert!(all.lines().count() > 1, "{all}");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let of_group = all.lines().map(words).filter(|line| line[0] == group);
        of_group.filter(|line| !line[1].starts_with('Z')).count()
    }

    #[test]
    fn a_program_is_killed_with_its_children_for_what_it_says() {
        let (mut seen, mut before) = (String::new(), 0);
        let ended = shell("sleep 600 & echo $$; echo two >&2; wait").watched(LIMIT, |text| {
            seen.push_str(text);
            let group = seen.strip_suffix("\ntwo\n")?;
            // It is called once more after the kill.
            before = alive(group).max(before);
            Some("it said two".to_owned())
        });
        assert!(ended.cut_off && ended.trouble.is_some_and(|why| why.contains("it said two")));
        assert_eq!(before, 2, "the shell and its child");
        let group = ended.output.strip_suffix("\ntwo\n").expect("all its output");
        until("nothing of the group runs", || alive(group) == 0);
    }

    #[test]
    fn success_and_failure_are_told_apart() {
        let ended = shell("echo said; exit 3").watched(LIMIT, |_| None);
        assert!(!ended.cut_off && ended.output == "said\n");
        assert!(ended.trouble.is_some_and(|why| why.contains("exit status: 3")));
        assert!(shell("exit 0").watched(LIMIT, |_| None).trouble.is_none());
        assert!(Program::new("/nonexistent").watched(LIMIT, |_| None).trouble.is_some());
    }
}
