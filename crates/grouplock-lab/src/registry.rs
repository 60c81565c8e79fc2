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

/// Adds the subjects of one list of algorithms.
macro_rules! add {
    (($all:ident $kind:ident) $($ident:ident $name:literal $lock:ty;)*) => {
        $all.extend([$(Subject::$kind::<$lock>($name)),*]);
    };
}

/// Adds each algorithm twice: over an ideal lock, and over its shipped lock.
macro_rules! add_over {
    (($all:ident $kind:ident) $($ident:ident $name:literal $lock:ty;)*) => {$(
        {
            type L = IdealLock;
            $all.push(Subject::$kind::<$lock>($name));
        }
        {
            type L = DvirTaubenfeld1Swap<M>;
            $all.push(Subject::$kind::<$lock>(concat!($name, "+dvir-taubenfeld-1-swap")));
        }
    )*};
}

/// All algorithms, in the order of their list. An algorithm that uses another lock is here twice:
/// by its own name over an ideal lock, and by a longer name over its shipped lock.
pub fn all() -> Vec<Subject> {
    type R = IdealLatch;
    let mut all = Vec::new();
    for_each_algorithm!(mutex => add!(all mutex));
    for_each_algorithm!(withdrawing_mutex => add!(all withdrawing_mutex));
    all.push(Subject::group::<TwoLocks>("dvir-taubenfeld-2-two-locks"));
    for_each_algorithm!(group => add!(all group));
    for_each_algorithm!(rounds => add!(all group));
    for_each_algorithm!(over => add_over!(all group));
    for_each_algorithm!(withdrawing => add_over!(all withdrawing));
    for_each_algorithm!(recovering => add!(all recovering));
    for_each_algorithm!(specimen => add_over!(all group));
    for_each_algorithm!(policy => add!(all group));
    for_each_algorithm!(cancelled => add!(all group));
    for_each_algorithm!(alone => add!(all group));
    for subject in all.iter_mut().filter(|subject| subject.name == "petrovic") {
        // With turns as numbers it has too many states.
        *subject = Subject::group::<Petrovic<M, Tokens>>(subject.name);
    }
    all
}

/// The algorithms whose remote references are counted. An algorithm that uses another lock is over
/// its shipped lock, by its own name. An algorithm that needs a latch has an ideal latch.
pub(crate) fn measured() -> Vec<Subject> {
    type L = DvirTaubenfeld1Swap<M>;
    type R = IdealLatch;
    let mut all = Vec::new();
    for_each_algorithm!(mutex => add!(all mutex));
    for_each_algorithm!(withdrawing_mutex => add!(all withdrawing_mutex));
    for_each_algorithm!(group => add!(all group));
    for_each_algorithm!(rounds => add!(all group));
    for_each_algorithm!(over => add!(all group));
    for_each_algorithm!(withdrawing => add!(all withdrawing));
    for_each_algorithm!(recovering => add!(all recovering));
    for_each_algorithm!(specimen => add!(all group));
    for_each_algorithm!(policy => add!(all group));
    all
}

/// The name is unknown.
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

/// The element of `all` with the name `asked`. Each element is a `what`.
pub(crate) fn named<T: Copy>(
    what: &'static str,
    all: &[T],
    name: fn(&T) -> &'static str,
    asked: &str,
) -> Result<T, UnknownName> {
    all.iter().find(|one| name(one) == asked).copied().ok_or_else(|| {
        let nearest = all.iter().map(name).min_by_key(|known| {
            let distance = edits(asked, known);
            // A part of a name is closer than any misspelling of as many letters.
            if !asked.is_empty() && known.contains(asked) { distance / 4 } else { distance }
        });
        UnknownName { what, asked: asked.to_owned(), nearest: nearest.unwrap_or_default() }
    })
}

/// How many letters must be added, removed or changed to turn `a` into `b`.
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

/// The program texts that an execution of `subject` may run.
pub(crate) fn texts(subject: &Subject) -> Vec<Text> {
    let texts = std::iter::once(subject.claims.text);
    texts.chain(all().iter().map(|subject| subject.claims.text)).flat_map(Text::files).collect()
}
