//! `cargo xtask loaded`: shows whether tests depend on the speed of the machine.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::libtest;
use crate::programs::{self, Limits};
use crate::steps;

/// Runs the test programs of `package` that are called `names` (all if there are no names), `times`
/// times each, beside a busy loop on each core. Prints how often each failed. If a named program has
/// no tests, that is a failure too.
pub(crate) fn run(times: u32, package: &str, names: &[String]) -> Result<(), String> {
    let mut built = programs::build(steps::all_tests())?;
    if package == "grouplock" {
        let with_features = programs::build(steps::tests_of_features())?;
        built.retain(|program| with_features.iter().all(|it| it.name != program.name));
        built.extend(with_features);
    }
    built.retain(|program| program.package == package);
    if built.is_empty() {
        return Err(format!("no package `{package}` with tests"));
    }
    if let Some(unknown) = names.iter().find(|name| built.iter().all(|it| it.name != **name)) {
        let known: Vec<_> = built.iter().map(|it| &*it.name).collect();
        return Err(format!(
            "`{package}` has no test program `{unknown}`, but {}",
            known.join(", ")
        ));
    }
    built.retain(|program| names.is_empty() || names.contains(&program.name));
    let named = !names.is_empty();
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let over = AtomicBool::new(false);
    let failed: Vec<_> = std::thread::scope(|scope| {
        for _ in 0..cores {
            // Relaxed: no other data depends on the flag.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::black_box(());
                }
            });
        }
        let count = |program: &programs::TestProgram| {
            let failed = |_: &u32| {
                let limits = Limits::default();
                let ended = programs::run(&program.shown(), program.program(), &[], limits);
                ended.trouble.is_some() || named && libtest::ran(&ended.output) == 0
            };
            (program.shown(), (0..times).filter(failed).count())
        };
        let failed = built.iter().map(count).collect();
        over.store(true, Ordering::Relaxed);
        failed
    });
    println!("\n== under load, {times} times each");
    for (program, failures) in &failed {
        println!("{program}: failed {failures} times");
    }
    let all: usize = failed.iter().map(|(_, failures)| failures).sum();
    if all == 0 { Ok(()) } else { Err(format!("{all} runs failed")) }
}
