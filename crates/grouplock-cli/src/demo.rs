//! `grouplock demo`: shows what a room does, with three real jobs, in a few seconds.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{SigHandler, Signal, signal};
use serde::Deserialize;

use crate::exit::{self, Ending};
use crate::output::write;

/// A command in the room.
struct Job {
    number: usize,
    session: &'static str,
    /// Its duration in seconds.
    takes: &'static str,
}

const ROOM: &str = "gpu0";

const JOBS: [Job; 3] = [
    Job { number: 1, session: "model A", takes: "2" },
    Job { number: 2, session: "model A", takes: "2" },
    Job { number: 3, session: "model B", takes: "1" },
];

/// The time between the starts of two jobs.
const PAUSE: Duration = Duration::from_millis(500);

/// The fields of the events of `grouplock run --json` that the demo needs.
#[derive(Deserialize)]
struct EventLine {
    event: String,
    time: f64,
    inside: Option<String>,
    holders: Option<usize>,
}

/// A message from a job.
enum JobEvent {
    Line(EventLine),
    Ended(Ending),
}

/// The times of a job, in seconds since 1970.
#[derive(Clone, Copy, Default)]
struct Stay {
    asked: f64,
    entered: f64,
    left: f64,
}

/// The directory of the room. It is removed at the end.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // It may not exist.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run() -> ExitCode {
    extern "C" fn leave_it_to_the_jobs(_: i32) {}
    // SAFETY: the handler does nothing. The jobs, which get Ctrl-C as well, do not inherit it.
    _ = unsafe { signal(Signal::SIGINT, SigHandler::Handler(leave_it_to_the_jobs)) };
    let name = format!("grouplock-demo-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    let ending = show(&directory.0);
    drop(directory);
    match ending {
        Ok(ending) => ending.follow(),
        Err(error) => exit::failed(format_args!("the demonstration failed: {error}")),
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Runs the jobs and prints what happens. Returns the first ending that is not a success, or
/// success.
fn show(directory: &Path) -> io::Result<Ending> {
    write(&format!(
        "Three jobs need {ROOM}. Those of the same session share it, others wait.\n\n"
    ))?;
    let (sender, receiver) = mpsc::channel();
    let begin = now();
    let stays = [Stay::default(); JOBS.len()];
    let mut state = DemoState { begin, stays, entered: Vec::new(), ended: 0, receiver };
    for job in &JOBS {
        state.stays[job.number - 1].asked = now();
        start(job, directory, sender.clone())?;
        state.print_at(
            now(),
            &format!("$ grouplock run {ROOM} '{}' -- sleep {}", job.session, job.takes),
        )?;
        // The job has reported whether it is inside or waits before the next job starts.
        if let Some(bad) = state.follow(job.number)? {
            return Ok(bad);
        }
        thread::sleep(PAUSE);
    }
    while state.ended < JOBS.len() {
        if let Some(bad) = state.follow(0)? {
            return Ok(bad);
        }
    }
    write(&picture(&state.stays))?;
    Ok(Ending::Code(0))
}

/// Starts a job. A thread passes on its messages.
fn start(job: &Job, directory: &Path, sender: Sender<(usize, JobEvent)>) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg("--at").arg(directory).args(["--quiet", "--json=1", ROOM, job.session]);
    command.args(["--", "sleep", job.takes]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let (number, out) = (job.number, child.stdout.take());
    thread::spawn(move || {
        for line in out.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            if let Some(line) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
                // It fails if the demo has been ended.
                _ = sender.send((number, JobEvent::Line(line)));
            }
        }
        let ending = match child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Code(u8::try_from(code).unwrap_or(exit::FAILED)),
                (None, number) => Ending::Signal(number.unwrap_or_default()),
            },
            Err(_) => Ending::Code(exit::FAILED),
        };
        _ = sender.send((number, JobEvent::Ended(ending)));
    });
    Ok(())
}

/// The state of the demo.
struct DemoState {
    begin: f64,
    stays: [Stay; JOBS.len()],
    /// The jobs that have entered, but have not been printed yet.
    entered: Vec<(usize, f64)>,
    ended: usize,
    receiver: Receiver<(usize, JobEvent)>,
}

impl DemoState {
    fn print_at(&self, time: f64, what: &str) -> io::Result<()> {
        write(&format!("{:4.1} s  {what}\n", time - self.begin))
    }

    /// Prints what the jobs do, until `number` is inside or waits; if it is 0, until a job has
    /// ended. Returns the ending if it is not a success.
    fn follow(&mut self, number: usize) -> io::Result<Option<Ending>> {
        while let Ok((of, event)) = self.receiver.recv() {
            let line = match event {
                JobEvent::Line(line) => line,
                JobEvent::Ended(ending) => {
                    self.ended += 1;
                    let bad = Some(ending).filter(|ending| *ending != Ending::Code(0));
                    if bad.is_some() || number == 0 {
                        return Ok(bad);
                    }
                    continue;
                }
            };
            match &*line.event {
                "entered" => self.entered.push((of, line.time)),
                "waiting" if of == number => {
                    let (holders, inside) = (line.holders.unwrap_or(0), line.inside);
                    let inside = inside.unwrap_or_default();
                    self.print_at(
                        line.time,
                        &format!("job {of} waits: {holders} of {inside} inside"),
                    )?;
                }
                "exited" => {
                    self.stays[of - 1].left = line.time;
                    self.print_at(line.time, &format!("job {of} is done"))?;
                }
                _ => continue,
            }
            self.print_entries()?;
            if of == number {
                break;
            }
        }
        Ok(None)
    }

    /// Prints which jobs have entered. The jobs write to different pipes. So the entry of a job may
    /// arrive before the end of the session that was inside before. It is printed after it.
    fn print_entries(&mut self) -> io::Result<()> {
        for (of, time) in std::mem::take(&mut self.entered) {
            let session = JOBS[of - 1].session;
            let inside = |job: &&Job| {
                let stay = self.stays[job.number - 1];
                stay.entered > 0.0 && stay.left == 0.0
            };
            if JOBS.iter().filter(inside).any(|job| job.session != session) {
                self.entered.push((of, time));
                continue;
            }
            let how = if JOBS.iter().any(|job| inside(&job)) {
                " too: the same session shares"
            } else {
                ""
            };
            self.print_at(time, &format!("job {of} is inside{how} ({session})"))?;
            self.stays[of - 1].entered = time;
        }
        Ok(())
    }
}

/// A bar for each job over time.
fn picture(stays: &[Stay]) -> String {
    let begin = stays.iter().map(|stay| stay.asked).fold(f64::INFINITY, f64::min);
    #[expect(clippy::cast_sign_loss, reason = "nothing is before the beginning")]
    let column = |time: f64| ((time - begin).max(0.0) * 12.0).round() as usize;
    let mut text = String::from("\n");
    for (job, stay) in JOBS.iter().zip(stays) {
        let [asked, entered, left] = [stay.asked, stay.entered, stay.left].map(column);
        let before = " ".repeat(asked);
        let (waits, inside) =
            (".".repeat(entered.saturating_sub(asked)), "#".repeat(left.saturating_sub(entered)));
        _ = writeln!(text, "job {}  {}  {before}{waits}{inside}", job.number, job.session);
    }
    text.push_str("\n# inside, . waiting. Next: grouplock run --help\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_shows_waits_and_holdings() {
        let stay = |asked, entered, left| Stay { asked, entered, left };
        let stays = [stay(10.0, 10.0, 11.0), stay(10.5, 10.5, 11.5), stay(11.0, 11.5, 12.0)];
        let picture = picture(&stays);
        let lines: Vec<_> = picture.lines().collect();
        assert_eq!(lines[1], "job 1  model A  ############");
        assert_eq!(lines[2], "job 2  model A        ############");
        assert_eq!(lines[3], "job 3  model B              ......######");
    }
}
