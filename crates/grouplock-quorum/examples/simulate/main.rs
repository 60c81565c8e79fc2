//! Simulates, and writes a page with tables and plots: `simulate --out DIRECTORY [--seed NUMBER]`.

// The tests use the rest.
#[allow(dead_code)]
mod simulation;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use grouplock_quorum::{Coterie, Precedence, Settings, Time};
use grouplock_testing::plot::{Line, draw};

use simulation::{Load, Report, run};

const USAGE: &str = "simulate --out DIRECTORY [--seed NUMBER]";

fn main() -> ExitCode {
    let (out, seed) = match arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(mistake) => {
            eprintln!("simulate: {mistake}; expected {USAGE}");
            return ExitCode::from(2);
        }
    };
    match write(&out, seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("simulate: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut rest: impl Iterator<Item = String>) -> Result<(PathBuf, u64), String> {
    let (mut out, mut seed) = (None, 1);
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("`{option}` needs a value"))?;
        match option.as_str() {
            "--out" => out = Some(PathBuf::from(value)),
            "--seed" => {
                seed =
                    value.parse().map_err(|_| format!("`{value}` is no seed, a whole number"))?;
            }
            _ => return Err(format!("`{option}` is not an option")),
        }
    }
    Ok((out.ok_or("`--out` is missing")?, seed))
}

fn write(out: &Path, seed: u64) -> Result<(), Box<dyn std::error::Error>> {
    let (idle, contended, plot_messages) = messages(seed)?;
    let (waits, plot_waits) = waits(seed)?;
    let (concurrency, plot_concurrency) = concurrency(seed)?;
    let faults = faults(seed)?;
    let page = format!(
        "# GBP, simulated\n\n*For people who study GBP.*\n\n\
         Written by `cargo run --release -p grouplock-quorum --example simulate -- --out docs/quorum \
         --seed {seed}`. The members and processes are the code that ships. Network, clock and load are \
         simulated, and the same seed gives the same page. Every run checks mutual exclusion and \
         the growth of epochs; a violation would stop the program. [The \
         algorithm](../algorithms/gbp.md).\n\n\
         ## Messages: nobody competes\n\n\
         l processes of one session ask at once. The paper's 3l + 3(q−1) is met exactly.\n\n{idle}\n\
         ## Messages: all compete\n\n\
         300 processes, 40 sessions, 5 entries each, delays from 0.1 to 5 ms. I inquiries, Y returned votes, N notices of competition; \"counted\" is 3·entries + 3(q−1)·stages + I + 2Y + N.\n\n{contended}\n\
         ![messages per stage](messages.svg)\n\n\
         ## Waiting, by priority\n\n\
         Seven members, 60 processes, six sessions: five of priority 5 that never pause, one of priority 0. The run takes sixty seconds. \
         With static priorities, as in the paper's figures, the last session starves: its longest \
         wait grows with the run. With aging it waits five weights and at most a few stages more.\n\n{waits}\n\
         ![longest wait of priority 0](waits.svg)\n\n\
         ## Concurrency\n\n\
         1,000 processes at 31 members, 3 entries each.\n\n{concurrency}\n\
         ![entries per stage](concurrency.svg)\n\n\
         ## Faults\n\n\
         5 % of messages are lost, 5 % arrive twice, and delays from 0.1 to 15 ms reorder them. \
         0.5 % of stays end with the death of the process. Requests are repeated after 50 ms; \
         leases take 1 s. Each process enters four times.\n\n{faults}"
    );
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    for (name, text) in [
        ("README.md", page),
        ("messages.svg", plot_messages),
        ("waits.svg", plot_waits),
        ("concurrency.svg", plot_concurrency),
    ] {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Runs the simulation. The error names a violation.
fn sound(load: &Load, seed: u64) -> Result<Report, String> {
    let report = run(load, seed);
    match report.violations.first() {
        None => Ok(report),
        Some(first) => Err(format!("broken with seed {seed}: {first}")),
    }
}

type Texts = Result<(String, String, String), Box<dyn std::error::Error>>;

fn messages(seed: u64) -> Texts {
    let mut idle = "| members | q | l | sent | 3l + 3(q−1) |\n|---|---|---|---|---|\n".to_owned();
    let mut contended = "| members | q | entries | stages | I | Y | N | sent | counted | a stage, \
                         without 3l | 3(q−1) |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut lines: Vec<Line> = vec![("idle: 3(q−1)".into(), vec![]), ("contended".into(), vec![])];
    for members in [3, 7, 13, 21, 31] {
        let coterie = Coterie::plane(members)?;
        let q = coterie.largest_quorum() as u64;
        for processes in [1, 10, 100] {
            let report = sound(&Load { processes, ..Load::quiet(coterie.clone()) }, seed)?;
            let formula = 3 * processes + 3 * (q - 1);
            let sent = report.messages();
            _ = writeln!(idle, "| {members} | {q} | {processes} | {sent} | {formula} |");
        }
        let load = Load {
            processes: 300,
            sessions: 40,
            rounds: 5,
            think: Duration::from_millis(50),
            delay: (Duration::from_micros(100), Duration::from_millis(5)),
            ..Load::quiet(coterie)
        };
        let report = sound(&load, seed)?;
        let (entries, stages) = (report.entries, report.stages);
        let [i, y, n] = ["inquire", "relinquish", "contested"].map(|kind| report.sent(kind));
        let counted = 3 * entries + 3 * (q - 1) * stages + i + 2 * y + n;
        let sent = report.messages();
        let each = (sent - 3 * entries) as f64 / stages as f64;
        let base = 3 * (q - 1);
        _ = writeln!(
            contended,
            "| {members} | {q} | {entries} | {stages} | {i} | {y} | {n} | {sent} | {counted} | \
             {each:.1} | {base} |"
        );
        lines[0].1.push((f64::from(members), base as f64));
        lines[1].1.push((f64::from(members), each));
    }
    let title = "Messages between members, per stage";
    Ok((idle, contended, draw(title, "members", "messages", false, &lines).to_string()))
}

type TextAndPlot = Result<(String, String), Box<dyn std::error::Error>>;

fn milliseconds(micros: u64) -> String {
    format!("{:.1}", micros as f64 / 1000.0)
}

fn waits(seed: u64) -> TextAndPlot {
    let mut table =
        "| precedence | priority | entries | median ms | longest ms | still waiting |\n\
                     |---|---|---|---|---|---|\n"
            .to_owned();
    let aged = |millis| Precedence::Aged { weight: Duration::from_millis(millis) };
    let kinds =
        [("static", Precedence::Static), ("aged, 1 s", aged(1000)), ("aged, 100 ms", aged(100))];
    let mut lines = Vec::new();
    for (name, precedence) in kinds {
        let mut points = Vec::new();
        for seconds in [5, 10, 20, 40, 60] {
            let quiet = Load::quiet(Coterie::plane(7)?);
            let load = Load {
                settings: Settings { precedence, ..quiet.settings },
                processes: 60,
                sessions: 6,
                priorities: vec![0, 5, 5, 5, 5, 5],
                rounds: u32::MAX,
                think: Duration::from_millis(5),
                until: Time::from_micros(seconds * 1_000_000),
                ..quiet
            };
            let report = sound(&load, seed)?;
            let longest = |waits: &Vec<u64>| waits.last().copied().unwrap_or(0);
            let patient = report.waits.get(&0).map_or(0, longest);
            points.push((seconds as f64, (patient as f64 / 1000.0).max(1.0)));
            if seconds == 60 {
                for (priority, waits) in &report.waits {
                    let waiting = report.waiting.get(priority).copied().unwrap_or(0);
                    let median = waits.get(waits.len() / 2).copied().unwrap_or(0);
                    _ = writeln!(
                        table,
                        "| {name} | {priority} | {} | {} | {} | {waiting} |",
                        waits.len() as u64 - waiting,
                        milliseconds(median),
                        milliseconds(longest(waits)),
                    );
                }
            }
        }
        lines.push((name.to_owned(), points));
    }
    let title = "Longest wait of priority 0";
    Ok((table, draw(title, "length of the run, seconds", "milliseconds", true, &lines).to_string()))
}

fn concurrency(seed: u64) -> TextAndPlot {
    let mut table = "| sessions | entries | stages | entries a stage | most inside | seconds |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    let mut points = Vec::new();
    for sessions in [1, 2, 5, 10, 20, 50, 100] {
        let load = Load {
            processes: 1000,
            sessions,
            rounds: 3,
            think: Duration::from_millis(20),
            until: Time::from_micros(1_000_000_000),
            ..Load::quiet(Coterie::plane(31)?)
        };
        let report = sound(&load, seed)?;
        let each = report.entries as f64 / report.stages as f64;
        points.push((sessions as f64, each));
        _ = writeln!(
            table,
            "| {sessions} | {} | {} | {each:.1} | {} | {:.1} |",
            report.entries,
            report.stages,
            report.most_inside,
            report.ended.as_micros() as f64 / 1e6,
        );
    }
    let lines = [("1,000 processes".to_owned(), points)];
    Ok((table, draw("Entries per stage", "sessions", "entries", true, &lines).to_string()))
}

fn faults(seed: u64) -> Result<String, Box<dyn std::error::Error>> {
    let mut table =
        "| members | processes | entries | died inside | lost holdings | still waiting \
                     | messages an entry | broken |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (members, processes) in [(3, 50), (7, 200), (13, 500), (31, 2000)] {
        let report = sound(&Load::hostile(Coterie::smallest(members)?, processes), seed)?;
        _ = writeln!(
            table,
            "| {members} | {processes} | {} | {} | {} | {} | {:.1} | {} |",
            report.entries,
            report.deaths,
            report.losses,
            report.waiting.values().sum::<u64>(),
            report.messages() as f64 / report.entries as f64,
            report.violations.len(),
        );
    }
    Ok(table)
}
