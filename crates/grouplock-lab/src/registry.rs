//! The algorithms that can be explored, by name.

use grouplock_algorithms::black_white_bakery::BlackWhiteBakery;
use grouplock_algorithms::black_white_bakery_gme::BlackWhiteBakeryGme;
use grouplock_algorithms::burns_lamport::BurnsLamport;
use grouplock_algorithms::claims::Text;
use grouplock_algorithms::dvir_taubenfeld_1::DvirTaubenfeld1;
use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use grouplock_algorithms::dvir_taubenfeld_2::DvirTaubenfeld2;
use grouplock_algorithms::generalized_bakery::GeneralizedBakery;
use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::keane_moir::KeaneMoir;
use grouplock_algorithms::maor_taubenfeld::MaorTaubenfeld;
use grouplock_algorithms::mcs::Mcs;
use grouplock_algorithms::petrovic::{Petrovic, Unbounded};
use grouplock_algorithms::phases::Phases;
use grouplock_algorithms::policy::{Cancelled, Eventual, Fifo, Patient};

use crate::ideal::IdealLock;
use crate::memory::SimMemory as M;
use crate::subject::Subject;
use crate::tokens::Tokens;

/// All algorithms. Those that use another lock come twice: over an ideal one by their own name, and over the one
/// they ship with by a longer name.
pub fn all() -> Vec<Subject> {
    vec![
        Subject::mutex::<Mcs<M>>("mcs"),
        Subject::mutex::<BurnsLamport<M>>("burns-lamport"),
        Subject::mutex::<BlackWhiteBakery<M>>("black-white-bakery"),
        Subject::mutex::<DvirTaubenfeld1<M>>("dvir-taubenfeld-1"),
        Subject::mutex::<DvirTaubenfeld1Swap<M>>("dvir-taubenfeld-1-swap"),
        Subject::mutex::<DvirTaubenfeld2<M>>("dvir-taubenfeld-2"),
        Subject::group::<KeaneMoir<M, IdealLock>>("keane-moir"),
        Subject::group::<KeaneMoir<M, DvirTaubenfeld1Swap<M>>>("keane-moir+dvir-taubenfeld-1-swap"),
        Subject::group::<Petrovic<M, Tokens>>("petrovic"),
        Subject::group::<Petrovic<M, Unbounded>>("petrovic-unbounded"),
        Subject::group::<GeneralizedBakery<M>>("generalized-bakery"),
        Subject::group::<BlackWhiteBakeryGme<M>>("black-white-bakery-gme"),
        Subject::group::<MaorTaubenfeld<M, IdealLock>>("maor-taubenfeld"),
        Subject::group::<MaorTaubenfeld<M, DvirTaubenfeld1Swap<M>>>(
            "maor-taubenfeld+dvir-taubenfeld-1-swap",
        ),
        Subject::group::<Handover<M, IdealLock>>("handover"),
        Subject::group::<Handover<M, DvirTaubenfeld1Swap<M>>>("handover+dvir-taubenfeld-1-swap"),
        Subject::group::<Phases<M, Eventual>>("phases"),
        Subject::group::<Phases<M, Fifo>>("phases-fifo"),
        Subject::group::<Phases<M, Patient>>("phases-patient"),
        Subject::group::<Phases<M, Cancelled<Eventual>>>("phases-cancel"),
        Subject::group::<Phases<M, Cancelled<Fifo>>>("phases-fifo-cancel"),
        Subject::group::<Phases<M, Cancelled<Patient>>>("phases-patient-cancel"),
    ]
}

/// The algorithm called `name`.
///
/// # Errors
/// The name that is nearest to it, if there is none of that name.
pub fn find(name: &str) -> Result<Subject, &'static str> {
    let subjects = all();
    if let Some(subject) = subjects.iter().find(|subject| subject.name == name) {
        return Ok(*subject);
    }
    Err(nearest(name, subjects.iter().map(|subject| subject.name)).unwrap_or_default())
}

/// The one of `known` that is nearest to `name`.
pub(crate) fn nearest(
    name: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    known.into_iter().min_by_key(|known| {
        let distance = edits(name, known);
        // A part of a name is nearer than any misspelling of as many letters.
        if !name.is_empty() && known.contains(name) { distance / 4 } else { distance }
    })
}

/// How many letters must be added, dropped or changed to make `b` of `a`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The program texts that an execution of `subject` may come through.
pub(crate) fn texts(subject: &Subject) -> Vec<Text> {
    let mut texts = vec![subject.claims.text];
    texts.extend(all().iter().map(|subject| subject.claims.text));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_algorithm() {
        for subject in all() {
            assert_eq!(find(subject.name).map(|found| found.name), Ok(subject.name));
        }
    }

    #[test]
    fn a_misspelt_name_finds_the_nearest() {
        assert_eq!(find("handver").unwrap_err(), "handover");
        assert_eq!(find("petrovich").unwrap_err(), "petrovic");
        assert_eq!(find("maor").unwrap_err(), "maor-taubenfeld");
    }

    #[test]
    fn names_are_those_of_the_claims() {
        for subject in all() {
            assert!(subject.name.starts_with(subject.claims.name), "{}", subject.name);
        }
    }
}
