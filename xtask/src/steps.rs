//! The checks, each a step that can be run alone.

use std::process::ExitCode;
use std::time::Instant;

use crate::run::Program;

/// One check.
pub(crate) struct Step {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) what: &'static str,
    check: fn() -> Outcome,
}

/// How a step ended.
enum Outcome {
    Passed,
    Failed(String),
    /// The machine lacks what it takes; the reason.
    Skipped(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    }
}

/// All steps of `cargo xtask test`, in order.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", what: "formatting", check: fmt },
    Step { name: "clippy", what: "lints, warnings are errors", check: clippy },
    Step { name: "tests", what: "unit, integration, loom and documentation tests", check: tests },
    Step { name: "doc", what: "the documentation builds, warnings are errors", check: doc },
    Step { name: "miri", what: "undefined behaviour, with strict provenance", check: miri },
    Step { name: "tsan", what: "data races, by the thread sanitizer", check: tsan },
];

/// The steps called `names`, or all if there are none; else the name that is unknown.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static Step>, &String> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    names.iter().map(|name| STEPS.iter().find(|step| step.name == name).ok_or(name)).collect()
}

/// Runs `steps`, all of them even if one fails, and sums up.
pub(crate) fn test(steps: &[&Step]) -> ExitCode {
    let mut summary = String::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for step in steps {
        println!("\n== {}: {}", step.name, step.what);
        let start = Instant::now();
        let verdict = match (step.check)() {
            Outcome::Passed => {
                passed += 1;
                "passed".to_owned()
            }
            Outcome::Failed(reason) => {
                failed += 1;
                format!("FAILED: {reason}")
            }
            Outcome::Skipped(reason) => {
                skipped += 1;
                format!("SKIPPED: {reason}")
            }
        };
        let line = format!("{:8} {:6.1} s  {verdict}\n", step.name, start.elapsed().as_secs_f64());
        print!("{line}");
        summary.push_str(&line);
    }
    println!("\n== summary\n{summary}steps: {passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Installs what the steps need. What cannot be had is told, and the step that needs it will be skipped.
pub(crate) fn setup() -> ExitCode {
    for (what, result) in [
        ("miri", need_miri()),
        ("the sources of the standard library", need_sources()),
        ("chromium and chromedriver", need_chromium()),
    ] {
        match result {
            Ok(()) => println!("{what}: there"),
            Err(reason) => println!("{what}: not there: {reason}"),
        }
    }
    ExitCode::SUCCESS
}

/// Measures, and writes the pages that show it.
pub(crate) fn bench() -> ExitCode {
    let page = ["--instructions", "--out", "docs/benchmarks/uncontended.md"];
    let run = ["run", "--release", "-p", "grouplock-bench", "--bin", "uncontended", "--"];
    finish(Program::cargo(&run).arguments(&page).run())
}

/// The long versions of the tests.
pub(crate) fn soak() -> ExitCode {
    finish(
        Program::cargo(&["test", "--release", "-p", "grouplock-algorithms", "--test", "threads"])
            .variable("GROUPLOCK_ENTRIES", "640000")
            .run()
            .and_then(|()| {
                let loom = ["test", "--release", "-p", "grouplock-algorithms", "--test", "loom"];
                Program::cargo(&loom).arguments(&["--", "--ignored"]).run()
            })
            .and_then(|()| {
                let mutants = ["test", "--release", "-p", "grouplock-mutants", "--", "--ignored"];
                Program::cargo(&mutants).run()
            })
            .and_then(|()| {
                let quorum = ["test", "--release", "-p", "grouplock-quorum", "--", "--ignored"];
                Program::cargo(&quorum).run()
            })
            .and_then(|()| BIG.iter().try_for_each(|big| explore(big))),
    )
}

/// Explorations of minutes: algorithm, processes, sessions, and what else there is to say.
const BIG: &[&[&str]] = &[
    &["handover", "-p", "4", "-s", "2"],
    &["handover", "-p", "3", "-s", "3"],
    &["handover+dvir-taubenfeld-1-swap", "-p", "3", "-s", "2"],
    &["keane-moir+dvir-taubenfeld-1-swap", "-p", "3", "-s", "2"],
    &["generalized-bakery", "-p", "3", "-s", "2", "--passages", "2"],
    &["black-white-bakery-gme", "-p", "3", "-s", "2"],
    &["petrovic", "-p", "3", "-s", "2"],
];

fn explore(big: &[&str]) -> Result<(), String> {
    let run =
        ["run", "--release", "-p", "grouplock-cli", "--", "lab", "check", "--memory-limit", "8"];
    Program::cargo(&run).arguments(big).run()
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

fn fmt() -> Outcome {
    Program::cargo(&["fmt", "--all", "--check"]).run().into()
}

fn clippy() -> Outcome {
    Program::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run().into()
}

fn tests() -> Outcome {
    if let Err(reason) = need_chromium() {
        println!("The tests of the report in a browser will be skipped: {reason}");
    }
    Program::cargo(&["test", "--workspace"]).run().into()
}

fn doc() -> Outcome {
    Program::cargo(&["doc", "--workspace", "--no-deps"])
        .variable("RUSTDOCFLAGS", "-D warnings")
        .run()
        .into()
}

/// Small configurations of every lock, interpreted.
fn miri() -> Outcome {
    if let Err(reason) = need_miri() {
        return Outcome::Skipped(reason);
    }
    Program::nightly(&["miri", "test", "-p", "grouplock-algorithms", "--target-dir", "target/miri"])
        .arguments(&["--lib", "--test", "data", "--test", "misuse", "--test", "schedules"])
        .variable("MIRIFLAGS", "-Zmiri-strict-provenance")
        .run()
        .into()
}

/// The tests that protect plain data, instrumented together with the standard library.
fn tsan() -> Outcome {
    if let Err(reason) = need_sources() {
        return Outcome::Skipped(reason);
    }
    if !cfg!(target_os = "linux") {
        return Outcome::Skipped("the thread sanitizer is set up for Linux only".to_owned());
    }
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    Program::nightly(&["test", "-Zbuild-std", "--target", &target, "--target-dir", "target/tsan"])
        .arguments(&["-p", "grouplock-algorithms"])
        .arguments(&["--lib", "--test", "data", "--test", "come_and_go", "--test", "occupancy"])
        .variable("RUSTFLAGS", "-Zsanitizer=thread")
        .run()
        .into()
}

/// Installs a component of the nightly toolchain unless `probe` shows that it is there.
fn need(component: &str, probe: impl Fn() -> bool) -> Result<(), String> {
    if probe() {
        return Ok(());
    }
    // The toolchain first: adding a component to one that is not there fails.
    if !Program::nightly(&["--version"]).succeeds() {
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        Program::new("rustup").arguments(&install).run()?;
    }
    let add = ["component", "add", "--toolchain", "nightly", component];
    Program::new("rustup").arguments(&add).run()?;
    if probe() { Ok(()) } else { Err(format!("the component {component} does not work")) }
}

fn need_miri() -> Result<(), String> {
    need_sources()?;
    need("miri", || Program::nightly(&["miri", "--version"]).succeeds())
}

/// For the test that drives the lab's page. Debian's packages, so only where those can be had.
fn need_chromium() -> Result<(), String> {
    let there = || {
        ["chromium", "chromedriver"]
            .iter()
            .all(|name| Program::new(name).arguments(&["--version"]).succeeds())
    };
    if there() {
        return Ok(());
    }
    Program::new("apt-get").arguments(&["update"]).run()?;
    let packages = ["install", "--yes", "chromium", "chromium-driver"];
    Program::new("apt-get").arguments(&packages).run()?;
    if there() { Ok(()) } else { Err("installed, but it does not run".to_owned()) }
}

fn need_sources() -> Result<(), String> {
    need("rust-src", || {
        let installed = std::process::Command::new("rustup")
            .args(["component", "list", "--toolchain", "nightly", "--installed"])
            .output();
        installed.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains("rust-src"))
    })
}
