//! `cargo xtask bench`: measures, and writes the pages.

use std::path::Path;
use std::time::Duration;

use crate::budget::{self, Given, Order, Part, Reached};
use crate::dist::MUSL;
use crate::programs::TestProgram;
use crate::run::{LIMIT, Program};
use crate::setup::Need;

/// The plans of the comparison.
const PLANS: [&str; 4] = ["smoke", "quick", "standard", "full"];

/// The standard plan of the comparison takes some ten minutes on two cores. The shares leave time
/// for slower machines.
const PARTS: &[Part] = &[
    Part { name: "comparison", share: 30, build, run: comparison },
    Part { name: "uncontended", share: 8, build, run: uncontended },
    Part { name: "rooms", share: 4, build, run: rooms },
    Part { name: "run", share: 6, build, run: run_overhead },
    Part { name: "etcd", share: 12, build, run: etcd },
    Part { name: "model-swap", share: 2, build, run: model_swap },
];

pub(crate) fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

/// Parses the arguments.
pub(crate) fn order(arguments: &[String]) -> Result<Order, String> {
    let (mut plan, mut named) = ("standard".to_owned(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--plan" {
            let name = arguments.next().map_or("", String::as_str);
            let known = PLANS.iter().find(|plan| **plan == name);
            let wrong = || format!("`--plan` needs one of {}, not `{name}`", PLANS.join(", "));
            plan = known.ok_or_else(wrong)?.to_string();
        } else {
            named.push(argument.clone());
        }
    }
    let minutes = if plan == "full" { 12 * 60 } else { 60 };
    Ok(Order { parts: budget::named(PARTS, &named)?, minutes, plan })
}

type Results = Vec<(String, Reached)>;

/// Builds the program that measures.
fn build() -> Result<Vec<TestProgram>, String> {
    Program::cargo(&["build", "--release", "-p", "grouplock-bench"]).quietly(LIMIT)?;
    Ok(Vec::new())
}

/// The directory of the pages. A quick measurement does not replace a careful one.
fn out(given: &Given) -> &'static str {
    if careful(given) { "docs/benchmarks" } else { "target/benchmarks" }
}

fn careful(given: &Given) -> bool {
    ["standard", "full"].contains(&&*given.plan)
}

/// Measures, and also counts instructions with valgrind if the plan is careful.
fn counted(given: &Given, page: &str, program: Program) -> Results {
    if !careful(given) {
        return measured(given, page, program);
    }
    match Need::Valgrind.meet() {
        Ok(()) => measured(given, page, program.arguments(&["--instructions"])),
        Err(why) => vec![(page.to_owned(), Reached::Failed(why))],
    }
}

fn comparison(given: &Given) -> Results {
    let compare = program("compare").arguments(&["--plan", &given.plan, "--out", out(given)]);
    counted(given, "comparison.md", compare)
}

fn uncontended(given: &Given) -> Results {
    let page = format!("{}/uncontended.md", out(given));
    let rounds: &[&str] = if careful(given) { &[] } else { &["--rounds", "5"] };
    let program = program("uncontended").arguments(&["--out", &page]).arguments(rounds);
    counted(given, "uncontended.md", program)
}

fn rooms(given: &Given) -> Results {
    let page = format!("{}/rooms.md", out(given));
    let rounds: &[&str] = if careful(given) { &[] } else { &["--rounds", "11"] };
    measured(given, "rooms.md", program("rooms").arguments(&["--out", &page]).arguments(rounds))
}

/// Measures the program as cargo builds it, and as it is released.
fn run_overhead(given: &Given) -> Results {
    let build = |target: &[&str]| {
        let build = ["build", "--release", "-p", "grouplock-cli", "--all-features"];
        Program::cargo(&build).arguments(target).run_within(given.left())
    };
    let ready =
        Need::Musl.meet().and_then(|()| build(&[])).and_then(|()| build(&["--target", MUSL]));
    if let Err(why) = ready {
        return vec![("run.md".to_owned(), Reached::Failed(why))];
    }
    let page = format!("{}/run.md", out(given));
    let turns: &[&str] = if careful(given) { &[] } else { &["--turns", "20"] };
    let released = format!("released=target/{MUSL}/release/grouplock");
    let programs = ["--program", "built by cargo=target/release/grouplock", "--program", &released];
    let program = program("run").arguments(&programs).arguments(turns);
    measured(given, "run.md", program.arguments(&["--out", &page]))
}

/// Rooms on etcd. This also measures programs, and finds `grouplock` beside the bench program.
fn etcd(given: &Given) -> Results {
    let build = ["build", "--release", "-p", "grouplock-cli", "--all-features"];
    let ready = Need::Etcd.meet().and_then(|()| Program::cargo(&build).run_within(given.left()));
    if let Err(why) = ready {
        return vec![("etcd.md".to_owned(), Reached::Failed(why))];
    }
    let page = format!("{}/etcd.md", out(given));
    let rounds: &[&str] = if careful(given) { &[] } else { &["--rounds", "4"] };
    measured(given, "etcd.md", program("etcd").arguments(&["--out", &page]).arguments(rounds))
}

/// The beginning of the example's page.
const MODEL_SWAP: &str = "\
# Swapping models

*For people who share a device that holds one model at a time.*

Requests for three models arrive at random, and loading a model takes as long as 50 of them. The same requests go to four gateways
that run side by side: a mutex for each request, and `GroupLock` with the model as the session, under the default policy
(*barging*), `Fifo`, and `Batch` with 100 passes. The program is
[`model_swap`](../../crates/grouplock/examples/model_swap/main.rs); the figures are those of a single run of it.

";

fn model_swap(given: &Given) -> Results {
    let name = "model_swap.md";
    let example = ["run", "--release", "--quiet", "-p", "grouplock", "--example", "model_swap"];
    let folder = crate::run::root().join(out(given));
    let page = folder.join(name);
    let written = Program::cargo(&example).quietly(given.left()).and_then(|ended| {
        let text = format!("{MODEL_SWAP}```text\n{}```\n", ended.output);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&page, text))
            .map_err(|why| format!("`{}` cannot be written: {why}", page.display()))
    });
    told(&page, name, written)
}

/// Measures within the time of the part. A page is written at the end, so a measurement that is cut
/// off writes none.
fn measured(given: &Given, page: &str, program: Program) -> Results {
    let folder = crate::run::root().join(out(given));
    let made = std::fs::create_dir_all(&folder).map_err(|why| why.to_string());
    let time: Duration = given.left();
    told(&folder.join(page), page, made.and_then(|()| program.run_within(time)))
}

fn told(path: &Path, page: &str, written: Result<(), String>) -> Results {
    let how = match written {
        Ok(()) => Reached::Ended(format!("{} is written", path.display())),
        Err(why) => Reached::Failed(why),
    };
    vec![(page.to_owned(), how)]
}

/// A command of the bench program.
fn program(command: &str) -> Program {
    Program::cargo(&["run", "--release", "-p", "grouplock-bench", "--", command])
}
