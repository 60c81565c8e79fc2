//! The shipped sources with one fault: a test must notice it. `xtask/mutants` lists the faults.

mod list;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use self::list::{Check, Mutant};
use crate::libtest::{self, Watch};
use crate::programs::{self, Limits, TestProgram};
use crate::run::{Program, root};
use crate::steps::{OF_PROGRAM, with_features, with_units};

/// A check that takes longer has noticed the fault: a thread waits forever. The right sources have
/// the same limits.
const LIMITS: Limits =
    Limits { test: Duration::from_secs(3 * 60), program: Duration::from_secs(12 * 60) };

/// The copies of the sources, which are changed.
const TREE: &str = "target/mutants";

/// The mutants called `names`, or all if there are no names.
pub(crate) fn named(names: &[String]) -> Result<Vec<Mutant>, String> {
    let mut all = all()?;
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|it| it.name != **name)) {
        return Err(format!("no mutant is called `{unknown}`"));
    }
    all.retain(|mutant| names.is_empty() || names.contains(&mutant.name));
    Ok(all)
}

/// The mutants of `cargo xtask test`.
pub(crate) fn of_ci() -> Result<Vec<Mutant>, String> {
    let mut all = all()?;
    all.retain(|mutant| mutant.ci);
    Ok(all)
}

/// All mutants: the first of each file, the second of each file, … So when the time is over, some
/// of each file were tried. This order compiles more: one file after another is faster for all. It
/// starts with another mutant each time, so that many calls try them all.
pub(crate) fn in_turns() -> Result<Vec<Mutant>, String> {
    let mut all = turns(lists()?);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let first = now.as_secs() as usize % all.len().max(1);
    all.rotate_left(first);
    Ok(all)
}

fn turns<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut all: Vec<_> = lists.into_iter().flat_map(|list| list.into_iter().enumerate()).collect();
    all.sort_by_key(|(turn, _)| *turn);
    all.into_iter().map(|(_, one)| one).collect()
}

fn all() -> Result<Vec<Mutant>, String> {
    Ok(lists()?.into_iter().flatten().collect())
}

/// All mutants, by file. Every text must occur in its source once.
fn lists() -> Result<Vec<Vec<Mutant>>, String> {
    let folder = root().join("xtask/mutants");
    let files = fs::read_dir(&folder).map_err(|why| format!("`{}`: {why}", folder.display()))?;
    let files: BTreeSet<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    let mut lists = Vec::new();
    for path in files {
        let shown = path.display();
        let text = fs::read_to_string(&path).map_err(|why| format!("`{shown}`: {why}"))?;
        lists.push(list::read(&text).map_err(|why| format!("`{shown}`: {why}"))?);
    }
    for mutant in lists.iter().flatten() {
        let whole = fs::read_to_string(root().join(&mutant.file));
        let whole = whole.map_err(|why| format!("{}: `{}`: {why}", mutant.name, mutant.file))?;
        mutant.applied_to(&whole)?;
    }
    Ok(lists)
}

/// Whether a check runs on the right sources before it runs on the first of its mutants: a check that
/// always fails proves nothing.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Right {
    First,
    /// Not here, because the caller runs them too.
    Elsewhere,
}

/// Tries `mutants` until all are tried or the time is over. Returns how many were tried, and
/// whether these are all. The error lists the mutants that no check noticed, or says that there was
/// no time for any.
pub(crate) fn run(
    mutants: &[Mutant],
    right: Right,
    late: Option<Instant>,
) -> Result<(String, bool), String> {
    copy()?;
    let mut troubles = Vec::new();
    let mut passed = BTreeSet::new();
    let mut tried = 0;
    for mutant in mutants.iter().take_while(|_| late.is_none_or(|late| Instant::now() < late)) {
        tried += 1;
        let first = right == Right::First && passed.insert((&mutant.check, mutant.ci));
        let right = if first { run_right(mutant) } else { Ok(()) };
        match right.and_then(|()| noticed(mutant)) {
            Ok(how) => println!("{}: noticed: {how}", mutant.name),
            Err(why) => {
                println!("{} ({}): {why}", mutant.name, mutant.what);
                troubles.push(format!("{}: {why}", mutant.name));
            }
        }
    }
    let summary = format!("{} of {tried} mutants noticed", tried - troubles.len());
    println!("{summary}");
    let summary = format!("{summary}, {} in all", mutants.len());
    let all = tried == mutants.len();
    if troubles.is_empty() && tried > 0 {
        Ok((summary, all))
    } else {
        Err(format!("{summary}; {}", troubles.join("; ")))
    }
}

/// Copies the files that git knows and that changed since the last copy. The packages get another
/// version: so cargo builds them beside the right ones, and shares the dependencies.
fn copy() -> Result<(), String> {
    let listed = Command::new("git").arg("ls-files").current_dir(root()).output();
    let listed = listed.map_err(|reason| format!("git could not be started: {reason}"))?;
    for file in String::from_utf8_lossy(&listed.stdout).lines() {
        let (from, to) = (root().join(file), root().join(TREE).join(file));
        // A removed file is listed until the removal is committed.
        let Ok(mut right) = fs::read(&from) else { continue };
        if file == "Cargo.toml" {
            let text = String::from_utf8_lossy(&right).replace("\nversion = \"0.1.0\"", VERSION);
            right = text.into_bytes();
        }
        // Cargo compiles files with a new time.
        if fs::read(&to).is_ok_and(|copied| copied == right) || file == "Cargo.lock" && to.exists()
        {
            continue;
        }
        let copied = fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))
            .and_then(|()| fs::write(&to, right));
        copied.map_err(|reason| format!("`{file}` could not be copied: {reason}"))?;
    }
    Ok(())
}

/// Another version that satisfies the requirements of the packages.
const VERSION: &str = "\nversion = \"0.1.99\"";

/// Runs the check of a mutant on the right sources.
fn run_right(mutant: &Mutant) -> Result<(), String> {
    let program = built_for(&mutant.check, mutant.ci)?;
    let shown = format!("right sources: {}", mutant.check.shown());
    let ended = programs::run(&shown, program.program(), &mutant.check.filter(), LIMITS);
    ended.trouble.map_or(Ok(()), |why| Err(format!("its check fails on the right sources: {why}")))
}

/// Changes the file, runs the check, and changes the file back. Returns how the check noticed.
fn noticed(mutant: &Mutant) -> Result<String, String> {
    let path = root().join(TREE).join(&mutant.file);
    let failed = |reason| format!("`{}`: {reason}", path.display());
    let right = fs::read_to_string(&path).map_err(failed)?;
    fs::write(&path, mutant.applied_to(&right)?).map_err(failed)?;
    let built = built_for(&mutant.check, mutant.ci);
    let ended = built.map(|program| {
        let mut watch = Watch::new(LIMITS.test);
        let program = program.program().arguments(&mutant.check.filter());
        program.watched(LIMITS.program, |text| watch.read(text, Instant::now()))
    });
    fs::write(&path, right).map_err(failed)?;
    let ended = ended.map_err(|why| format!("does not compile: {why}"))?;
    let seconds = ended.took.as_secs();
    if ended.cut_off {
        return Ok(format!("it hangs ({seconds} s)"));
    }
    if ended.trouble.is_some() && libtest::started(&ended.output) {
        return Ok(format!("{seconds} s"));
    }
    let ran = libtest::ran(&ended.output);
    Err(format!("NOT NOTICED by {ran} tests of {}", mutant.check.shown()))
}

/// Builds the test program from the copied sources. The checks of CI are short, so optimising them
/// is not worth the time.
fn built_for(check: &Check, ci: bool) -> Result<TestProgram, String> {
    let manifest = format!("{TREE}/Cargo.toml");
    let cargo = Program::cargo(&["test", "--manifest-path", &manifest]);
    let profile = if ci && check.cfg.is_none() { "dev" } else { "test" };
    let cargo = cargo.arguments(&["--profile", profile]);
    let cargo = if let Some(tool) = &check.cfg {
        cargo
            .arguments(&["--target-dir", &format!("target/{tool}")])
            .arguments(&["-p", &check.package])
            .variable("RUSTFLAGS", &format!("--cfg {tool}"))
    } else if check.program == "lib" {
        let cargo = cargo.arguments(&["--target-dir", "target", "-p", &check.package]);
        cargo.arguments(with_units(&check.package))
    } else {
        // The whole workspace, as in the step `tests`: so shared dependencies are built with the
        // same features.
        cargo
            .arguments(&["--target-dir", "target", "--workspace"])
            .arguments(&["--features", OF_PROGRAM])
            .arguments(with_features(&check.program))
    };
    let cargo = match &*check.program {
        "lib" => cargo.arguments(&["--lib"]),
        name => cargo.arguments(&["--test", name]),
    };
    let built = programs::build(cargo)?;
    let fits = |it: &TestProgram| it.package == check.package && it.name == check.program;
    let found = built.into_iter().find(fits);
    found.ok_or_else(|| format!("there is no test program `{}`", check.shown()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_mutant_fits_its_source() {
        assert!(!super::all().expect("each text is in its file once").is_empty());
    }

    #[test]
    fn the_lists_take_turns() {
        assert_eq!(
            super::turns(vec![vec![1, 4, 6], vec![], vec![2], vec![3, 5]]),
            [1, 2, 3, 4, 5, 6]
        );
    }
}
