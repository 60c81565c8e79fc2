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
    Step {
        name: "features",
        what: "the features of grouplock, each alone and together",
        check: features,
    },
    Step { name: "doc", what: "the documentation builds, warnings are errors", check: doc },
    Step { name: "loom", what: "GroupLock in all executions of a few participants", check: loom },
    Step { name: "shuttle", what: "GroupLock in schedules drawn at random", check: shuttle },
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
        ("etcd and etcdctl", need_etcd()),
    ] {
        match result {
            Ok(()) => println!("{what}: there"),
            Err(reason) => println!("{what}: not there: {reason}"),
        }
    }
    ExitCode::SUCCESS
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
            .and_then(|()| soak_lock())
            .and_then(|()| {
                let rooms = ["test", "--release", "-p", "grouplock-room", "--tests"];
                let long = ["--", "--ignored", "--nocapture"];
                Program::cargo(&rooms).arguments(&long).run()
            })
            .and_then(|()| {
                let storm = ["test", "--release", "-p", "grouplock-cli", "--test", "rooms"];
                Program::cargo(&storm).arguments(&["--", "--ignored", "--nocapture"]).run()
            })
            .and_then(|()| {
                let quorum = ["test", "--release", "-p", "grouplock-quorum", "--", "--ignored"];
                Program::cargo(&quorum).run()
            })
            .and_then(|()| soak_etcd())
            .and_then(|()| BIG.iter().try_for_each(|big| explore(big))),
    )
}

/// The long versions of the tests of `GroupLock`.
fn soak_lock() -> Result<(), String> {
    let tests = ["test", "--release", "-p", "grouplock", "--test", "lock"];
    Program::cargo(&tests)
        .arguments(&["--", "storms::", "reference::"])
        .variable("GROUPLOCK_PASSAGES", "20000")
        .variable("GROUPLOCK_PROGRAMS", "100000")
        .run()?;
    // Three participants with their bound, to the end; then all models without a bound, for a while each.
    model("loom").arguments(&["--", "--ignored"]).run()?;
    model("loom")
        .arguments(&["--", "--include-ignored"])
        .variable("GROUPLOCK_LOOM_SECONDS", "20")
        .run()?;
    model("shuttle").variable("GROUPLOCK_EXECUTIONS", "30000").run()
}

/// Every fault of rooms on etcd, again and again.
fn soak_etcd() -> Result<(), String> {
    need_etcd()?;
    Program::cargo(&["test", "--release", "-p", "grouplock-etcd", "--tests"])
        .arguments(&["--", "--ignored", "--nocapture"])
        .variable("GROUPLOCK_ETCD", "required")
        .variable("GROUPLOCK_FAULTS", "20")
        .run()
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
    &["phases", "-p", "3", "-s", "2"],
    &["phases-fifo-cancel", "-p", "3", "-s", "2"],
    &["phases-patient-cancel", "-p", "3", "-s", "2"],
];

fn explore(big: &[&str]) -> Result<(), String> {
    let run =
        ["run", "--release", "-p", "grouplock-cli", "--", "lab", "check", "--memory-limit", "8"];
    Program::cargo(&run).arguments(big).run()
}

pub(crate) fn finish(result: Result<(), String>) -> ExitCode {
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
    let tests = Program::cargo(&["test", "--workspace", "--no-fail-fast"]);
    match need_etcd() {
        // A server that is there and does not work is a failure, not a reason to skip.
        Ok(()) => tests.variable("GROUPLOCK_ETCD", "required").run().into(),
        Err(reason) => {
            println!("The tests of rooms on etcd will be skipped: {reason}");
            tests.run().into()
        }
    }
}

/// Lints for each feature alone and for all together; then the tests of the features. `send_guard` keeps the guards of mutexes from being watched, so
/// those of deadlock detection run without it.
fn features() -> Outcome {
    let lint = |features: &str| {
        Program::cargo(&["clippy", "-p", "grouplock", "--all-targets", "--features", features])
            .arguments(&["--", "-D", "warnings"])
            .run()
    };
    let all = "lock_api,send_guard,deadlock_detection,tracing";
    ["lock_api", "send_guard", "deadlock_detection", "tracing", all]
        .into_iter()
        .try_for_each(lint)
        .and_then(|()| {
            let watched = "lock_api,deadlock_detection,tracing";
            Program::cargo(&["test", "-p", "grouplock", "--features", watched])
                .arguments(&["--test", "lock_api", "--test", "deadlock", "--test", "tracing"])
                .run()
        })
        .and_then(|()| {
            let sent = ["test", "-p", "grouplock", "--features", all, "--test", "lock_api"];
            Program::cargo(&sent).run()
        })
        .and_then(|()| {
            Program::cargo(&["test", "-p", "grouplock", "--doc", "--all-features"]).run()
        })
        .into()
}

fn doc() -> Outcome {
    Program::cargo(&["doc", "--workspace", "--no-deps", "--all-features"])
        .variable("RUSTDOCFLAGS", "-D warnings")
        .run()
        .into()
}

/// The clock is the machine's, as timeouts must end.
const MIRI_FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-disable-isolation";

/// Runs a model of `GroupLock`: a test of the same name as the `cfg` that puts the tool in place of the standard library.
fn model(tool: &str) -> Program {
    let folder = format!("target/{tool}");
    Program::cargo(&["test", "--release", "-p", "grouplock", "--test", tool])
        .arguments(&["--target-dir", &folder])
        .variable("RUSTFLAGS", &format!("--cfg {tool}"))
}

fn loom() -> Outcome {
    model("loom").run().into()
}

fn shuttle() -> Outcome {
    model("shuttle").run().into()
}

/// Small configurations of every lock, interpreted.
fn miri() -> Outcome {
    if let Err(reason) = need_miri() {
        return Outcome::Skipped(reason);
    }
    let lock = ["miri", "test", "-p", "grouplock", "--target-dir", "target/miri"];
    let tests = ["--lib", "--test", "lock", "--", "phases::tests::", "sharing::", "views::"];
    let checked = Program::nightly(&lock).arguments(&tests).variable("MIRIFLAGS", MIRI_FLAGS).run();
    if let Err(reason) = checked {
        return Outcome::Failed(reason);
    }
    Program::nightly(&["miri", "test", "-p", "grouplock-algorithms", "--target-dir", "target/miri"])
        .arguments(&["--lib", "--test", "data", "--test", "misuse", "--test", "schedules"])
        .variable("MIRIFLAGS", MIRI_FLAGS)
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
        .and_then(|()| {
            let test = ["test", "-Zbuild-std", "--target", &target, "--target-dir", "target/tsan"];
            Program::nightly(&test)
                .arguments(&["-p", "grouplock", "--test", "lock", "--", "storms::", "striped::"])
                .variable("RUSTFLAGS", "-Zsanitizer=thread")
                .run()
        })
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
    install(&["chromium", "chromium-driver"])?;
    if there() { Ok(()) } else { Err("installed, but it does not run".to_owned()) }
}

/// For the tests and measurements of rooms on etcd, which start servers of their own.
pub(crate) fn need_etcd() -> Result<(), String> {
    let there = || {
        let etcdctl = Program::new("etcdctl").variable("ETCDCTL_API", "3");
        Program::new("etcd").arguments(&["--version"]).succeeds()
            && etcdctl.arguments(&["version"]).succeeds()
    };
    if there() {
        return Ok(());
    }
    install(&["etcd-server", "etcd-client"])?;
    // The package starts a service that nobody here asked for; where there is no systemd it does not.
    Program::new("systemctl").arguments(&["disable", "--now", "etcd"]).succeeds();
    if there() { Ok(()) } else { Err("installed, but it does not run".to_owned()) }
}

/// Installs packages of Debian's.
fn install(packages: &[&str]) -> Result<(), String> {
    Program::new("apt-get").arguments(&["update"]).run()?;
    Program::new("apt-get").arguments(&["install", "--yes"]).arguments(packages).run()
}

fn need_sources() -> Result<(), String> {
    need("rust-src", || {
        let installed = std::process::Command::new("rustup")
            .args(["component", "list", "--toolchain", "nightly", "--installed"])
            .output();
        installed.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains("rust-src"))
    })
}
