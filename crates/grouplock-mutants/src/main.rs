//! Explores every mutant, or those of the named algorithms, and writes the results to a file of
//! evidence.

use std::process::ExitCode;

use grouplock_lab::Verdict;
use grouplock_lab::report::Dossier;
use grouplock_mutants::list;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: grouplock-mutants FILE [ALGORITHM…], where FILE is a file of evidence");
        return ExitCode::from(2);
    };
    match run(&file, &arguments.collect::<Vec<_>>()) {
        Ok(count) => {
            println!("{file}: {count} mutants");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("grouplock-mutants: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, names: &[String]) -> Result<usize, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let mut evidence: Dossier = serde_json::from_str(&text)
        .map_err(|error| format!("{file} is no file of evidence: {error}"))?;
    let is_named = |of: &str| names.is_empty() || names.iter().any(|name| name == of);
    evidence.mutants.retain(|mutant| !is_named(&mutant.of));
    for case in list::all().into_iter().filter(|case| is_named(case.of)) {
        let outcome = case.explore();
        if outcome.verdict == Verdict::Limit {
            return Err(format!("{}, {}: the exploration came to no end", case.of, case.what));
        }
        evidence.mutants.push(case.record(&outcome));
    }
    // In the order of the list.
    let place =
        |of: &str, what: &str| list::all().iter().position(|c| c.of == of && c.what == what);
    evidence.mutants.sort_by_key(|mutant| place(&mutant.of, &mutant.what));
    let text = serde_json::to_string_pretty(&evidence).map_err(|error| error.to_string())?;
    std::fs::write(file, text + "\n").map_err(|error| format!("cannot write {file}: {error}"))?;
    Ok(evidence.mutants.len())
}
