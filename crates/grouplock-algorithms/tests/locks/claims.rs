//! The claims are complete, and a reader can follow the texts with the paper open.

use grouplock_algorithms as locks;
use grouplock_algorithms::claims::{Claim, Claims, Growth, Kind, Limit, Primitive, Text};
use grouplock_algorithms::memory::Native;
use grouplock_algorithms::raw::{RawGroup, RawMutex};

/// Checks what is true of every algorithm's claims.
fn check(claims: &Claims) {
    let Claims { name, kind, .. } = *claims;
    assert!(
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
        "{name}"
    );
    assert!(!claims.source.is_empty(), "{name} has no source");
    assert!(claims.mutual_exclusion.is_claimed(), "{name} claims to be a lock");

    // Implications between properties.
    let implies = |a: Claim, b: Claim| !a.is_claimed() || b.is_claimed();
    assert!(implies(claims.starvation_freedom, claims.deadlock_freedom), "{name}");
    assert!(implies(claims.exit.bounded, claims.exit.group_bounded), "{name}");
    assert!(implies(claims.exit.group_bounded, claims.exit.terminating), "{name}");
    let entering = claims.entering;
    let gce = entering.group_concurrent_entering;
    assert!(implies(entering.concurrent_entering, gce), "{name}");
    assert!(implies(entering.strong_group_concurrent_entering, gce), "{name}");
    assert!(implies(gce, entering.concurrent_occupancy), "{name}");
    let sce = entering.strong_concurrent_entering;
    assert!(implies(sce, entering.concurrent_entering), "{name}");
    assert!(implies(sce, entering.strong_group_concurrent_entering), "{name}");
    assert!(implies(claims.strong_fifo, claims.fcfs), "{name}");
    assert_eq!(kind == Kind::Group, claims.strong_fifo == Claim::NotApplicable, "{name}");
    assert_eq!(kind == Kind::Mutual, claims.fife == Claim::NotApplicable, "{name}");
    assert_eq!(
        kind == Kind::Mutual,
        entering.concurrent_occupancy == Claim::NotApplicable,
        "{name}"
    );
    assert_eq!(kind == Kind::Mutual, claims.sessions == Limit::NotApplicable, "{name}");

    // In these algorithms, a process cannot spin locally on distributed memory at a bounded cost by
    // reads and writes alone.
    if !claims.primitives.contains(&Primitive::CompareAndSwap) && kind == Kind::Mutual {
        assert_eq!(claims.rmr_dsm.claimed, Growth::Unbounded, "{name}");
    }
}

/// Every shared access is on its own line, with the paper's number after it.
fn check_text(claims: &Claims) {
    let (code, _) =
        claims.text.contents.rsplit_once("fn inspect").unwrap_or((claims.text.contents, ""));
    // The beginning of the entry section.
    let entry = ["unsafe fn acquire", "unsafe fn enter", "fn enter_fast", "fn request"];
    let begins = code.lines().position(|line| entry.iter().any(|entry| line.contains(entry)));
    check_lines(claims.text, code, begins.expect("an algorithm has an entry section"));
    for part in claims.text.parts {
        check_lines(*part, part.contents, 0);
    }
}

fn check_lines(text: Text, code: &str, begins: usize) {
    let mut numbered = 0;
    for (at, line) in code.lines().enumerate().skip(begins) {
        let access = [
            ".read(",
            ".write(",
            ".fas(",
            ".cas(",
            ".signal(",
            ".wait_for(",
            ".wait_unless(",
            ".holds(",
            ".faa(",
            ".await_other(",
        ];
        if !access.iter().any(|access| line.contains(access)) {
            continue;
        }
        let number = text.paper_line(at as u32 + 1);
        assert!(number.is_some(), "{}:{}: no line number beside {line:?}", text.file, at + 1);
        numbered += 1;
    }
    assert!(numbered >= 2, "{}: {numbered} accesses", text.file);
}

/// A page of `docs/algorithms` names the algorithm and its text. The index there links to the page.
/// The crate's documentation has the module.
fn check_page(claims: &Claims) {
    let Claims { name, text, .. } = claims;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: std::path::PathBuf| {
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let folder = root.join("docs/algorithms");
    let index = read(folder.join("README.md"));
    let pages = std::fs::read_dir(&folder).expect("there are pages").map(|entry| {
        let entry = entry.expect("the folder can be read");
        (entry.file_name().into_string().expect("names are plain"), read(entry.path()))
    });
    let file = text.file.strip_prefix("crates/").unwrap_or(text.file);
    let mut its_own = pages.filter(|(page, contents)| {
        page != "README.md" && contents.contains(file) && contents.contains(&format!("`{name}`"))
    });
    let (page, _) = its_own.next().unwrap_or_else(|| panic!("no page has `{name}` and {file}"));
    assert!(index.contains(&format!("]({page})")), "the index does not lead to {page}");

    let module = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
    let module = module.expect("a text is a file");
    let library = read(root.join("crates/grouplock-algorithms/src/lib.rs"));
    assert!(library.contains(&format!("[`{module}`]")), "lib.rs does not name {module}");
}

macro_rules! tests {
    ($lock:ty) => {
        /// The claims are complete, and none contradicts another.
        #[test]
        fn claims() {
            check(&<$lock>::claims());
        }
    };
}

macro_rules! group_tests {
    ($lock:ty) => {
        tests!($lock);

        #[test]
        fn the_largest_session_is_the_one_claimed() {
            assert_eq!(<$lock>::claims().largest_session(), <$lock>::LARGEST_SESSION);
        }
    };
}

every_mutex!(Native, tests);
every_withdrawing_mutex!(Native, tests);
every_group!(Native, group_tests);
every_round!(Native, group_tests);
every_policy!(Native, group_tests);

macro_rules! text_tests {
    ($lock:ty) => {
        #[test]
        fn lines_are_numbered() {
            check_text(&<$lock>::claims());
        }

        #[test]
        fn it_has_a_page() {
            check_page(&<$lock>::claims());
        }
    };
}

mod text {
    use super::*;

    locks::for_each_algorithm! { mutex => listed!(Native, text_tests) }
    locks::for_each_algorithm! { withdrawing_mutex => listed!(Native, text_tests) }
    locks::for_each_algorithm! { group => listed!(Native, text_tests) }
    locks::for_each_algorithm! { rounds => listed!(Native, text_tests) }
    locks::for_each_algorithm! { over => listed!(Native, text_tests) }
    locks::for_each_algorithm! { withdrawing => listed!(Native, text_tests) }
    locks::for_each_algorithm! { recovering => listed!(Native, text_tests) }
    locks::for_each_algorithm! { specimen => listed!(Native, text_tests) }
    locks::for_each_algorithm! { policy => listed!(Native, text_tests) }
    locks::for_each_algorithm! { cancelled => listed!(Native, text_tests) }
    locks::for_each_algorithm! { alone => listed!(Native, text_tests) }
}

/// The lab and `GroupLock` use the same code to read the bits of the word.
#[test]
fn the_word_of_phases_is_that_of_grouplock() {
    let explored = include_str!("../../src/group_exclusion/phases_word.rs");
    assert_eq!(explored, include_str!("../../../grouplock/src/cores/phases/word.rs"));
}

/// A trace shows the number beside each line that ran. So every line of the printed algorithm must
/// be in its own place.
#[test]
fn the_specimen_has_every_line_of_the_paper_once() {
    let text = <locks::maor_taubenfeld::MaorTaubenfeld as RawGroup<Native>>::claims().text;
    let lines = text.contents.lines().count() as u32;
    let mut numbers: Vec<u32> = (1..=lines)
        .filter_map(|line| text.paper_line(line))
        .map(|number| number.parse().expect("each line of the text does one line of the paper"))
        .collect();
    numbers.sort_unstable();
    // All lines except the critical section and the lines that only decide or end something (8, 10,
    // 17, 18, 21, 23-25, 28, 32-34, 48).
    let acting = [1..=7, 9..=9, 11..=16, 19..=20, 22..=22, 26..=27, 29..=31, 36..=47, 49..=50];
    assert_eq!(numbers, acting.into_iter().flatten().collect::<Vec<u32>>());
}

#[test]
fn the_specimen_is_recorded_as_refuted() {
    let claims = <locks::maor_taubenfeld::MaorTaubenfeld as RawGroup<Native>>::claims();
    assert!(matches!(claims.mutual_exclusion, Claim::Refuted(_)));
    assert_eq!(claims.mutual_exclusion.to_string(), "claimed, refuted");
}

#[test]
fn what_an_exit_lock_lacks_the_whole_lacks() {
    use locks::burns_lamport::BurnsLamport;
    use locks::handover::Handover;
    use locks::mcs::Mcs;

    let over_mcs = <Handover<Native, Mcs<Native>> as RawGroup<Native>>::claims();
    assert!(!over_mcs.exit.group_bounded.is_claimed(), "leaving MCS may take a wait");
    assert!(over_mcs.exit.terminating.is_claimed());
    let over_one_bit = <Handover<Native, BurnsLamport<Native>> as RawGroup<Native>>::claims();
    assert!(!over_one_bit.starvation_freedom.is_claimed());
    assert!(!over_one_bit.exit.terminating.is_claimed());
    assert_eq!(over_one_bit.rmr_cc.claimed, Growth::Quadratic);
    let by_default = <Handover as RawGroup<Native>>::claims();
    assert!(by_default.exit.group_bounded.is_claimed());
    assert_eq!(by_default.rmr_dsm.claimed, Growth::Constant);
}
