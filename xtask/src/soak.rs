//! `cargo xtask soak`: runs the long versions of the tests, each for its share of the time.

use std::collections::VecDeque;
use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::budget::{self, Given, Order, Part, Reached};
use crate::mutants::{self, Right};
use crate::programs::{self, TestProgram};
use crate::run::{LIMIT, Program, root};
use crate::setup::Need;
use crate::steps::{OF_PROGRAM, modelled};

type Results = Vec<(String, Reached)>;

const PARTS: &[Part] = &[
    Part { name: "threads", share: 6, run: threads },
    Part { name: "loom-algorithms", share: 6, run: loom_algorithms },
    Part { name: "convicted", share: 4, run: convicted },
    Part { name: "storms", share: 4, run: storms },
    Part { name: "loom-two", share: 5, run: loom_two },
    Part { name: "shuttle", share: 3, run: shuttle },
    Part { name: "rooms", share: 4, run: rooms },
    Part { name: "quorum", share: 6, run: quorum },
    Part { name: "etcd", share: 5, run: etcd },
    Part { name: "fuzz", share: 3, run: fuzz },
    Part { name: "induction", share: 3, run: induction },
    Part { name: "explore", share: 6, run: explore },
    Part { name: "mutants", share: 5, run: all_mutants },
];

pub(crate) fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

/// So that all parts end within an hour on a busy machine too: builds may take longer than planned.
const USUAL: u32 = 45;

/// Parses the arguments.
pub(crate) fn order(arguments: &[String]) -> Result<Order, String> {
    let (mut minutes, mut named) = (USUAL, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--minutes" {
            let number = arguments.next().and_then(|number| number.parse().ok());
            minutes = number.filter(|n| *n > 0).ok_or("`--minutes` needs a number of minutes")?;
        } else {
            named.push(argument.clone());
        }
    }
    Ok(Order { parts: budget::named(PARTS, &named)?, minutes, plan: String::new() })
}

/// Every lock on real threads.
fn threads(given: &Given) -> Results {
    // On two cores 640,000 entries took 43 minutes.
    let entries = (1_000 * given.minutes).max(16_000).to_string();
    let cargo = release("grouplock-algorithms").arguments(&["--test", "locks"]);
    each_test(given, cargo, &["--nocapture", "threads::"], &[("GROUPLOCK_ENTRIES", &entries)])
}

/// The published locks under loom: only the tests that take minutes.
fn loom_algorithms(given: &Given) -> Results {
    let cargo = release("grouplock-algorithms").arguments(&["--test", "loom"]);
    each_test(given, cargo, IGNORED, &[])
}

/// The invariant of handover's proof, with more processes than in the tests.
fn induction(given: &Given) -> Results {
    each_test(given, release("grouplock-lab").arguments(&["--test", "induction"]), IGNORED, &[])
}

/// The mutants of algorithms that take minutes to convict.
fn convicted(given: &Given) -> Results {
    each_test(given, release("grouplock-mutants"), IGNORED, &[])
}

/// Many more passages and programs than in the tests.
fn storms(given: &Given) -> Results {
    let (passages, programs) = (300 * given.minutes, 1_500 * given.minutes);
    let cargo = release("grouplock").arguments(&["--test", "lock"]);
    let variables = [
        ("GROUPLOCK_PASSAGES", &*passages.to_string()),
        ("GROUPLOCK_PROGRAMS", &*programs.to_string()),
    ];
    each_test(given, cargo, &["--nocapture", "storms::", "reference::"], &variables)
}

/// The models of the lock without a bound.
fn loom_two(given: &Given) -> Results {
    each_test(given, model("loom"), &["--nocapture"], &[("GROUPLOCK_LOOM_SECONDS", SECONDS)])
}

fn shuttle(given: &Given) -> Results {
    each_test(given, model("shuttle"), &["--nocapture"], &[("GROUPLOCK_SHUTTLE_SECONDS", SECONDS)])
}

/// Storms of processes, by the library and by the program.
fn rooms(given: &Given) -> Results {
    let cargo = release("grouplock-room").arguments(&["-p", "grouplock-cli", "--tests"]);
    let cargo = cargo.arguments(&["--features", OF_PROGRAM]);
    each_test(given, cargo, IGNORED, &[])
}

/// Explorations and storms of GBP.
fn quorum(given: &Given) -> Results {
    each_test(given, release("grouplock-quorum").arguments(&["--tests"]), IGNORED, &[])
}

/// The model, and every fault of rooms on etcd again and again.
fn etcd(given: &Given) -> Results {
    if let Err(reason) = Need::Etcd.meet() {
        return vec![("etcd".to_owned(), Reached::Failed(reason))];
    }
    let times = given.minutes.div_ceil(10).to_string();
    let variables = [("GROUPLOCK_REQUIRED", "1"), ("GROUPLOCK_FAULTS", &*times)];
    each_test(given, release("grouplock-etcd").arguments(&["--tests"]), IGNORED, &variables)
}

/// Fuzzing. Half of the time, tests make random input, as many at a time as there are cores. In the
/// other half, libFuzzer runs one target after the other.
fn fuzz(given: &Given) -> Results {
    let start = Instant::now();
    let half = given.left() / 2;
    let variables = [("GROUPLOCK_FUZZ_SECONDS", SECONDS)];
    let random = Given { end: start + half, minutes: given.minutes, plan: String::new() };
    let cargo = release("grouplock-fuzz").arguments(&["--test", "strangers"]);
    let mut results = each_test(&random, cargo, &["--nocapture"], &variables);
    results.extend(guided(&given.after_building(start + half)));
    results
}

/// The build of libFuzzer's program, its corpus and its findings.
const GUIDED: &str = "target/fuzz";

/// The instrumentation for libFuzzer: edges and comparisons.
const SANCOV: &str = "--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

fn guided(given: &Given) -> Results {
    if !Program::new("c++").arguments(&["--version"]).succeeds() {
        let why = "libFuzzer needs a C++ compiler".to_owned();
        return vec![("guided".to_owned(), Reached::Failed(why))];
    }
    let start = Instant::now();
    // With an explicit target, even if it is this machine's: so build scripts are not instrumented.
    let host = Program::new("rustc").arguments(&["--print", "host-tuple"]).quietly(LIMIT);
    let built = host.and_then(|host| {
        let host = host.output.trim().to_owned();
        let build = ["build", "--release", "-p", "grouplock-fuzz", "--bin", "guided"];
        Program::cargo(&build)
            .arguments(&["--target", &host, "--target-dir", GUIDED])
            .variable("RUSTFLAGS", SANCOV)
            .quietly(LIMIT)?;
        Ok(root().join(GUIDED).join(host).join("release/guided"))
    });
    let program = match built {
        Ok(program) => program,
        Err(why) => return vec![("build of guided".to_owned(), Reached::Failed(why))],
    };
    let targets = match Program::new(&program).arguments(&["--targets"]).quietly(LIMIT) {
        Ok(text) => text.output,
        Err(why) => return vec![("targets".to_owned(), Reached::Failed(why))],
    };
    // libFuzzer's output counts too.
    let targets: Vec<_> = targets.lines().filter_map(|line| line.strip_prefix("target ")).collect();
    let given = given.after_building(start);
    let mut results = Vec::new();
    for (done, target) in targets.iter().enumerate() {
        let (kept, found) = (format!("{GUIDED}/kept/{target}"), format!("{GUIDED}/found/{target}"));
        let made = [&kept, &found].iter().try_for_each(|it| fs::create_dir_all(root().join(it)));
        if let Err(why) = made {
            results.push((kept, Reached::Failed(why.to_string())));
            continue;
        }
        let time = given.left() / (targets.len() - done) as u32;
        let run = Program::new(&program)
            .arguments(&[target, "-timeout=30", "-max_len=65536", "-verbosity=1"])
            .arguments(&[&format!("-artifact_prefix={found}/")])
            .arguments(&[&format!("-max_total_time={}", time.as_secs().max(1)), &kept]);
        // It begins with the last corpus, and ends by itself.
        let how = match reached(run, time + LIMIT) {
            Reached::Failed(why) => Reached::Failed(format!(
                "{why}; again: `cargo run -p grouplock-fuzz -- {target} {found}/*`"
            )),
            how => how,
        };
        results.push((format!("guided {target}"), how));
    }
    results
}

/// Explorations that take minutes: algorithm, processes, sessions, and other options.
const BIG: &[&str] = &[
    "handover -p 4 -s 2",
    "handover -p 3 -s 3",
    "handover+dvir-taubenfeld-1-swap -p 3 -s 2",
    "keane-moir+dvir-taubenfeld-1-swap -p 3 -s 2",
    "generalized-bakery -p 3 -s 2 --passages 2",
    "black-white-bakery-gme -p 3 -s 2",
    "petrovic -p 3 -s 2",
    "recoverable -p 3 -s 2",
    "phases -p 3 -s 2",
    "phases-fifo-cancel -p 3 -s 2",
    "phases-patient-cancel -p 3 -s 2",
    "phases-cancel -p 2 -s 2",
    "phases-fifo-alone-cancel -p 2 -s 2",
    "phases-patient-alone-cancel -p 2 -s 2",
    "phases-setup -p 2 -s 2",
    "phases-fifo-setup-cancel -p 2 -s 2",
    "phases-patient-setup-cancel -p 2 -s 2",
    "phases-fifo-mixed -p 2 -s 2",
    "phases-patient-mixed -p 2 -s 2",
];

/// The explorations, one after the other: each may take most of the memory.
fn explore(given: &Given) -> Results {
    let build = ["build", "--release", "-p", "grouplock-lab", "--bin", "grouplock-lab"];
    let start = Instant::now();
    if let Err(why) = Program::cargo(&build).quietly(LIMIT) {
        return vec![("build".to_owned(), Reached::Failed(why))];
    }
    let given = given.after_building(start);
    let mut waiting: VecDeque<_> = BIG.iter().collect();
    let mut results = Vec::new();
    while let Some(what) = waiting.pop_front() {
        let time = given.left() / (waiting.len() as u32 + 1);
        let words: Vec<_> = what.split(' ').collect();
        let lab = Program::new(root().join("target/release/grouplock-lab"));
        let lab = lab.arguments(&["check", "--memory-limit", "8"]).arguments(&words);
        results.push(((*what).to_owned(), reached(lab, time)));
    }
    results
}

/// All mutants, those of CI included.
fn all_mutants(given: &Given) -> Results {
    let tried =
        mutants::in_turns().and_then(|all| mutants::run(&all, Right::First, Some(given.end)));
    let how = match tried {
        Ok((text, true)) => Reached::Ended(text),
        Ok((text, false)) => Reached::CutOff(text),
        Err(why) => Reached::Failed(why),
    };
    vec![("mutants".to_owned(), how)]
}

/// The value of a variable: how many seconds a test has. A test with this variable ends by itself,
/// and reports its progress.
const SECONDS: &str = "SECONDS";

const IGNORED: &[&str] = &["--ignored", "--nocapture"];

fn model(tool: &str) -> Program {
    modelled(tool).arguments(&["--release"])
}

fn release(package: &str) -> Program {
    Program::cargo(&["test", "--release", "-p", package])
}

/// Runs each test of the programs that `cargo` builds in its own process, as many at a time as
/// there are cores: so each ends, is cut off or fails separately. Unused time goes to the others.
fn each_test(
    given: &Given,
    cargo: Program,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Results {
    let start = Instant::now();
    let built = match programs::build(cargo) {
        Ok(built) => built,
        Err(why) => return vec![("build".to_owned(), Reached::Failed(why))],
    };
    let given = given.after_building(start);
    let (mut tests, mut unknown) = (VecDeque::new(), Vec::new());
    for program in &built {
        match tests_of(program, arguments) {
            Ok(names) => tests.extend(names.into_iter().map(|test| (program, test))),
            Err(why) => unknown.push((program.shown(), Reached::Failed(why))),
        }
    }
    let waiting = Mutex::new(tests);
    let results = Mutex::new(unknown);
    let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let (next, more) = {
                        let mut waiting = waiting.lock().expect("no thread panics with it");
                        (waiting.pop_front(), waiting.len())
                    };
                    let Some((program, test)) = next else { return };
                    // The number of remaining rounds of tests, with this one.
                    let rounds = (more + 1).div_ceil(cores) as u32;
                    let time = given.left() / rounds;
                    let seconds = time.as_secs().saturating_sub(2).max(1).to_string();
                    let mut run =
                        program.program().arguments(&["--exact", &test]).arguments(arguments);
                    for (name, value) in variables {
                        run = run.variable(name, if *value == SECONDS { &seconds } else { value });
                    }
                    let how = reached(run, time);
                    let name = format!("{} {test}", program.shown());
                    results.lock().expect("as above").push((name, how));
                }
            });
        }
    });
    let results = results.into_inner().expect("as above");
    if results.is_empty() {
        return vec![("tests".to_owned(), Reached::Failed("there are none".to_owned()))];
    }
    results
}

/// The names of a program's tests.
fn tests_of(program: &TestProgram, arguments: &[&str]) -> Result<Vec<String>, String> {
    let list = program.program().arguments(arguments).arguments(&["--list"]);
    let listed = list.quietly(LIMIT)?.output;
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs a program for `time`, and returns its progress.
fn reached(program: Program, time: Duration) -> Reached {
    let start = Instant::now();
    println!("$ {}", program.shown());
    let ended = program.watched(time, |_| None);
    let seconds = start.elapsed().as_secs();
    let seen = figures(&ended.output).map_or(String::new(), |line| format!(", {line}"));
    match ended.trouble {
        // The output of a test that has a time limit.
        None if ended.output.contains("not to its end") => {
            Reached::CutOff(format!("{seconds} s{seen}"))
        }
        None => Reached::Ended(format!("{seconds} s{seen}")),
        Some(_) if ended.cut_off => Reached::CutOff(format!("{seconds} s{seen}")),
        Some(why) => {
            print!("{}", ended.output);
            Reached::Failed(why)
        }
    }
}

/// The last line with a progress.
fn figures(output: &str) -> Option<&str> {
    const WORDS: [&str; 10] = [
        "states",
        "cases",
        "rounds",
        "executions",
        "terations",
        "Iteration",
        "entries",
        "passages",
        "programs",
        "runs in",
    ];
    let tells = |line: &&str| {
        WORDS.iter().any(|word| line.contains(word)) && line.contains(|c: char| c.is_ascii_digit())
    };
    let line = output.lines().rev().find(tells)?.trim().trim_matches('=').trim();
    Some(line.char_indices().nth(120).map_or(line, |(end, _)| &line[..end]))
}

#[cfg(test)]
mod tests {
    use super::figures;

    #[test]
    fn the_last_figures_are_told() {
        let said =
            "running 1 test\n40 states so far\nlock: 16000 entries, 12 switches\ntest a ... ok\n";
        assert_eq!(figures(said), Some("lock: 16000 entries, 12 switches"));
        let loom = " ================== Iteration 40000 ==================\n\n";
        assert_eq!(figures(loom), Some("Iteration 40000"));
        assert_eq!(figures("running 1 test\n"), None);
        let long = format!("{} states 1", "é".repeat(200));
        assert_eq!(figures(&long).map(|line| line.chars().count()), Some(120));
    }
}
