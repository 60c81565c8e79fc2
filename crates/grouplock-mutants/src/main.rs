//! Explores every mutant, and puts what was found into a file of evidence.

use std::process::ExitCode;

use grouplock_lab::Verdict;
use grouplock_lab::report::Dossier;
use grouplock_mutants::list;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: grouplock-mutants FILE, a file of evidence");
        return ExitCode::from(2);
    };
    match run(&file) {
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

fn run(file: &str) -> Result<usize, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let mut evidence: Dossier = serde_json::from_str(&text)
        .map_err(|error| format!("{file} is no file of evidence: {error}"))?;
    evidence.mutants.clear();
    for case in list::all() {
        let outcome = case.explore();
        if outcome.verdict == Verdict::Limit {
            return Err(format!("{}, {}: the exploration came to no end", case.of, case.what));
        }
        evidence.mutants.push(case.record(&outcome));
    }
    let text = serde_json::to_string_pretty(&evidence).map_err(|error| error.to_string())?;
    std::fs::write(file, text + "\n").map_err(|error| format!("cannot write {file}: {error}"))?;
    Ok(evidence.mutants.len())
}
