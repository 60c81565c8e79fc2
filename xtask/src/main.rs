//! The tasks for developers and CI: `cargo xtask setup | test | bench | mutants | soak | …`.

mod bench;
mod budget;
mod dist;
mod libtest;
mod links;
mod loaded;
mod mutants;
mod package;
mod pages;
mod programs;
mod python;
mod readme;
mod run;
mod setup;
mod soak;
mod steps;
mod test;

use std::process::ExitCode;

use crate::mutants::Right;

const USAGE: &str = "\
cargo xtask setup             install what the tests need beyond a Rust toolchain
cargo xtask test [STEP…]      run all checks, or only those named (this does the set-up first)
  --required                  what cannot run here is a failure (as it is where the variable CI is set)
cargo xtask bench [PART…]     measure, and write the pages in docs/benchmarks, within an hour
  --plan PLAN                 smoke or quick (into target/benchmarks), standard (the default) or full (hours)
cargo xtask mutants [NAME…]   change the sources in one place at a time; a test must notice each
cargo xtask soak [PART…]      the long versions of the tests, each for the time it is given
  --minutes N                 how long all of them take together (55); the build comes first, and they share the rest
cargo xtask loaded [N] PACKAGE [PROGRAM…]
                              run test programs N times (20) with a busy loop on each core; count failures
cargo xtask dist              build the static program, a tarball and a Debian package, into target/dist
cargo xtask wheel             build the Python package, into target/wheels
cargo xtask publish --dry-run what `cargo publish` would upload: packed, built, each feature, licences; nothing is uploaded
cargo xtask readme            record the demonstration, and put the benchmarks' figures into the README
cargo xtask pages             make the tables of the pages from docs/lab/evidence.json
cargo xtask evidence [NAME…]  explore the algorithms by these names, or all, for the evidence; then the pages

Steps of `test`:";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match (&*command, &rest[..]) {
        ("setup", []) => setup::run(),
        ("setup" | "dist" | "pages" | "readme" | "wheel", [extra, ..]) => {
            refuse(&format!("`{extra}` is one argument too many"))
        }
        ("test", names) => {
            let (names, required) = without("--required", names);
            match steps::named(&names) {
                Ok(steps) => test::run(&steps, required || test::in_ci()),
                Err(mistake) => refuse(&mistake),
            }
        }
        ("bench", arguments) => timed(bench::order(arguments)),
        ("soak", arguments) => timed(soak::order(arguments)),
        ("mutants", names) => match mutants::named(names) {
            Ok(mutants) => finish(mutants::run(&mutants, Right::First, None).map(drop)),
            Err(mistake) => refuse(&mistake),
        },
        ("dist", []) => finish(setup::Need::Musl.meet().and_then(|()| dist::run())),
        ("publish", [option]) if option == "--dry-run" => finish(package::dry_run()),
        ("publish", _) => refuse("`publish` needs `--dry-run`, and nothing else"),
        ("readme", []) => finish(readme::make()),
        ("wheel", []) => finish(setup::Need::Python.meet().and_then(|()| python::release())),
        ("pages", []) => finish(pages::pages()),
        ("evidence", names) => finish(pages::explore(names)),
        ("loaded", arguments) => {
            let times = arguments.first().and_then(|times| times.parse().ok());
            match &arguments[usize::from(times.is_some())..] {
                [] => refuse("`loaded` needs a package"),
                [package, programs @ ..] => {
                    finish(loaded::run(times.unwrap_or(20), package, programs))
                }
            }
        }
        ("-h" | "--help" | "help", _) => {
            println!("{}", usage());
            ExitCode::SUCCESS
        }
        ("", _) => refuse("xtask needs a command"),
        (unknown, _) => refuse(&format!("`{unknown}` is not a command of xtask")),
    }
}

fn timed(order: Result<budget::Order, String>) -> ExitCode {
    order.map_or_else(|mistake| refuse(&mistake), |order| budget::run(&order))
}

/// The arguments without `flag`, and whether it was among them.
fn without(flag: &str, arguments: &[String]) -> (Vec<String>, bool) {
    let rest: Vec<_> = arguments.iter().filter(|argument| *argument != flag).cloned().collect();
    let found = rest.len() < arguments.len();
    (rest, found)
}

fn usage() -> String {
    let steps = steps::STEPS.iter().map(|step| format!("\n  {:8} {}", step.name, step.what));
    let (soak, bench) = (soak::names().join(", "), bench::names().join(", "));
    let parts = format!("\n\nParts of `soak`: {soak}\nParts of `bench`: {bench}");
    USAGE.to_owned() + &steps.collect::<String>() + &parts
}

/// Reports bad arguments, and prints the usage.
fn refuse(mistake: &str) -> ExitCode {
    eprintln!("xtask: {mistake}\n\n{}", usage());
    ExitCode::from(2)
}

fn finish(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
