//! `grouplock-lab rmr`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use grouplock_algorithms::claims::{Bound, Growth};
use grouplock_lab::Subject;
use grouplock_lab::report::{Broken, Dossier};
use grouplock_lab::rmr::{self, Contended, Measurement, Model, Options};
use serde_json::json;

use crate::{Answer, say, show};

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The algorithm, or `all`.
    algorithm: String,
    /// How many processes: one number or several, each from 1 to 256.
    #[arg(long, short = 'p', value_delimiter = ',', default_value = "2,8,64", value_parser = number::<usize>)]
    processes: Vec<usize>,
    /// What counts: cc (caches, Maor and Taubenfeld's definition), cc-write-back, cc-write-through
    /// (He, Gopalakrishnan and Gafni's), or dsm.
    #[arg(long, default_value = "cc")]
    model: Model,
    /// How many passages each process makes in a run.
    #[arg(long, default_value_t = Options::default().passages, value_parser = number::<usize>)]
    passages: usize,
    /// The seed of the random choices: the same seed gives the same figures.
    #[arg(long, default_value_t = Options::default().seed, value_parser = number::<u64>)]
    seed: u64,
    /// Print the largest cost found for each point contention (the largest number of processes that
    /// are in a passage at one time during the counted one) and for each interval contention (the
    /// number of processes whose passages overlap it).
    #[arg(long)]
    contention: bool,
    /// Print a list of JSON objects: `max` is the largest cost found, `bound` the bound that is
    /// proven for any number of processes, or null.
    #[arg(long)]
    json: bool,
}

/// Reads a number.
fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| "a whole number was expected, such as 8".to_owned())
}

/// Exit code if an algorithm broke while it was measured.
const BROKEN: u8 = 1;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let options =
        Options { passages: arguments.passages, seed: arguments.seed, ..Options::default() };
    let names = match arguments.algorithm.as_str() {
        "all" => rmr::names(),
        asked => vec![asked],
    };
    // Wrong arguments are reported before any work is done.
    let mut locks = Vec::new();
    for name in &names {
        let sizes = arguments.processes.iter();
        let found = sizes.map(|&processes| rmr::find(name, processes, &options));
        locks.extend(found.collect::<Result<Vec<_>, _>>()?.pop());
    }
    let mut sizes = arguments.processes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let mut found = Dossier::default();
    let wanted = |name: &str| names.contains(&name);
    found.count_references(&sizes, &options, &wanted, &mut |name, processes| {
        show(&format!("{name}, {processes} processes"));
    })?;
    show("");
    found.rmr.retain(|measured| measured.model == arguments.model);
    if arguments.json {
        let rows = found.rmr.iter().map(|measured| {
            let mut row = json!(measured);
            row["amortised"] = json!(measured.amortised);
            row["passages"] = json!(measured.passages);
            row["schedule"] = json!(measured.schedule);
            if arguments.contention {
                row["by_point_contention"] = json!(measured.by_point_contention);
                row["by_interval_contention"] = json!(measured.by_interval_contention);
            }
            row
        });
        say(&format!("{:#}\n", rows.collect::<serde_json::Value>()));
    } else {
        say(&table(arguments.model, &locks, &found));
        if arguments.contention {
            found.rmr.iter().for_each(|measured| say(&contention(measured)));
        }
    }
    found.broken.iter().for_each(|broken| eprintln!("grouplock-lab: {}", broken.because));
    Ok(if found.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) })
}

/// The cost of a lock, compared with the claim.
fn summary(claim: Bound, measured: &[&Measurement], broken: &[&Broken]) -> String {
    if let Some(least) = broken.iter().map(|broken| broken.processes).min() {
        return format!("it breaks with {least} processes: figures of other sizes show nothing");
    }
    if let Some(bound) = measured.iter().find_map(|point| point.bound) {
        return format!("proven: at most {bound} for any N; claimed {claim}");
    }
    let growth = rmr::growth(measured, claim);
    let verdict = match claim.claimed {
        Growth::NotStated => "nothing is claimed",
        claimed if growth <= claimed => "within the claim",
        _ => "MORE than claimed",
    };
    match growth {
        Growth::NotStated => format!("claimed {claim}; three sizes or more show how it grows"),
        Growth::Unbounded => {
            format!("grows as ∞ (waits on remote registers), claimed {claim}: {verdict}")
        }
        _ => format!("what was found grows as {growth}, claimed {claim}: {verdict}"),
    }
}

/// One line per lock and size, and one summary per lock.
fn table(model: Model, locks: &[Subject], found: &Dossier) -> String {
    let mut text = format!("remote memory references per passage, {model}\n\n");
    _ = writeln!(
        text,
        "{:<24} {:>4} {:>8} {:>9}  schedule of the largest",
        "algorithm", "N", "found", "mean"
    );
    for Subject { name, claims, .. } in locks {
        let points: Vec<_> = found.rmr.iter().filter(|point| point.algorithm == *name).collect();
        for Measurement { processes, max, mean, amortised, schedule, .. } in &points {
            let largest_mean =
                amortised.map_or_else(String::new, |m| format!("; largest mean of a run {m:.2}"));
            _ = writeln!(
                text,
                "{name:<24} {processes:>4} {max:>8} {mean:>9.2}  {schedule}{largest_mean}"
            );
        }
        let broken: Vec<_> = found.broken.iter().filter(|it| it.algorithm == *name).collect();
        for Broken { because, .. } in &broken {
            _ = writeln!(text, "{because}");
        }
        let claim = if model == Model::Dsm { claims.rmr_dsm } else { claims.rmr_cc };
        _ = writeln!(text, "{:<24} {}", "", summary(claim, &points, &broken));
    }
    text
}

/// The largest costs by contention of either kind, one line for each value of it.
fn contention(measured: &Measurement) -> String {
    let Measurement { algorithm, processes, model, .. } = measured;
    let mut text = format!(
        "\n{algorithm}, {processes} processes: largest found by contention k ({model})\n{:>6} {:>8} {:>9}\n",
        "k", "point", "interval"
    );
    let (point, interval) = (&measured.by_point_contention, &measured.by_interval_contention);
    for k in 1..=*processes {
        let of = |by: &[Contended]| {
            let found = by.iter().find(|one| one.contention == k);
            found.map_or_else(|| "-".to_owned(), |one| one.max.to_string())
        };
        let (point, interval) = (of(point), of(interval));
        if (&*point, &*interval) != ("-", "-") {
            _ = writeln!(text, "{k:>6} {point:>8} {interval:>9}");
        }
    }
    text
}
