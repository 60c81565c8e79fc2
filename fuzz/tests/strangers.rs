//! The targets with random bytes: `cargo test -p grouplock-fuzz` for a moment, and
//! `GROUPLOCK_FUZZ_SECONDS=60 cargo test -p grouplock-fuzz` for a minute each.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use fastrand::Rng;
use grouplock_fuzz::{TARGETS, named};

/// Lets a target read one input after the other, `times` times, or for `GROUPLOCK_FUZZ_SECONDS`
/// seconds. After a panic it prints the seed; `GROUPLOCK_FUZZ_SEED` repeats it.
fn fuzz(target: &str, times: u64, make: impl Fn(&[u8], &mut Rng) -> Vec<u8>) {
    let target = named(target);
    let right = target.right();
    target.read(&right);
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let end =
        variable("GROUPLOCK_FUZZ_SECONDS").map(|time| Instant::now() + Duration::from_secs(time));
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

/// Up to 200 bytes. Short inputs are more frequent than long ones.
fn made_up(_: &[u8], rng: &mut Rng) -> Vec<u8> {
    let length = rng.usize(..=200) >> rng.u32(0..6);
    (0..length).map(|_| rng.u8(..)).collect()
}

/// Limits of numbers.
const ENDS: [u64; 13] = [
    0,
    1,
    2,
    9,
    0x40,
    0x400,
    0x2000,
    0xffff,
    0x1_0000,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

/// A number, and the same number in both halves of the word: pairs of counts are often adjacent.
fn alone_and_twice(end: u64) -> [u64; 2] {
    [end, end << 32 | end & 0xffff_ffff]
}

/// Valid bytes of the same length, with some words of four or eight bytes replaced: by limits of
/// numbers, or by another word of the input. The replaced words are mostly close to a word that is
/// a number, because a large file is mostly empty or text. They are often in the first 256 bytes,
/// where rooms have their header.
fn reworded(right: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = right.to_vec();
    let word = |at: usize| right[at..].first_chunk::<8>().map_or(0, |it| u64::from_ne_bytes(*it));
    let is_text = |at: usize| right[at..at + 8].iter().all(|byte| matches!(byte, 0 | b' '..=b'~'));
    let numbers = (0..right.len() - 7).step_by(8).filter(|at| word(*at) != 0);
    // A length is a number, although it may look like a letter.
    let numbers: Vec<usize> = numbers.filter(|at| !is_text(*at) || word(*at) < 0x100).collect();
    for _ in 0..rng.usize(1..5) {
        let near = (rng.choice(&numbers).unwrap_or(&0) + 8 * rng.usize(0..3)).saturating_sub(8);
        let anywhere = 8 * rng.usize(..right.len() / 8);
        let early = anywhere % 256;
        let places = [near, near, near, early, early, early, anywhere];
        let at = *rng.choice(&places).unwrap_or(&near);
        let end = *rng.choice(&ENDS).unwrap_or(&0);
        let [end, pair] = alone_and_twice(end);
        let other = word(*rng.choice(&numbers).unwrap_or(&0));
        let small = rng.u64(0..16);
        let value = *rng.choice(&[end, pair, small, other]).unwrap_or(&end);
        let length = if rng.bool() { 4 } else { 8 };
        let at = if length == 4 && rng.bool() { at + 4 } else { at };
        if let Some(place) = bytes.get_mut(at..at + length) {
            place.copy_from_slice(&value.to_ne_bytes()[..length]);
        }
    }
    bytes
}

/// Valid bytes, with some changed, removed or repeated.
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

/// Pieces of text with a meaning somewhere, and some without.
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

/// Not random: each word that all participants share, with each limit.
fn each_common_word(target: &str) {
    let target = named(target);
    let right = target.right();
    for at in (0..256).step_by(8) {
        for value in ENDS.into_iter().flat_map(alone_and_twice) {
            let mut bytes = right.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            target.read(&bytes);
        }
    }
}

#[test]
fn a_rooms_file_with_each_common_word_at_its_end() {
    each_common_word("room-file");
}

#[test]
fn a_room_with_each_common_word_at_its_end_while_it_is_used() {
    each_common_word("room-in-use");
}

#[test]
fn a_rooms_file_with_other_words() {
    fuzz("room-file", 2_000, reworded);
}

#[test]
fn a_room_with_other_words_while_it_is_used() {
    fuzz("room-in-use", 500, reworded);
}

#[test]
fn places_durations_policies_and_names() {
    fuzz("words", 100_000, worded);
}

/// Earlier findings, in `found`: a folder for each target.
#[test]
fn what_was_found_before() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut read = 0;
    for (name, make) in TARGETS {
        // Most targets have no findings.
        for file in std::fs::read_dir(folder.join(name)).into_iter().flatten() {
            let path = file.expect("it can be listed").path();
            println!("{}", path.display());
            make().read(&std::fs::read(&path).expect("it can be read"));
            read += 1;
        }
    }
    assert!(read > 0, "there is something in {}", folder.display());
}
