//! The measurements.

use std::process::ExitCode;

use crate::run::Program;
use crate::steps::{finish, need_etcd};

/// The plans of the comparison.
pub(crate) const PLANS: [&str; 4] = ["smoke", "quick", "standard", "full"];

/// Measures by `plan`, and writes the pages that show it. What was measured in a hurry goes elsewhere, and does not replace
/// the pages that were measured with care.
pub(crate) fn run(plan: &str) -> ExitCode {
    let careful = ["standard", "full"].contains(&plan);
    let out = if careful { "docs/benchmarks" } else { "target/benchmarks" };
    let instructions: &[&str] = if careful { &["--instructions"] } else { &[] };
    let compare = program("compare").arguments(&["--plan", plan, "--out", out]);
    let result = compare.arguments(instructions).run().and_then(|()| {
        if !careful {
            return Ok(());
        }
        let page = ["--instructions", "--out", "docs/benchmarks/uncontended.md"];
        program("uncontended")
            .arguments(&page)
            .run()
            .and_then(|()| program("rooms").arguments(&["--out", "docs/benchmarks/rooms.md"]).run())
            .and_then(|()| etcd())
    });
    finish(result)
}

/// Rooms on etcd. The programs are measured as well, and `grouplock` is found beside the one that measures.
fn etcd() -> Result<(), String> {
    need_etcd()?;
    Program::cargo(&["build", "--release", "-p", "grouplock-cli"]).run()?;
    program("etcd").arguments(&["--out", "docs/benchmarks/etcd.md"]).run()
}

/// A program of the bench crate.
fn program(name: &str) -> Program {
    Program::cargo(&["run", "--release", "-p", "grouplock-bench", "--bin", name, "--"])
}
