//! Test programs. Cargo builds them and this module runs them, so that no test can hang.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::libtest::{self, Watch};
use crate::run::{Ended, LIMIT, Program};

/// The time limits for work that takes seconds. They are long enough for a loaded machine.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// For one test. (At least a minute.)
    pub(crate) test: Duration,
    /// For all tests of a program.
    pub(crate) program: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { test: Duration::from_secs(10 * 60), program: Duration::from_secs(20 * 60) }
    }
}

/// A test program that cargo has built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    /// The name of the test, or `lib` or the name of the binary for unit tests.
    pub(crate) name: String,
    executable: PathBuf,
    /// The folder of the package. The program runs there.
    folder: PathBuf,
}

impl TestProgram {
    /// The program in a line of cargo's output with `--message-format=json`, if there is one.
    fn read(line: &str) -> Option<Self> {
        // Cargo writes one object per line, without spaces. Our paths need no escapes.
        let text = |after: &str| {
            let rest = line.split_once(after)?.1;
            rest.split_once('"').map(|(text, _)| text.to_owned())
        };
        let executable = PathBuf::from(text("\"executable\":\"")?);
        let folder = PathBuf::from(text("\"manifest_path\":\"")?).parent()?.to_owned();
        // `…/crates/lock#0.1.0`, or `…/fuzz#lock-fuzz@0.1.0` if the folder has another name.
        let version = text("\"package_id\":\"")?.rsplit_once('#')?.1.to_owned();
        let package = match version.split_once('@') {
            Some((package, _)) => package.to_owned(),
            None => folder.file_name()?.to_str()?.to_owned(),
        };
        let target = line.split_once("\"target\":{")?.1;
        let name = target.split_once("\"name\":\"")?.1.split_once('"')?.0;
        let library = target.contains("\"kind\":[\"lib\"]");
        let name = if library { "lib".to_owned() } else { name.to_owned() };
        // Binaries that tests need are built too, and listed in the same way.
        let profile = line.split_once("\"profile\":{")?.1.split_once('}')?.0;
        let tests = profile.contains("\"test\":true");
        tests.then_some(TestProgram { package, name, executable, folder })
    }

    /// Its name in reports.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.package, self.name)
    }

    pub(crate) fn program(&self) -> Program {
        let program = Program::new(&self.executable)
            .folder(&self.folder)
            .hidden("CARGO_MANIFEST_DIR", &self.folder);
        // In each execution loom maps and unmaps the stacks of its threads. Two tests of a process
        // wait for each other there, and take twice the processor time of one after the other.
        if self.name == "loom" { program.variable("RUST_TEST_THREADS", "1") } else { program }
    }
}

/// Builds the test programs that a `cargo test` would run.
pub(crate) fn build(cargo: Program) -> Result<Vec<TestProgram>, String> {
    let cargo = cargo.arguments(&["--no-run", "--message-format=json-render-diagnostics"]);
    let ended = cargo.quietly(LIMIT)?;
    Ok(ended.output.lines().filter_map(TestProgram::read).collect())
}

/// Runs one program, or any program with the output of libtest, with arguments of libtest, and
/// reads its output. Prints its closing lines, and all output if it fails.
pub(crate) fn run(shown: &str, program: Program, arguments: &[&str], limits: Limits) -> Ended {
    let mut watch = Watch::new(limits.test);
    let program = program.arguments(arguments);
    let mut ended = program.watched(limits.program, |text| watch.read(text, Instant::now()));
    if ended.trouble.is_none() {
        // To libtest, a filter without matches is a success.
        let missing = arguments.iter().find(|it| !libtest::ran_one_of(&ended.output, it));
        ended.trouble = missing.map(|filter| format!("no test `{filter}` ran"));
    }
    let seconds = ended.took.as_secs_f64();
    let mut report = format!("{shown}: {seconds:.1} s\n");
    if let Some(trouble) = &ended.trouble {
        report.push_str(&ended.output);
        _ = writeln!(report, "FAILED: {shown}: {trouble}");
    } else {
        for line in &watch.closing {
            report.push_str(line);
            report.push('\n');
        }
    }
    // In one call, because several programs run at the same time.
    print!("{report}");
    ended
}

/// Programs that take long, the longest first, so that the end does not wait for one of them.
const LONG: &[(&str, &str)] = &[
    ("grouplock-algorithms", "locks"),
    ("grouplock-lab", "verdicts"),
    ("grouplock-algorithms", "loom"),
    ("grouplock-mutants", "convicted"),
    ("grouplock-etcd", "servers"),
    ("grouplock", "lock"),
    ("grouplock-quorum", "network"),
    ("grouplock-room", "directory"),
    ("grouplock-quorum", "explore"),
    ("grouplock-cli", "rooms"),
    ("grouplock-etcd", "model"),
    ("grouplock-mutants", "spin"),
];

/// Runs all programs, as many at a time as there are cores, and at least two, because many tests
/// sleep. All run even if one fails. Returns the failures.
pub(crate) fn run_all(
    mut programs: Vec<TestProgram>,
    filter: &[&str],
    variables: &[(&str, &str)],
    limits: Limits,
) -> Vec<String> {
    let place = |program: &TestProgram| {
        let known = LONG.iter().position(|(p, n)| *p == program.package && *n == program.name);
        known.unwrap_or(LONG.len())
    };
    programs.sort_by_key(place);
    let waiting = Mutex::new(programs.iter());
    let failures = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let next = || waiting.lock().expect("nobody panics with it").next();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let shown = program.shown();
                    let program = program.program().variables(variables);
                    let ended = run(&shown, program, filter, limits);
                    if let Some(trouble) = ended.trouble {
                        failures.lock().expect("as above").push(format!("{shown}: {trouble}"));
                    }
                }
            });
        }
    });
    failures.into_inner().expect("as above")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, name: &str, test: bool) -> String {
        format!(
            "{{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///r/crates/lock#0.1.0\",\
             \"manifest_path\":\"/r/crates/lock/Cargo.toml\",\"target\":{{\"kind\":[\"{kind}\"],\
             \"crate_types\":[\"bin\"],\"name\":\"{name}\",\"src_path\":\"/r/crates/lock/x.rs\",\
             \"edition\":\"2024\",\"doc\":false,\"doctest\":false,\"test\":true}},\"profile\":{{\
             \"opt_level\":\"2\",\"debuginfo\":1,\"test\":{test}}},\"features\":[],\
             \"filenames\":[\"/r/target/debug/deps/x-1\"],\"executable\":\"/r/target/debug/deps/x-1\",\
             \"fresh\":false}}"
        )
    }

    #[test]
    fn test_programs_are_found_in_what_cargo_says() {
        let program = TestProgram::read(&line("test", "sharing", true)).expect("it is one");
        assert_eq!(program.shown(), "lock sharing");
        assert_eq!(program.executable, PathBuf::from("/r/target/debug/deps/x-1"));
        assert_eq!(program.folder, PathBuf::from("/r/crates/lock"));
        let elsewhere = line("test", "sharing", true).replace("lock#0.1.0", "fuzz#lock-fuzz@0.1.0");
        let elsewhere = TestProgram::read(&elsewhere).expect("it is one");
        assert_eq!(elsewhere.shown(), "lock-fuzz sharing");
        let unit = TestProgram::read(&line("lib", "lock", true)).expect("it is one");
        assert_eq!(unit.shown(), "lock lib");
    }

    #[test]
    fn a_test_that_hangs_is_named_and_killed() {
        let said = "echo 'test a::b has been running for over 60 seconds'; sleep 600";
        let limits = Limits { test: Duration::from_secs(60), program: Duration::from_secs(9 * 60) };
        let ended = run("fake", Program::new("sh").arguments(&["-c", said]), &[], limits);
        assert!(ended.cut_off && ended.took < Duration::from_secs(60), "{:?}", ended.took);
        assert!(ended.trouble.is_some_and(|why| why.contains("`a::b` ran for over 60 seconds")));
    }

    #[test]
    fn what_is_no_test_program_is_left_out() {
        assert_eq!(TestProgram::read(&line("bin", "program", false)), None);
        let library = line("lib", "lock", true)
            .replace("\"/r/target/debug/deps/x-1\",\"fresh", "null,\"fresh");
        assert_eq!(TestProgram::read(&library), None);
        assert_eq!(TestProgram::read("   Compiling lock v0.1.0"), None);
    }
}
