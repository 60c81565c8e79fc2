//! The cost of passages, as users who choose a lock rely on it.

mod contention;
mod model;

use grouplock_algorithms::claims::Growth;
use grouplock_lab::rmr::{
    Failure, Measurement, Model, Options, RmrError, bounds, fit, measure, names,
};

/// Enough to reach the maxima, and quick.
const QUICK: Options =
    Options { passages: 4, seed: 1, search_rounds: 300, search_steps: 2_000_000 };

fn of(model: Model, measured: &[Measurement]) -> &Measurement {
    measured.iter().find(|measurement| measurement.model == model).expect("all models are measured")
}

fn points(name: &str, model: Model, sizes: &[usize]) -> Vec<(usize, u64)> {
    let max = |n| of(model, &measure(name, n, &QUICK).expect("it works")).max;
    sizes.iter().map(|&n| (n, max(n))).collect()
}

/// The locks for which a bound is proven: by model, in the order of [`Model::ALL`].
const PROVEN: [(&str, [u64; 4]); 6] = [
    ("mcs", [9, 9, 11, 4]),
    ("dvir-taubenfeld-1", [12, 12, 13, 4]),
    ("dvir-taubenfeld-1-swap", [8, 8, 10, 4]),
    ("dvir-taubenfeld-2", [16, 16, 17, 14]),
    ("maor-taubenfeld", [31, 31, 33, 19]),
    ("handover", [31, 31, 34, 25]),
];

#[test]
fn a_bound_is_proven_for_the_locks_whose_cost_is_constant_and_for_no_other() {
    for name in names() {
        let proven = PROVEN.iter().find(|(known, _)| *known == name).map(|(_, bounds)| *bounds);
        let bounds = bounds(name).expect("it is known");
        assert_eq!(bounds, proven, "{name}");
    }
}

#[test]
fn nothing_dearer_than_the_proven_bound_is_found_and_little_cheaper() {
    // The printed algorithm deadlocks.
    for (name, bounds) in PROVEN.into_iter().filter(|(name, _)| *name != "maor-taubenfeld") {
        let measured = [2, 8, 64].map(|n| measure(name, n, &QUICK).expect("it works"));
        for (model, bound) in Model::ALL.into_iter().zip(bounds) {
            let points: Vec<_> = measured.iter().map(|measured| of(model, measured)).collect();
            let largest = points.iter().map(|point| point.max).max();
            assert!(largest <= Some(bound), "{name}, {model}: {bound} is no bound: {points:?}");
            assert!(largest >= Some(bound - 3), "{name}, {model}: {bound} is far off: {points:?}");
            assert!(!points.iter().any(|point| point.remote_spinning), "{name} waits far away");
            let seen: Vec<_> = points.iter().map(|point| (point.processes, point.max)).collect();
            assert_eq!(fit(&seen), Growth::Constant, "{name}, {model}: {seen:?}");
        }
    }
}

#[test]
fn clh_and_anderson_are_constant_with_caches_and_wait_far_away_on_distributed_memory() {
    for name in ["clh", "anderson"] {
        let measured = [2, 8, 64].map(|n| measure(name, n, &QUICK).expect("it works"));
        for measured in &measured {
            // The longest path through the text, and one more read when the wait is over.
            assert!(of(Model::Cc, measured).max <= 5, "{name}: {measured:?}");
            assert!(of(Model::Dsm, measured).remote_spinning, "{name}");
        }
    }
}

#[test]
fn burns_lamport_is_quadratic_with_caches() {
    let points = points("burns-lamport", Model::Cc, &[4, 8, 16, 32]);
    // He, Gopalakrishnan and Gafni: N(N-1)/2 times a process must go back, and pays at least once.
    assert!(points.iter().all(|&(n, max)| max >= (n * (n - 1) / 2) as u64), "{points:?}");
    assert_eq!(fit(&points), Growth::Quadratic, "{points:?}");
}

#[test]
fn the_mutex_inside_petrovic_makes_it_quadratic_too() {
    assert_eq!(fit(&points("petrovic", Model::Cc, &[4, 8, 16, 32])), Growth::Quadratic);
}

#[test]
fn the_bakeries_are_linear_with_caches() {
    for name in ["bakery", "black-white-bakery", "generalized-bakery", "black-white-bakery-gme"] {
        let points = points(name, Model::CcWriteThrough, &[4, 8, 16, 32]);
        assert_eq!(fit(&points), Growth::Linear, "{name}: {points:?}");
    }
}

#[test]
fn waiting_for_a_register_of_another_is_reported() {
    let measured = measure("burns-lamport", 3, &QUICK).expect("it works");
    assert!(of(Model::Dsm, &measured).remote_spinning);
    assert!(!of(Model::Cc, &measured).remote_spinning);
}

#[test]
fn equal_seeds_give_equal_figures() {
    for name in names().into_iter().filter(|&name| name != "maor-taubenfeld") {
        let measured = measure(name, 5, &QUICK);
        assert!(measured.is_ok(), "{measured:?}");
        assert_eq!(measured, measure(name, 5, &QUICK));
    }
}

#[test]
fn a_process_alone_pays_what_the_text_says() {
    // Burns-Lamport sets and clears its bit.
    let measured = measure("burns-lamport", 1, &QUICK).expect("it works");
    assert_eq!(of(Model::Cc, &measured).max, 2);
    assert_eq!(of(Model::CcWriteBack, &measured).max, 1);
    assert_eq!(of(Model::CcWriteThrough, &measured).max, 2);
    assert_eq!(of(Model::Dsm, &measured).max, 0);
}

#[test]
fn a_lock_that_breaks_is_an_error_and_no_crash() {
    let error = measure("maor-taubenfeld", 8, &Options::default()).expect_err("it breaks");
    let RmrError::Broken { processes: 8, failure: Failure::Stuck, .. } = error else {
        panic!("{error}");
    };
}

#[test]
fn a_wrong_question_names_what_was_asked() {
    let error = |name, processes, options: &Options| {
        measure(name, processes, options).expect_err("it is wrong").to_string()
    };
    assert!(error("handovr", 2, &QUICK).contains("did you mean \"handover\""));
    assert!(error("mcs", 0, &QUICK).contains("0 processes"));
    assert!(error("mcs", 257, &QUICK).contains("1 to 256"));
    assert!(error("mcs", 2, &Options { passages: 0, ..QUICK }).contains("0 passages"));
}

fn growth(cost: impl Fn(usize) -> u64) -> Growth {
    fit(&[2, 4, 8, 16, 64, 256].map(|n| (n, cost(n))))
}

#[test]
fn exact_curves_are_recognised() {
    assert_eq!(growth(|_| 7), Growth::Constant);
    assert_eq!(growth(|n| 3 + 2 * u64::from(n.ilog2())), Growth::Logarithmic);
    assert_eq!(growth(|n| 5 * n as u64 + 9), Growth::Linear);
    assert_eq!(growth(|n| (n * n + 3 * n) as u64 / 2 + 4), Growth::Quadratic);
}

#[test]
fn a_cost_that_levels_off_is_constant() {
    assert_eq!(fit(&[(2, 19), (8, 22), (64, 22)]), Growth::Constant);
    assert_eq!(fit(&[(2, 10), (8, 14), (64, 14), (256, 13)]), Growth::Constant);
}

/// The growths for each combination of costs that are one more, one less or exact.
fn with_noise(cost: impl Fn(usize) -> usize) -> Vec<Growth> {
    let sizes = [2, 8, 64, 256];
    let mut seen: Vec<Growth> = (0..81)
        .map(|noise: usize| {
            let digit = |i: u32| noise / 3_usize.pow(i) % 3;
            fit(&[0, 1, 2, 3].map(|i| {
                let n = sizes[i as usize];
                (n, (cost(n) + digit(i) - 1) as u64)
            }))
        })
        .collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn noise_does_not_mislead() {
    assert_eq!(with_noise(|_| 7), [Growth::Constant]);
    assert_eq!(with_noise(|_| 28), [Growth::Constant]);
    assert_eq!(with_noise(|n| 3 + 2 * n.ilog2() as usize), [Growth::Logarithmic]);
    assert_eq!(with_noise(|n| n + 20), [Growth::Linear]);
    assert_eq!(with_noise(|n| 5 * n + 9), [Growth::Linear]);
    assert_eq!(with_noise(|n| n * n / 2 + 4), [Growth::Quadratic]);
    assert_eq!(fit(&[(2, 12), (8, 40), (64, 280), (256, 1190)]), Growth::Linear);
    assert_eq!(fit(&[(2, 8), (8, 70), (64, 4300), (256, 60_000)]), Growth::Quadratic);
}

#[test]
fn a_logarithm_on_top_of_a_constant_is_not_taken_for_a_constant() {
    assert_eq!(growth(|n| 20 + u64::from(n.ilog2())), Growth::Logarithmic);
    assert_eq!(fit(&[(2, 21), (8, 23), (64, 26), (256, 28)]), Growth::Logarithmic);
    assert_ne!(fit(&[(64, 26), (256, 28)]), Growth::Constant);
    assert!(!with_noise(|n| 20 + n.ilog2() as usize).contains(&Growth::Constant));
}

#[test]
fn too_few_points_say_nothing() {
    assert_eq!(fit(&[(2, 26), (8, 170)]), Growth::NotStated, "every curve goes through two points");
    assert_eq!(fit(&[]), Growth::NotStated);
    assert_eq!(fit(&[(8, 3), (8, 3)]), Growth::NotStated);
}
