//! What README and CI call: `cargo xtask setup | test | bench | mutants | soak`.

mod bench;
mod mutants;
mod run;
mod steps;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask setup          install what the tests need beyond a Rust toolchain
cargo xtask test [STEP…]   run all checks, or only those named (this does the set-up first)
cargo xtask bench          measure, and write the pages in docs/benchmarks
  --plan PLAN              quick (under a minute, into target/benchmarks), standard (the default) or full (hours)
cargo xtask mutants        break GroupLock in six ways; loom and shuttle must notice each (two minutes)
cargo xtask soak           the long versions of the tests, for an hour or so of machine time

Steps of `test`:";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    match (command.as_deref(), &rest[..]) {
        (Some("setup"), []) => steps::setup(),
        (Some("test"), names) => match steps::named(names) {
            Ok(steps) => steps::test(&steps),
            Err(unknown) => refuse(&format!("`{unknown}` is not a step of `cargo xtask test`")),
        },
        (Some("bench"), []) => bench::run("standard"),
        (Some("bench"), [plan, name]) if plan == "--plan" && bench::PLANS.contains(&&**name) => {
            bench::run(name)
        }
        (Some("bench"), [plan, rest @ ..]) if plan == "--plan" => refuse(&format!(
            "`--plan` needs one of {}, not `{}`",
            bench::PLANS.join(", "),
            rest.join(" ")
        )),
        (Some("soak"), []) => steps::soak(),
        (Some("mutants"), []) => mutants::run(),
        (Some("-h" | "--help" | "help"), _) => {
            println!("{}", usage());
            ExitCode::SUCCESS
        }
        (Some("setup" | "bench" | "soak" | "mutants"), [extra, ..]) => {
            refuse(&format!("`{extra}` is one argument too many"))
        }
        (Some(unknown), _) => refuse(&format!("`{unknown}` is not a command of xtask")),
        (None, _) => refuse("xtask needs a command"),
    }
}

fn usage() -> String {
    let steps = steps::STEPS.iter().map(|step| format!("\n  {:8} {}", step.name, step.what));
    USAGE.to_owned() + &steps.collect::<String>()
}

/// Bad arguments: says so, and what would have been right.
fn refuse(mistake: &str) -> ExitCode {
    eprintln!("xtask: {mistake}\n\n{}", usage());
    ExitCode::from(2)
}
