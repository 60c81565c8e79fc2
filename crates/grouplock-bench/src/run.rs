//! What `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`, in turns.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::{Args, value_parser};
use grouplock_testing::Scratch;

use crate::machine;
use crate::report::{Cannot, Outcome, row, table};
use crate::statistics::Spread;

/// Measures what `grouplock run ROOM SESSION -- true` costs next to `flock FILE true`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A program `grouplock` and its name on the page. You can repeat it. [default: the program
    /// `grouplock` beside this one, which `cargo build --release -p grouplock-cli` makes]
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = named)]
    programs: Vec<(String, PathBuf)>,
    /// How many turns each program has.
    #[arg(long, value_name = "NUMBER", default_value_t = 500, value_parser = value_parser!(u32).range(1..))]
    turns: u32,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=PATH")?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

impl Arguments {
    pub(crate) fn run(mut self) -> Outcome<String> {
        if self.programs.is_empty() {
            let beside = env::current_exe()?.with_file_name("grouplock");
            self.programs.push(("the program beside this one".to_owned(), beside));
        }
        Ok(format!(
            "\
# `grouplock run` against flock(1)

*For people who run jobs: what a room costs each command.*

The time to run `true` alone, under `flock FILE`, and with `grouplock run ROOM SESSION --`, in a room that no other process uses.

* On {}. The figures are those of a single run.
* {} turns each, one after the other. A figure is the median, with the quartiles in parentheses; a ratio is taken within each turn first.
* The released program is linked statically, so nothing is linked when it starts.

{}",
            machine::description(),
            self.turns,
            self.take_turns()?
        ))
    }

    fn take_turns(&self) -> Outcome<String> {
        let directory = Scratch::below(&env::temp_dir()).cannot("make a directory")?;
        let mut flock = Command::new("flock");
        flock.arg(directory.join("file")).arg("true");
        let mut subjects =
            vec![("true".to_owned(), Command::new("true")), ("flock FILE true".to_owned(), flock)];
        for (name, path) in &self.programs {
            let mut run = Command::new(path);
            run.arg("run").arg("--at").arg(directory.join("rooms"));
            run.args(["room", "session", "--", "true"]);
            subjects.push((format!("grouplock run … -- true, {name}"), run));
        }
        let mut times = vec![Vec::new(); subjects.len()];
        for turn in 0..=self.turns {
            for ((_, subject), times) in subjects.iter_mut().zip(&mut times) {
                let start = Instant::now();
                let status = subject.stdin(Stdio::null()).status();
                let status = status.cannot(format_args!("start {subject:?}"))?;
                let time = start.elapsed().as_secs_f64() * 1e6;
                if !status.success() {
                    return Err(format!("{subject:?} ended with {status}").into());
                }
                // The first turn makes the files and warms the caches.
                if turn > 0 {
                    times.push(time);
                }
            }
        }
        let rows = subjects.iter().zip(&times).map(|((name, _), sample)| {
            let (time, ratio) = (Spread::of(sample), Spread::of_ratios(sample, &times[1]));
            row![name, format_args!("{time:.0}"), format_args!("{ratio:.2}")]
        });
        Ok(table(&["", "µs", "× flock"], rows))
    }
}
