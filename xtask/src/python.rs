//! The Python package: its wheel, and its tests in a virtual environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::run::{LIMIT, Program, root};
use crate::steps::OF_PROGRAM;

/// The virtual environment of the tools and of the tests.
const ENVIRONMENT: &str = "target/python/venv";

/// The packages in it.
const TOOLS: [&str; 3] = ["maturin>=1.9,<2", "pytest>=8", "pytest-xdist>=3"];

/// The package.
const PACKAGE: &str = "bindings/python";

/// The tests take seconds. A longer run means that a test hangs.
const TESTS: Duration = Duration::from_secs(10 * 60);

/// A program of the environment.
fn tool(name: &str) -> Program {
    Program::new(root().join(ENVIRONMENT).join("bin").join(name))
}

/// Whether the environment exists.
pub(crate) fn is_there() -> bool {
    tool("maturin").arguments(&["--version"]).succeeds()
        && tool("python").arguments(&["-c", "import pytest, xdist"]).succeeds()
}

/// Makes the environment.
pub(crate) fn make() -> Result<(), String> {
    Program::new("python3").arguments(&["-m", "venv", "--clear", ENVIRONMENT]).run()?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    tool("python").arguments(&install).arguments(&TOOLS).run()
}

/// Builds a wheel with `program` into `out`, which is emptied first. Returns the wheel.
fn build(program: &Path, profile: &str, out: &str) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("the wheel cannot be prepared: {error}");
    let scripts = root().join(PACKAGE).join("grouplock.data/scripts");
    fs::create_dir_all(&scripts).map_err(failed)?;
    fs::copy(program, scripts.join("grouplock")).map_err(failed)?;
    let folder = root().join(out);
    _ = fs::remove_dir_all(&folder);
    let manifest = format!("{PACKAGE}/Cargo.toml");
    tool("maturin")
        .arguments(&["build", "--quiet", "--strip", "--profile", profile, "--out", out])
        .arguments(&["--manifest-path", &manifest, "--target-dir", "target"])
        .quietly(LIMIT)?;
    let wheels = fs::read_dir(&folder).map_err(failed)?.flatten().map(|entry| entry.path());
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|it| it == "whl"));
    wheels.next().ok_or_else(|| "maturin has built no wheel".to_owned())
}

/// Builds the wheel of the release, into target/wheels.
pub(crate) fn release() -> Result<(), String> {
    let build_program = ["build", "--release", "-p", "grouplock-cli", "--all-features"];
    Program::cargo(&build_program).run()?;
    let wheel = build(&root().join("target/release/grouplock"), "release", "target/wheels")?;
    println!("{}", wheel.display());
    Ok(())
}

/// The program with all features, as the step `tests` builds it: with the features that tests
/// enable in its dependencies. It names one test only for this reason. Without any, cargo would
/// leave those features out, and compile a third of everything again.
pub(crate) fn debug_program() -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--profile", "test", "--workspace", "--bin", "grouplock"];
    let build = Program::cargo(&build).arguments(&["--test", "gbp", "--features", OF_PROGRAM]);
    build.quietly(LIMIT)?;
    Ok(root().join("target/debug/grouplock"))
}

/// Builds the wheel with the program of the other steps, installs it, and runs its tests.
pub(crate) fn test(variables: &[(&str, &str)]) -> Result<(), String> {
    let wheel = build(&debug_program()?, "dev", "target/python/wheels")?;
    let wheel = wheel.display().to_string();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    tool("python")
        .arguments(&install)
        .arguments(&["--no-deps", "--force-reinstall", &wheel])
        .quietly(LIMIT)?;
    let folder = root().join(PACKAGE);
    tool("python")
        .folder(&folder)
        .arguments(&["-m", "pytest", "-p", "no:cacheprovider", "-q", "--doctest-modules"])
        .arguments(&["--doctest-glob=README.md", "tests", "README.md", "--pyargs", "grouplock"])
        .variables(variables)
        .variable("PYTHONDONTWRITEBYTECODE", "1")
        .quietly(TESTS)
        .map(|ended| print!("{}", ended.output))
}
