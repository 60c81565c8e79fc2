//! The targets with bytes that are made up at random: `cargo test -p grouplock-fuzz` for a moment, and
//! `GROUPLOCK_FUZZ_MS=60000 cargo test -p grouplock-fuzz` for a minute each.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use fastrand::Rng;
use grouplock_fuzz::{Target, targets};

/// Lets a target read one thing after the other, `times` times, or for as many milliseconds as
/// `GROUPLOCK_FUZZ_MS` says. A panic is reported with the seed that leads to it; `GROUPLOCK_FUZZ_SEED`
/// repeats it.
fn fuzz(target: &str, times: u64, make: impl Fn(&[u8], &mut Rng) -> Vec<u8>) {
    let found = targets().into_iter().find(|(name, _)| *name == target);
    let target: Box<dyn Target + Send + Sync> = found.expect("a target of this name").1;
    let right = target.right();
    target.read(&right);
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let end = variable("GROUPLOCK_FUZZ_MS").map(|ms| Instant::now() + Duration::from_millis(ms));
    let first = variable("GROUPLOCK_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..));
    for seed in (0..).map(|number| first.wrapping_add(number)) {
        let done = seed.wrapping_sub(first);
        if end.map_or(done == times, |end| Instant::now() >= end) {
            break;
        }
        let run = || target.read(&make(&right, &mut Rng::with_seed(seed)));
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            eprintln!("GROUPLOCK_FUZZ_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

/// Up to 200 bytes, few of them more often than many.
fn made_up(_: &[u8], rng: &mut Rng) -> Vec<u8> {
    let length = rng.usize(..=200) >> rng.u32(0..6);
    (0..length).map(|_| rng.u8(..)).collect()
}

/// Bytes that were right, as many as before, with some overwritten: mostly close to what is not zero, as a
/// large file is mostly empty.
fn overwritten(right: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = right.to_vec();
    for _ in 0..rng.usize(1..4) {
        let mut at = rng.usize(..bytes.len());
        if rng.u8(0..4) > 0 {
            let busy = (at..bytes.len()).chain(0..at).find(|at| bytes[*at] != 0).unwrap_or(at);
            at = (busy + rng.usize(0..8)).min(bytes.len() - 1);
        }
        let any = rng.u8(..);
        bytes[at] = *rng.choice(&[0, 1, 2, 0x7f, 0x80, 0xff, any]).unwrap_or(&any);
    }
    bytes
}

/// Bytes that were right, with some changed, removed or repeated.
fn changed(right: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = right.to_vec();
    for _ in 0..rng.usize(1..8) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(0..6) {
            0 => bytes[at] = rng.u8(..),
            1 => bytes[at] ^= 1 << rng.u8(0..8),
            2 => bytes[at] = *rng.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap_or(&0),
            3 => drop(bytes.drain(at..(at + rng.usize(0..16)).min(bytes.len()))),
            4 => {
                let piece = bytes[at..(at + 16).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Pieces of text that mean something in one place or another, and some that mean nothing.
fn worded(_: &[u8], rng: &mut Rng) -> Vec<u8> {
    const BEGINNINGS: [&str; 8] =
        ["", "etcd://h:1", "gbp://h:1", "file:", "batch:", "priority:", "3", "2h"];
    const PIECES: [&str; 34] = [
        "/",
        "?",
        "&",
        "=",
        ",",
        ":",
        ".",
        "@",
        "%",
        "%2f",
        "%zz",
        "[::1]",
        "h",
        "i:2",
        "a=b",
        "c=d",
        "?a=b",
        "&c=d",
        "0",
        "1",
        "90",
        ".5",
        "d",
        "m",
        "ms",
        "ns",
        "-",
        "+",
        " ",
        "é",
        "x",
        "\0",
        "fifo",
        "99999999999999999999999999999999999999",
    ];
    let mut text = (*rng.choice(&BEGINNINGS).unwrap_or(&"")).to_owned();
    for _ in 0..rng.usize(0..8) {
        text.push_str(rng.choice(&PIECES).unwrap_or(&""));
    }
    text.into_bytes()
}

#[test]
fn frames_of_any_bytes() {
    fuzz("frames", 20_000, made_up);
}

#[test]
fn frames_that_were_right_before() {
    fuzz("frames", 20_000, changed);
}

#[test]
fn a_log_that_was_right_before() {
    fuzz("log", 200, changed);
}

#[test]
fn a_log_with_right_checksums() {
    fuzz("summed-log", 1_000, changed);
}

#[test]
fn a_rooms_file_that_was_right_before() {
    fuzz("room-file", 200, changed);
}

#[test]
fn a_rooms_file_with_other_words() {
    fuzz("room-file", 200, overwritten);
}

#[test]
fn places_durations_policies_and_names() {
    fuzz("words", 100_000, worded);
}
