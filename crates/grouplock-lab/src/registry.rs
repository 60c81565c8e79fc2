//! The algorithms that can be explored, by name.

use grouplock_algorithms::claims::Text;
use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use grouplock_algorithms::for_each_algorithm;
use grouplock_algorithms::petrovic::Petrovic;

use crate::ideal::IdealLock;
use crate::ideal_latch::IdealLatch;
use crate::memory::SimMemory as M;
use crate::subject::Subject;
use crate::tokens::Tokens;
use crate::two_locks::TwoLocks;

/// All algorithms, in the order of their list. Those that use another lock come twice: over an ideal one by their own name, and
/// over the one they ship with by a longer name.
pub fn all() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! add {
        ((petrovic) $name:literal $lock:ty) => {
            // As numbers, its turns are far out of reach.
            all.push(Subject::group::<Petrovic<M, Tokens>>($name));
        };
        (($ident:ident) $name:literal $lock:ty) => {
            all.push(Subject::group::<$lock>($name));
        };
    }
    macro_rules! mutexes {
        (() $($ident:ident $name:literal $lock:ty;)*) => {
            $(all.push(Subject::mutex::<$lock>($name));)*
        };
    }
    macro_rules! withdrawing_mutexes {
        (() $($ident:ident $name:literal $lock:ty;)*) => {
            $(all.push(Subject::withdrawing_mutex::<$lock>($name));)*
        };
    }
    macro_rules! groups {
        (() $($ident:ident $name:literal $lock:ty;)*) => {
            $(add!(($ident) $name $lock);)*
        };
    }
    macro_rules! over {
        (() $($ident:ident $name:literal $lock:ty;)*) => {$(
            {
                type L = IdealLock;
                all.push(Subject::group::<$lock>($name));
            }
            {
                type L = DvirTaubenfeld1Swap<M>;
                all.push(Subject::group::<$lock>(concat!($name, "+dvir-taubenfeld-1-swap")));
            }
        )*};
    }
    macro_rules! withdrawing {
        (() $($ident:ident $name:literal $lock:ty;)*) => {$(
            {
                type L = IdealLock;
                all.push(Subject::withdrawing::<$lock>($name));
            }
            {
                type L = DvirTaubenfeld1Swap<M>;
                all.push(Subject::withdrawing::<$lock>(concat!($name, "+dvir-taubenfeld-1-swap")));
            }
        )*};
    }
    macro_rules! recovering {
        (() $($ident:ident $name:literal $lock:ty;)*) => {
            $(all.push(Subject::recovering::<$lock>($name));)*
        };
    }
    for_each_algorithm!(mutex => mutexes!());
    for_each_algorithm!(withdrawing_mutex => withdrawing_mutexes!());
    all.push(Subject::group::<TwoLocks>("dvir-taubenfeld-2-two-locks"));
    for_each_algorithm!(group => groups!());
    for_each_algorithm!(rounds => groups!());
    for_each_algorithm!(over => over!());
    for_each_algorithm!(withdrawing => withdrawing!());
    {
        type R = IdealLatch;
        for_each_algorithm!(recovering => recovering!());
    }
    for_each_algorithm!(specimen => over!());
    for_each_algorithm!(policy => groups!());
    for_each_algorithm!(cancelled => groups!());
    for_each_algorithm!(alone => groups!());
    all
}

/// Those whose remote references are counted. One that uses another lock has the one it ships with, and is called by its own name.
/// One that needs a latch has an ideal one.
pub(crate) fn measured() -> Vec<Subject> {
    type L = DvirTaubenfeld1Swap<M>;
    type R = IdealLatch;
    let mut all = Vec::new();
    macro_rules! add {
        (($kind:ident) $($ident:ident $name:literal $lock:ty;)*) => {
            $(all.push(Subject::$kind::<$lock>($name));)*
        };
    }
    for_each_algorithm!(mutex => add!(mutex));
    for_each_algorithm!(withdrawing_mutex => add!(withdrawing_mutex));
    for_each_algorithm!(group => add!(group));
    for_each_algorithm!(rounds => add!(group));
    for_each_algorithm!(over => add!(group));
    for_each_algorithm!(withdrawing => add!(withdrawing));
    for_each_algorithm!(recovering => add!(recovering));
    for_each_algorithm!(specimen => add!(group));
    for_each_algorithm!(policy => add!(group));
    all
}

/// Nothing has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} {asked:?}: did you mean {nearest:?}?")]
pub struct UnknownName {
    what: &'static str,
    asked: String,
    /// The most similar name.
    pub nearest: &'static str,
}

/// The algorithm called `name`.
///
/// # Errors
/// If there is none of that name.
pub fn find(name: &str) -> Result<Subject, UnknownName> {
    named("algorithm", &all(), |subject| subject.name, name)
}

/// The one of `all`, each of which is a `what`, that is called `asked`.
pub(crate) fn named<T: Copy>(
    what: &'static str,
    all: &[T],
    name: fn(&T) -> &'static str,
    asked: &str,
) -> Result<T, UnknownName> {
    all.iter().find(|one| name(one) == asked).copied().ok_or_else(|| {
        let nearest = all.iter().map(name).min_by_key(|known| {
            let distance = edits(asked, known);
            // A part of a name is nearer than any misspelling of as many letters.
            if !asked.is_empty() && known.contains(asked) { distance / 4 } else { distance }
        });
        UnknownName { what, asked: asked.to_owned(), nearest: nearest.unwrap_or_default() }
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
    let texts = std::iter::once(subject.claims.text);
    texts.chain(all().iter().map(|subject| subject.claims.text)).flat_map(Text::files).collect()
}
