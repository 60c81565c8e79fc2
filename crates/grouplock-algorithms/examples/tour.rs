//! A tour: the algorithms on real threads under the monitors, one line each.
//!
//! `cargo run --release --example tour [THREADS [SESSIONS [PASSAGES]]]`, by default 8 threads, 3
//! sessions and 2,000 passages per thread.

use std::process::ExitCode;

use grouplock_algorithms::claims::Claims;
use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use grouplock_algorithms::for_each_algorithm;
use grouplock_algorithms::monitor::{MOST_PROCESSES, Report, Violation, Watched as M, Workout};
use grouplock_algorithms::raw::{RawGroup, RawMutex};

/// What locks over a mutex are made of.
type L = DvirTaubenfeld1Swap<M>;

/// What one algorithm did.
type Line = (Claims, Result<Report, Violation>);

fn group<L: RawGroup<M> + 'static>(workout: &Workout) -> Line {
    (L::claims(), workout.group::<L>())
}

fn mutex<L: RawMutex<M> + 'static>(workout: &Workout) -> Line {
    (L::claims(), workout.mutex::<L>())
}

/// The algorithms, except `maor_taubenfeld`, which does not work, and `recoverable`, whose
/// processes may die.
fn tour() -> Vec<fn(&Workout) -> Line> {
    let mut tour: Vec<fn(&Workout) -> Line> = Vec::new();
    macro_rules! visit_each {
        (($visit:ident) $($ident:ident $name:literal $lock:ty;)*) => {
            $(tour.push($visit::<$lock>);)*
        };
    }
    for_each_algorithm!(over => visit_each!(group));
    for_each_algorithm!(withdrawing => visit_each!(group));
    for_each_algorithm!(group => visit_each!(group));
    for_each_algorithm!(rounds => visit_each!(group));
    for_each_algorithm!(policy => visit_each!(group));
    for_each_algorithm!(mutex => visit_each!(mutex));
    for_each_algorithm!(withdrawing_mutex => visit_each!(mutex));
    tour
}

fn main() -> ExitCode {
    let workout = match workout(std::env::args().skip(1)) {
        Ok(workout) => workout,
        Err(mistake) => {
            eprintln!("tour: {mistake}\nusage: tour [THREADS [SESSIONS [PASSAGES]]]");
            return ExitCode::from(2);
        }
    };
    let Workout { threads, sessions, passages, .. } = workout;
    println!(
        "{threads} threads, {sessions} sessions, {} passages through each lock; a mutex has a session per thread\n",
        threads * passages
    );
    println!(
        "{:24} {:>8} {:>12} {:>19} {:>8}  first come first served",
        "algorithm", "entries", "most inside", "changes of session", "time"
    );
    let mut broken = 0;
    let tour = tour();
    for visit in &tour {
        let (claims, outcome) = visit(&workout);
        match outcome {
            Ok(Report { entries, most_inside, switches, elapsed, .. }) => {
                let order = if claims.fcfs.is_claimed() { "held" } else { "not claimed" };
                let name = claims.name;
                let seconds = elapsed.as_secs_f64();
                println!(
                    "{name:24} {entries:8} {most_inside:12} {switches:19} {seconds:6.2} s  {order}"
                );
            }
            Err(violation) => {
                broken += 1;
                println!("{:24} {violation}", claims.name);
            }
        }
    }
    println!("\n{} locks, {broken} of them broken", tour.len());
    ExitCode::from(u8::from(broken > 0))
}

/// The workout that the arguments ask for.
fn workout(arguments: impl Iterator<Item = String>) -> Result<Workout, String> {
    let mut workout = Workout { threads: 8, sessions: 3, passages: 2000, ..Workout::default() };
    for (place, argument) in arguments.enumerate() {
        let number = match argument.parse::<u32>() {
            Ok(number) if number > 0 => number as usize,
            _ => return Err(format!("`{argument}` is not a whole number from 1 on")),
        };
        match place {
            0 if number > MOST_PROCESSES => {
                return Err(format!(
                    "{number} threads are too many: the monitors follow {MOST_PROCESSES}"
                ));
            }
            0 => workout.threads = number,
            1 => workout.sessions = number as u64,
            2 => workout.passages = number,
            _ => return Err(format!("`{argument}` is one argument too many")),
        }
    }
    Ok(workout)
}
