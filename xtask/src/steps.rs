//! The checks of `cargo xtask test`, each a step that can be run alone.

use std::time::Duration;

use crate::dist;
use crate::links;
use crate::mutants::{self, Right};
use crate::package;
use crate::programs::{self, Limits};
use crate::python;
use crate::readme;
use crate::run::Program;
use crate::setup::{Need, OLDEST, TARGETS};

/// One check.
pub(crate) struct Step {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// A description in one line.
    pub(crate) what: &'static str,
    /// Steps of one lane run one after the other. Lanes run at the same time. A lane without
    /// further steps takes the last step of another. The last steps of the second lane use what the
    /// first lane has built. No step rebuilds a program that tests run.
    pub(crate) lane: usize,
    /// The step does not run without these.
    pub(crate) needs: &'static [Need],
    pub(crate) check: fn(&Tests) -> Result<(), String>,
}

/// How to run test programs.
pub(crate) struct Tests {
    /// Their environment variables.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// All steps of `cargo xtask test`, in order.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", what: "formatting", lane: 0, needs: &[], check: fmt },
    Step {
        name: "links",
        what: "what the pages link to is there; each says whom it is for",
        lane: 0,
        needs: &[],
        check: |_| links::check(),
    },
    Step { name: "clippy", what: "lints, warnings are errors", lane: 0, needs: &[], check: clippy },
    Step {
        name: "tests",
        what: "unit, integration and loom tests",
        lane: 0,
        needs: &[],
        check: tests,
    },
    Step {
        name: "miri",
        what: "undefined behaviour, with strict provenance",
        lane: 1,
        needs: &[Need::Miri],
        check: miri,
    },
    Step {
        name: "tsan",
        what: "data races, by the thread sanitizer",
        lane: 1,
        needs: &[Need::Sources],
        check: tsan,
    },
    Step {
        name: "loom",
        what: "GroupLock in all executions that loom has of a few participants",
        lane: 1,
        needs: &[],
        check: |tests| model("loom", tests),
    },
    Step {
        name: "shuttle",
        what: "GroupLock in schedules drawn at random",
        lane: 1,
        needs: &[],
        check: |tests| model("shuttle", tests),
    },
    Step {
        name: "features",
        what: "the features of grouplock, each alone and together; documentation tests",
        lane: 1,
        needs: &[],
        check: features,
    },
    Step {
        name: "targets",
        what: "grouplock and its rooms for other platforms; grouplock with the oldest Rust",
        lane: 1,
        needs: &[Need::Targets, Need::Oldest],
        check: targets,
    },
    Step {
        name: "doc",
        what: "the documentation builds, warnings are errors",
        lane: 1,
        needs: &[],
        check: doc,
    },
    Step {
        name: "python",
        what: "the Python package: its wheel is built, installed and tested",
        lane: 1,
        needs: &[Need::Python, Need::Etcd],
        check: |tests| python::test(&tests.variables()),
    },
    Step {
        name: "package",
        what: "the crates are ready for crates.io",
        lane: 1,
        needs: &[],
        check: |_| package::check(),
    },
    Step {
        name: "readme",
        what: "the README's recording and figures are fresh",
        lane: 1,
        needs: &[],
        check: |_| readme::check(&python::debug_program()?),
    },
    Step {
        name: "dist",
        what: "the Debian package is made, installed into an empty root, and tried",
        lane: 1,
        needs: &[],
        check: |_| dist::test(&python::debug_program()?),
    },
    Step {
        name: "mutants",
        what: "sources with one thing wrong, which tests must notice",
        lane: 1,
        needs: &[],
        check: mutants,
    },
];

/// The steps called `names`, or all if there are no names. The error is an unknown name.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static Step>, String> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let step = |name: &String| {
        let found = STEPS.iter().find(|step| step.name == name);
        found.ok_or_else(|| format!("`{name}` is not a step of `cargo xtask test`"))
    };
    names.iter().map(step).collect()
}

/// The limit for steps that only compile.
const BUILD: Duration = Duration::from_secs(40 * 60);

/// The features of the program `grouplock` that are off by default. Every step that builds it
/// enables them, so that it is built once.
pub(crate) const OF_PROGRAM: &str = "grouplock-cli/etcd,grouplock-cli/gbp";

fn fmt(_: &Tests) -> Result<(), String> {
    Program::cargo(&["fmt", "--all", "--check"]).quietly(BUILD).map(drop)
}

fn clippy(_: &Tests) -> Result<(), String> {
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--features", OF_PROGRAM];
    Program::cargo(&clippy).arguments(&["--", "-D", "warnings"]).quietly(BUILD).map(drop)
}

/// The tests of grouplock that concern its features: with these features they run.
pub(crate) fn tests_of_features() -> Program {
    Program::cargo(&["test", "--workspace", "--features", TESTED_FEATURES])
        .arguments(&["--features", OF_PROGRAM])
        .arguments(&OF_FEATURES)
}

/// Arguments of cargo for the unit tests of a package: the features that have some.
pub(crate) fn with_units(package: &str) -> &'static [&'static str] {
    match package {
        "grouplock" => &["--features", "handover,lock_api,deadlock_detection"],
        _ => &[],
    }
}

/// Arguments of cargo for a test program of the workspace: the features that it concerns.
pub(crate) fn with_features(program: &str) -> &'static [&'static str] {
    if OF_FEATURES.contains(&program) { &["--features", TESTED_FEATURES] } else { &[] }
}

/// Lints cover examples without tests, and the step for features covers documentation.
pub(crate) fn all_tests() -> Program {
    Program::cargo(&["test", "--workspace", "--tests", "--features", OF_PROGRAM])
}

fn tests(tests: &Tests) -> Result<(), String> {
    told(&tests.programs(all_tests(), &[])?)
}

/// The features that these tests need.
const TESTED_FEATURES: &str = "grouplock/lock_api,grouplock/deadlock_detection,grouplock/tracing";

/// The tests of grouplock that concern its features.
const OF_FEATURES: [&str; 6] = ["--test", "lock_api", "--test", "deadlock", "--test", "tracing"];

/// Runs the lints for each feature alone and for all together, then the tests of the features. With
/// `send_guard`, deadlock detection does not track the guards of mutexes, so its tests run without
/// that feature. Then come the documentation tests of all packages, because the documentation of
/// grouplock describes all features. The lints of the program run with its default features, and
/// with none.
fn features(tests: &Tests) -> Result<(), String> {
    let all = "lock_api,send_guard,deadlock_detection,tracing,handover";
    for features in ["lock_api", "send_guard", "deadlock_detection", "tracing", all] {
        let lint = of_workspace("clippy", features).arguments(&["--quiet"]);
        let lint = if features == all {
            lint.arguments(&["--tests", "--examples"])
        } else {
            // Together with the library. Code that does not mention features was checked without
            // them.
            lint.arguments(&OF_FEATURES)
        };
        lint.arguments(&["--", "-D", "warnings"]).quietly(BUILD)?;
    }
    for features in [&[][..], &["--no-default-features"]] {
        // In the workspace, because its dependencies are already built.
        let lint = Program::cargo(&["clippy", "--quiet", "--workspace", "--bin", "grouplock"]);
        lint.arguments(features).arguments(&["--", "-D", "warnings"]).quietly(BUILD)?;
    }
    let with = |features| of_workspace("test", features);
    let mut failures = tests.programs(tests_of_features(), &[])?;
    let units = Program::cargo(&["test", "-p", "grouplock", "--lib"]);
    failures.extend(tests.programs(units.arguments(with_units("grouplock")), &[])?);
    failures.extend(tests.programs(with(all).arguments(&["--test", "lock_api"]), &[])?);
    let documentation = with(all).arguments(&["--doc", "--no-fail-fast"]);
    failures.extend(tests.run("documentation", documentation, &[]).err());
    told(&failures)
}

/// Only compiles, because the targets are other machines. With the oldest Rust, only the features
/// that do not need a newer one.
fn targets(_: &Tests) -> Result<(), String> {
    for target in TARGETS {
        let check = Program::cargo(&["check", "--quiet", "-p", "grouplock", "--target", target]);
        // Rooms on servers need a network.
        let rooms: &[_] = if target.starts_with("wasm") { &[] } else { &["-p", "grouplock-room"] };
        check.arguments(rooms).quietly(BUILD)?;
    }
    let features = "deadlock_detection,tracing,handover";
    let toolchain = format!("+{OLDEST}");
    Program::new("cargo")
        .arguments(&[&toolchain, "check", "--quiet", "-p", "grouplock", "--features", features])
        .arguments(&["--target-dir", "target/oldest"])
        .quietly(BUILD)
        .map(drop)
}

/// Cargo with features of grouplock, for the whole workspace. So the dependencies are those that
/// earlier steps have built.
fn of_workspace(command: &str, features: &str) -> Program {
    let features: Vec<_> = features.split(',').map(|it| format!("grouplock/{it}")).collect();
    Program::cargo(&[command, "--workspace", "--features", &features.join(",")])
        .arguments(&["--features", OF_PROGRAM])
}

fn doc(_: &Tests) -> Result<(), String> {
    Program::cargo(&["doc", "--quiet", "--workspace", "--no-deps", "--all-features"])
        .variable("RUSTDOCFLAGS", "-D warnings")
        .quietly(BUILD)
        .map(drop)
}

/// Cargo for a model of `GroupLock`. The test has the same name as the `cfg` that replaces the
/// standard library by the tool.
pub(crate) fn modelled(tool: &str) -> Program {
    let folder = format!("target/{tool}");
    Program::cargo(&["test", "-p", "grouplock", "--features", "handover", "--test", tool])
        .arguments(&["--target-dir", &folder])
        .variable("RUSTFLAGS", &format!("--cfg {tool}"))
}

fn model(tool: &str, tests: &Tests) -> Result<(), String> {
    told(&tests.programs(modelled(tool), &[])?)
}

/// The lock is checked with all its cores.
pub(crate) fn with_handover(package: &str) -> &'static [&'static str] {
    if package == "grouplock" { &["--features", "handover"] } else { &[] }
}

/// Uses the clock of the machine, because timeouts must end.
const MIRI_FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-disable-isolation";

/// Small configurations of every lock but `recoverable`, interpreted.
fn miri(tests: &Tests) -> Result<(), String> {
    let test = |package| {
        let miri = ["miri", "test", "-p", package, "--target-dir", "target/miri", "--no-fail-fast"];
        // A backtrace of each panic that a test expects would take miri minutes.
        Program::nightly(&miri)
            .arguments(with_handover(package))
            .variable("MIRIFLAGS", MIRI_FLAGS)
            .variable("RUST_BACKTRACE", "0")
    };
    let units = test("grouplock").arguments(&["--lib"]);
    let units = tests.run("grouplock lib under miri", units, &[]);
    let modules = ["sharing::", "views::", "guards::", "set_up::", "at_most::"];
    let lock = test("grouplock").arguments(&["--test", "lock"]);
    let lock = tests.run("grouplock under miri", lock, &modules);
    let text = test("grouplock-algorithms").arguments(&["--lib"]);
    let text = tests.run("grouplock-algorithms lib under miri", text, &[]);
    let small = ["data::", "misuse::", "schedules::", "giving_up::"];
    let locks = test("grouplock-algorithms").arguments(&["--test", "locks"]);
    let locks = tests.run("grouplock-algorithms under miri", locks, &small);
    told(&[units, lock, text, locks].into_iter().filter_map(Result::err).collect::<Vec<_>>())
}

/// The tests that protect plain data. They and the standard library are instrumented.
fn tsan(tests: &Tests) -> Result<(), String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let test = |package| {
        Program::nightly(&["test", "-Zbuild-std", "--target", &target, "-p", package])
            .arguments(with_handover(package))
            .arguments(&["--target-dir", "target/tsan"])
            .variable("RUSTFLAGS", "-Zsanitizer=thread --cfg tsan")
    };
    let units = test("grouplock-algorithms").arguments(&["--lib"]);
    let locks = test("grouplock-algorithms").arguments(&["--test", "locks"]);
    let lock = test("grouplock").arguments(&["--test", "lock"]);
    let mut failures = tests.programs(units, &[])?;
    failures
        .extend(tests.programs(locks, &["data::", "come_and_go::", "occupancy::", "giving_up::"])?);
    failures.extend(tests.programs(lock, &["storms::", "striped::"])?);
    told(&failures)
}

/// Other steps run the checks of these mutants on the right sources.
fn mutants(_: &Tests) -> Result<(), String> {
    mutants::run(&mutants::of_ci()?, Right::Elsewhere, None).map(drop)
}

fn told(failures: &[String]) -> Result<(), String> {
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n  ")) }
}

impl Tests {
    fn variables(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(name, value)| (*name, &**value)).collect()
    }

    /// Builds the programs of a `cargo test`, and runs their tests that `filter` names, or all.
    /// Returns the failures.
    fn programs(&self, cargo: Program, filter: &[&str]) -> Result<Vec<String>, String> {
        let built = programs::build(cargo)?;
        Ok(programs::run_all(built, filter, &self.variables(), Limits::default()))
    }

    /// Runs a program that cargo must start: its tests that `filter` names, or all.
    fn run(&self, shown: &str, cargo: Program, filter: &[&str]) -> Result<(), String> {
        println!("$ {}", cargo.shown());
        let cargo = cargo.variables(&self.variables());
        let limits = Limits::default();
        // It compiles first.
        let limits = Limits { program: BUILD + limits.program, ..limits };
        let ended = programs::run(shown, cargo.arguments(&["--"]), filter, limits);
        ended.trouble.map_or(Ok(()), |trouble| Err(format!("{shown}: {trouble}")))
    }
}
