//! What `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`, in turns, in one run.
//!
//! `cargo build --release -p grouplock-cli && cargo run --release -p grouplock-bench --bin run_overhead -- [PROGRAM [TURNS]]`

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    match measure() {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("run_overhead: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<String, String> {
    let mut arguments = std::env::args_os().skip(1);
    let program = match arguments.next() {
        Some(program) => PathBuf::from(program),
        None => beside_us()?,
    };
    let turns: usize = match arguments.next() {
        None => 500,
        Some(text) => {
            text.to_str().and_then(|text| text.parse().ok()).filter(|turns| *turns > 0).ok_or_else(
                || format!("`{}` is no number of turns; expected one such as 500", text.display()),
            )?
        }
    };
    let directory = std::env::temp_dir().join(format!("grouplock-overhead-{}", std::process::id()));
    std::fs::create_dir(&directory)
        .map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    let report = take_turns(&program, &directory, turns);
    // What was measured is worth more than a directory that stays.
    _ = std::fs::remove_dir_all(&directory);
    report
}

fn beside_us() -> Result<PathBuf, String> {
    let us = std::env::current_exe().map_err(|e| format!("cannot tell where we are: {e}"))?;
    let program = us.with_file_name("grouplock");
    if program.exists() {
        return Ok(program);
    }
    let program = program.display();
    Err(format!("there is no {program}: `cargo build --release -p grouplock-cli` makes it"))
}

fn take_turns(program: &Path, directory: &Path, turns: usize) -> Result<String, String> {
    let file = directory.join("file");
    let mut alone = Command::new("true");
    let mut flock = Command::new("flock");
    flock.arg(&file).arg("true");
    let mut run = Command::new(program);
    run.arg("run").arg("--at").arg(directory.join("rooms")).args(["room", "session", "--", "true"]);
    let mut subjects =
        [alone.stdin(Stdio::null()), flock.stdin(Stdio::null()), run.stdin(Stdio::null())];
    let mut times: [Vec<Duration>; 3] = Default::default();
    for turn in 0..=turns {
        for (subject, times) in subjects.iter_mut().zip(&mut times) {
            let start = Instant::now();
            let status =
                subject.status().map_err(|e| format!("{subject:?} does not start: {e}"))?;
            let time = start.elapsed();
            if !status.success() {
                return Err(format!("{subject:?} ended with {status}"));
            }
            // The first turn makes the files and warms the caches.
            if turn > 0 {
                times.push(time);
            }
        }
    }
    let [alone, flock, run] = times.map(Summary::of);
    Ok(format!(
        "{turns} turns, microseconds   fastest   quartile   median\n\
         true                      {alone}\n\
         flock FILE true           {flock}\n\
         grouplock run … -- true   {run}\n\
         grouplock run / flock: {:.2} by the fastest, {:.2} by the quartile, {:.2} by the median",
        run.fastest / flock.fastest,
        run.quartile / flock.quartile,
        run.median / flock.median,
    ))
}

/// On a machine that does other things as well, the lower quartile tells more about the programs than the median.
struct Summary {
    fastest: f64,
    quartile: f64,
    median: f64,
}

impl Summary {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |index: usize| times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6);
        Summary { fastest: at(0), quartile: at(times.len() / 4), median: at(times.len() / 2) }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:9.0}  {:9.0}  {:7.0}", self.fastest, self.quartile, self.median)
    }
}
