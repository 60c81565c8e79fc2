//! What `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`, in turns, in one run.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs, process};

use clap::Parser;
use grouplock_bench::machine;
use grouplock_bench::program::{ended, save, table};
use grouplock_bench::statistics::Spread;

/// Measures what `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`, in turns.
#[derive(Debug, Parser)]
#[command(name = "run_overhead")]
struct Arguments {
    /// A program `grouplock` and what to call it; may be given several times. [default: the one beside this one, which `cargo build
    /// --release -p grouplock-cli` makes]
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = named)]
    programs: Vec<(String, PathBuf)>,
    /// How often each has its turn.
    #[arg(long, value_name = "NUMBER", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// Write the page to this file as well.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=PATH")?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

fn main() -> ExitCode {
    ended("run_overhead", run(Arguments::parse()))
}

fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    if arguments.programs.is_empty() {
        let beside = env::current_exe()?.with_file_name("grouplock");
        arguments.programs.push(("the program beside this one".to_owned(), beside));
    }
    let directory = env::temp_dir().join(format!("grouplock-overhead-{}", process::id()));
    fs::create_dir(&directory)?;
    let table = take_turns(&arguments.programs, &directory, arguments.turns);
    // What was measured is worth more than a directory that stays.
    _ = fs::remove_dir_all(&directory);
    let page = format!(
        "\
# `grouplock run` against flock(1)

*For people who run jobs: what a room costs each command.*

What it takes to run `true` alone, under `flock FILE`, and with `grouplock run ROOM SESSION --`, in a room that nobody else uses.

* On {}. The figures are those of a single run.
* {} turns each, one after the other. A figure is the median, with the quartiles in parentheses; a ratio is taken within each turn first.
* The released program is linked statically, so nothing is linked when it starts.

{}",
        machine::told(),
        arguments.turns,
        table?
    );
    println!("{page}");
    if let Some(out) = &arguments.out {
        save(out, &page)?;
    }
    Ok(())
}

fn take_turns(
    programs: &[(String, PathBuf)],
    directory: &Path,
    turns: u32,
) -> Result<String, String> {
    let mut flock = Command::new("flock");
    flock.arg(directory.join("file")).arg("true");
    let mut subjects =
        vec![("true".to_owned(), Command::new("true")), ("flock FILE true".to_owned(), flock)];
    for (name, path) in programs {
        let mut run = Command::new(path);
        run.arg("run").arg("--at").arg(directory.join("rooms"));
        run.args(["room", "session", "--", "true"]);
        subjects.push((format!("grouplock run … -- true, {name}"), run));
    }
    let mut times = vec![Vec::new(); subjects.len()];
    for turn in 0..=turns {
        for ((_, subject), times) in subjects.iter_mut().zip(&mut times) {
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
    let rows = subjects.iter().zip(&times).map(|((name, _), sample)| {
        let time = Spread::of(sample.iter().copied());
        [name.clone(), format!("{time:.0}"), format!("{:.2}", Spread::of_ratios(sample, &times[1]))]
    });
    Ok(table(&["", "µs", "× flock"], rows))
}
