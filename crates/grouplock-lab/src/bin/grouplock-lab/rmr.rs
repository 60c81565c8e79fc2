//! `grouplock-lab rmr`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use grouplock_algorithms::claims::Growth;
use grouplock_lab::Subject;
use grouplock_lab::rmr::{self, Contended, Measurement, Model, Options, RmrError};
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
    let all = rmr::names();
    let names = match arguments.algorithm.as_str() {
        "all" => all,
        asked => vec![asked],
    };
    let mut sizes = arguments.processes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    // Wrong arguments are reported before any work is done.
    let mut found = Vec::new();
    for name in names {
        let mut lock = None;
        for &processes in &arguments.processes {
            lock = Some(rmr::find(name, processes, &options)?);
        }
        let (bound, measured, broken) = (None, Vec::new(), Vec::new());
        found.extend(lock.map(|lock| Found { lock, bound, measured, broken }));
    }
    for Found { lock, bound, measured, broken } in &mut found {
        for &processes in &sizes {
            show(&format!("{}, {processes} processes", lock.name));
            match rmr::measure(lock.name, processes, &options) {
                Ok(all) => measured.extend(all.into_iter().filter(|m| m.model == arguments.model)),
                Err(error) => broken.push(error),
            }
        }
        show(&format!("{}, any number of processes", lock.name));
        *bound = rmr::bounds(lock.name)?.map(|bounds| bounds.of(arguments.model));
    }
    show("");
    if arguments.json {
        let rows = found.iter().flat_map(|found| {
            found.measured.iter().map(|measured| {
                let mut row = json!(measured);
                row["bound"] = json!(found.bound);
                if let (false, Some(row)) = (arguments.contention, row.as_object_mut()) {
                    row.retain(|key, _| !key.ends_with("_contention"));
                }
                row
            })
        });
        say(&format!("{:#}\n", rows.collect::<serde_json::Value>()));
    } else {
        say(&table(arguments.model, &found));
        if arguments.contention {
            found.iter().flat_map(|found| &found.measured).for_each(|m| say(&contention(m)));
        }
    }
    let broken = || found.iter().flat_map(|found| &found.broken);
    broken().for_each(|error| eprintln!("grouplock-lab: {error}"));
    Ok(if broken().next().is_none() { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) })
}

/// The results for one lock in one model.
struct Found {
    lock: Subject,
    /// Proven for any number of processes.
    bound: Option<u64>,
    measured: Vec<Measurement>,
    /// The sizes at which the lock breaks.
    broken: Vec<RmrError>,
}

impl Found {
    /// The cost, compared with the claim.
    fn summary(&self, model: Model) -> String {
        let claims = self.lock.claims;
        let claim = if model == Model::Dsm { claims.rmr_dsm } else { claims.rmr_cc };
        if let Some(least) = self.broken.iter().filter_map(RmrError::breaks_with).min() {
            return format!(
                "it breaks with {least} processes: figures of other sizes show nothing"
            );
        }
        let growth = if let Some(bound) = self.bound {
            return format!("proven: at most {bound} for any N; claimed {claim}");
        } else if self.measured.iter().any(|point| point.remote_spinning) {
            Growth::Unbounded
        } else {
            let cost = |m: &Measurement| match m.amortised {
                Some(mean) if claim.amortised => rmr::rounded_up(mean),
                _ => m.max,
            };
            let seen: Vec<_> = self.measured.iter().map(|m| (m.processes, cost(m))).collect();
            rmr::fit(&seen)
        };
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
}

/// One line per lock and size, and one summary per lock.
fn table(model: Model, found: &[Found]) -> String {
    let mut text = format!("remote memory references per passage, {model}\n\n");
    _ = writeln!(
        text,
        "{:<24} {:>4} {:>8} {:>9}  schedule of the largest",
        "algorithm", "N", "found", "mean"
    );
    for found in found {
        for Measurement { algorithm, processes, max, mean, amortised, schedule, .. } in
            &found.measured
        {
            let largest_mean =
                amortised.map_or_else(String::new, |m| format!("; largest mean of a run {m:.2}"));
            _ = writeln!(
                text,
                "{algorithm:<24} {processes:>4} {max:>8} {mean:>9.2}  {schedule}{largest_mean}"
            );
        }
        for error in &found.broken {
            _ = writeln!(text, "{error}");
        }
        _ = writeln!(text, "{:<24} {}", "", found.summary(model));
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
