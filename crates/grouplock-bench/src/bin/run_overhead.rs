//! What `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`, in turns, in one run.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs, process};

use clap::Parser;
use grouplock_bench::program::{ended, table};
use grouplock_bench::statistics::Spread;

/// Measures what `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`, in turns.
#[derive(Debug, Parser)]
#[command(name = "run_overhead")]
struct Arguments {
    /// The program `grouplock`. [default: the one beside this one, which `cargo build --release -p grouplock-cli` makes]
    program: Option<PathBuf>,
    /// How often each has its turn.
    #[arg(default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
}

fn main() -> ExitCode {
    ended("run_overhead", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let program = match arguments.program {
        Some(program) => program,
        None => env::current_exe()?.with_file_name("grouplock"),
    };
    let directory = env::temp_dir().join(format!("grouplock-overhead-{}", process::id()));
    fs::create_dir(&directory)?;
    let report = take_turns(&program, &directory, arguments.turns);
    // What was measured is worth more than a directory that stays.
    _ = fs::remove_dir_all(&directory);
    println!("{}", report?);
    Ok(())
}

fn take_turns(program: &Path, directory: &Path, turns: u32) -> Result<String, String> {
    let alone = Command::new("true");
    let mut flock = Command::new("flock");
    flock.arg(directory.join("file")).arg("true");
    let mut run = Command::new(program);
    run.arg("run").arg("--at").arg(directory.join("rooms")).args(["room", "session", "--", "true"]);
    let mut subjects = [alone, flock, run];
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..=turns {
        for (subject, times) in subjects.iter_mut().zip(&mut times) {
            let start = Instant::now();
            let status = subject.stdin(Stdio::null()).status();
            let status = status.map_err(|error| format!("{subject:?} does not start: {error}"))?;
            let time = start.elapsed().as_secs_f64() * 1e6;
            if !status.success() {
                return Err(format!("{subject:?} ended with {status}"));
            }
            // The first turn makes the files and warms the caches.
            if turn > 0 {
                times.push(time);
            }
        }
    }
    let names = ["true", "flock FILE true", "grouplock run … -- true"];
    let rows = names.iter().zip(&times).map(|(name, sample)| {
        let time = Spread::of(sample.iter().copied());
        [
            (*name).to_owned(),
            format!("{time:.0}"),
            format!("{:.2}", Spread::of_ratios(sample, &times[1])),
        ]
    });
    Ok(table(&["", "µs", "× flock"], rows))
}
