//! One way to say that a test could not run, so that no test passes silently without a check.

use std::fs::OpenOptions;
use std::io::Write;

/// Says that `test` cannot run here, and why. The test returns afterwards.
///
/// `cargo xtask test` sets two variables:
/// - `GROUPLOCK_REQUIRED=1` in CI: everything must run, so this panics.
/// - `GROUPLOCK_SKIPPED` names a file. This appends a line with `test` and `reason`, which appears
///   in the summary. libtest hides the output of a passing test, so printing alone is not enough.
///
/// # Panics
/// If everything must run.
pub fn skip(test: &str, reason: &str) {
    let required = std::env::var_os("GROUPLOCK_REQUIRED").is_some_and(|value| value == "1");
    assert!(!required, "{test} cannot run, and must (GROUPLOCK_REQUIRED=1): {reason}");
    let line = format!("SKIPPED {test}: {reason}\n");
    // libtest would capture `eprint!`. If the write fails, nothing else can be done.
    _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("GROUPLOCK_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        // One write, so that lines of several test programs do not mix.
        _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// The name of the test on this thread, for helpers that several tests share: libtest names its
/// threads.
pub fn current_test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Not a test: the others run it in a process with its own variables.
    #[test]
    fn skips_when_required() {
        if std::env::var_os("GROUPLOCK_TESTING_SKIPS").is_some() {
            super::skip(&super::current_test(), "there is no moon");
        }
    }

    fn run(variables: &[(&str, &str)]) -> bool {
        let mut program = Command::new(std::env::current_exe().expect("this program has a path"));
        program.arg("skips_when_required").env("GROUPLOCK_TESTING_SKIPS", "1");
        program.env_remove("GROUPLOCK_REQUIRED").env_remove("GROUPLOCK_SKIPPED");
        let output = program.envs(variables.iter().copied()).output();
        output.expect("this program can be started").status.success()
    }

    #[test]
    fn a_skip_fails_where_everything_is_required() {
        assert!(!run(&[("GROUPLOCK_REQUIRED", "1")]));
        assert!(run(&[("GROUPLOCK_REQUIRED", "0")]));
        assert!(run(&[]));
    }

    #[test]
    fn a_skip_is_written_to_the_file_that_collects_them() {
        let name = format!("grouplock-skipped-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let collected = [("GROUPLOCK_SKIPPED", path.to_str().expect("a plain path"))];
        assert!(run(&collected) && run(&collected));
        let lines = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it is ours");
        let line = "SKIPPED skip::tests::skips_when_required: there is no moon\n";
        assert_eq!(lines, line.repeat(2));
    }
}
