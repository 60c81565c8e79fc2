//! `cargo xtask soak`: runs the long versions of the tests, each for its share of the time.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
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
    Part {
        name: "threads",
        share: 6,
        build: || release(&["grouplock-algorithms locks"]),
        run: threads,
    },
    Part {
        name: "loom-algorithms",
        share: 6,
        build: || release(&["grouplock-algorithms loom"]),
        run: ignored,
    },
    Part {
        name: "convicted",
        share: 4,
        build: || {
            release(&[
                "grouplock-mutants convicted",
                "grouplock-mutants spin",
                "grouplock-mutants steps",
            ])
        },
        run: ignored,
    },
    Part { name: "storms", share: 4, build: || release(&["grouplock lock"]), run: storms },
    Part { name: "loom-two", share: 5, build: || model("loom"), run: loom_two },
    Part { name: "shuttle", share: 3, build: || model("shuttle"), run: shuttle },
    Part {
        name: "rooms",
        share: 4,
        build: || release(&["grouplock-room directory", "grouplock-cli rooms"]),
        run: ignored,
    },
    Part {
        name: "quorum",
        share: 6,
        build: || release(&["grouplock-quorum explore", "grouplock-quorum network"]),
        run: ignored,
    },
    Part { name: "etcd", share: 5, build: build_etcd, run: etcd },
    Part {
        name: "fuzz",
        share: 3,
        build: || {
            guided_program()?;
            release(&["grouplock-fuzz strangers"])
        },
        run: fuzz,
    },
    Part {
        name: "induction",
        share: 3,
        build: || release(&["grouplock-lab induction"]),
        run: ignored,
    },
    Part { name: "explore", share: 6, build: build_lab, run: explore },
    // It builds each mutant.
    Part { name: "mutants", share: 6, build: || Ok(Vec::new()), run: all_mutants },
];

pub(crate) fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

/// A little less than an hour, because the last part may end a little late.
const USUAL: u32 = 55;

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
    each_test(given, &["--nocapture", "threads::"], &[("GROUPLOCK_ENTRIES", &entries)])
}

/// The tests that take too long for `cargo xtask test`.
fn ignored(given: &Given) -> Results {
    each_test(given, IGNORED, &[])
}

/// Many more passages and programs than in the tests.
fn storms(given: &Given) -> Results {
    let (passages, programs) = (300 * given.minutes, 1_500 * given.minutes);
    let variables = [
        ("GROUPLOCK_PASSAGES", &*passages.to_string()),
        ("GROUPLOCK_PROGRAMS", &*programs.to_string()),
    ];
    each_test(given, &["--nocapture", "storms::", "reference::"], &variables)
}

/// The models of the lock without a bound.
fn loom_two(given: &Given) -> Results {
    each_test(given, &["--nocapture"], &[("GROUPLOCK_LOOM_SECONDS", SECONDS)])
}

fn shuttle(given: &Given) -> Results {
    each_test(given, &["--nocapture"], &[("GROUPLOCK_SHUTTLE_SECONDS", SECONDS)])
}

fn build_etcd() -> Result<Vec<TestProgram>, String> {
    Need::Etcd.meet()?;
    release(&["grouplock-etcd model", "grouplock-etcd servers"])
}

/// The model, and every fault of rooms on etcd again and again.
fn etcd(given: &Given) -> Results {
    let times = given.minutes.div_ceil(10).to_string();
    let variables = [("GROUPLOCK_REQUIRED", "1"), ("GROUPLOCK_FAULTS", &*times)];
    each_test(given, IGNORED, &variables)
}

/// Fuzzing. Half of the time, tests make random input, as many at a time as there are cores. In the
/// other half, libFuzzer runs one target after the other.
fn fuzz(given: &Given) -> Results {
    let random = Given { end: Instant::now() + given.left() / 2, ..given.clone() };
    let variables = [("GROUPLOCK_FUZZ_SECONDS", SECONDS)];
    let mut results = each_test(&random, &["--nocapture"], &variables);
    results.extend(guided(given));
    results
}

/// The build of libFuzzer's program, its corpus and its findings.
const GUIDED: &str = "target/fuzz";

/// The instrumentation for libFuzzer: edges and comparisons.
const SANCOV: &str = "--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

fn guided_program() -> Result<PathBuf, String> {
    if !Program::new("c++").arguments(&["--version"]).succeeds() {
        return Err("libFuzzer needs a C++ compiler".to_owned());
    }
    // With an explicit target, even if it is this machine's: so build scripts are not instrumented.
    let host = Program::new("rustc").arguments(&["--print", "host-tuple"]).quietly(LIMIT)?;
    let host = host.output.trim();
    Program::cargo(&["build", "--release", "-p", "grouplock-fuzz", "--bin", "guided"])
        .arguments(&["--target", host, "--target-dir", GUIDED])
        .variable("RUSTFLAGS", SANCOV)
        .quietly(LIMIT)?;
    Ok(root().join(GUIDED).join(host).join("release/guided"))
}

fn guided(given: &Given) -> Results {
    let program = match guided_program() {
        Ok(program) => program,
        Err(why) => return vec![("build of guided".to_owned(), Reached::Failed(why))],
    };
    let targets = match Program::new(&program).arguments(&["--targets"]).quietly(LIMIT) {
        Ok(text) => text.output,
        Err(why) => return vec![("targets".to_owned(), Reached::Failed(why))],
    };
    // libFuzzer's output counts too.
    let targets: Vec<_> = targets.lines().filter_map(|line| line.strip_prefix("target ")).collect();
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

fn build_lab() -> Result<Vec<TestProgram>, String> {
    let build = ["build", "--release", "-p", "grouplock-lab", "--bin", "grouplock-lab"];
    Program::cargo(&build).quietly(LIMIT)?;
    Ok(Vec::new())
}

/// The explorations, one after the other: each may take most of the memory.
fn explore(given: &Given) -> Results {
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

fn model(tool: &str) -> Result<Vec<TestProgram>, String> {
    programs::build(modelled(tool).arguments(&["--release"]))
}

/// Builds test programs (a package and a name each) as the whole workspace would: so all parts share
/// their dependencies.
fn release(programs: &[&str]) -> Result<Vec<TestProgram>, String> {
    let cargo = Program::cargo(&["test", "--release", "--workspace", "--features", OF_PROGRAM]);
    let names = programs.iter().filter_map(|program| program.split(' ').next_back());
    let cargo = names.fold(cargo, |cargo, name| cargo.arguments(&["--test", name]));
    let mut built = programs::build(cargo)?;
    built.retain(|program| programs.contains(&&*program.shown()));
    Ok(built)
}

/// Runs each test of the part's programs in its own process, as many at a time as there are cores:
/// so each ends, is cut off or fails separately. Unused time goes to the others.
fn each_test(given: &Given, arguments: &[&str], variables: &[(&str, &str)]) -> Results {
    let (mut tests, mut unknown) = (VecDeque::new(), Vec::new());
    for program in &given.programs {
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
    use std::fs;
    use std::path::Path;

    use super::figures;
    use crate::run::root;

    /// The files below `folder` whose tests `cargo xtask test` leaves out.
    fn with_ignored(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("it can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                with_ignored(&path, found);
            } else if fs::read_to_string(&path).is_ok_and(|text| text.contains("#[ignore")) {
                found.push(path.display().to_string());
            }
        }
    }

    #[test]
    fn a_part_runs_the_tests_of_each_program_that_ignores_some() {
        let (mut found, crates) = (Vec::new(), root().join("crates"));
        with_ignored(&crates, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for file in found {
            let words: Vec<_> = file[crates.display().to_string().len()..].split('/').collect();
            let ["", package, "tests", program, ..] = words[..] else { panic!("{file}") };
            let program = format!("\"{package} {}\"", program.trim_end_matches(".rs"));
            assert!(include_str!("soak.rs").contains(&program), "{file}: no part has {program}");
        }
    }

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
