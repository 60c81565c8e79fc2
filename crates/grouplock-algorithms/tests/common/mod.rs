//! Every lock of the crate, for tests that hold for all of them. A test file that uses this has
//! `grouplock_algorithms` under the name `locks`.

/// Makes a module for each mutual exclusion lock on memory `$m`, with the tests that
/// `$tests!(Lock)` expands to.
#[allow(unused_macros, reason = "not every test file is about mutexes")]
macro_rules! every_mutex {
    ($m:ty, $tests:ident) => {
        locks::for_each_algorithm! { mutex => listed!($m, $tests) }
        each! { $tests:
            handover_as_mutex = locks::reductions::AsMutex<$m, locks::handover::Handover<$m>>,
            bakery_as_mutex = locks::reductions::AsMutex<$m, locks::generalized_bakery::GeneralizedBakery<$m>>,
        }
    };
}

/// The same for the mutexes whose waiters can withdraw.
#[allow(unused_macros, reason = "not every test file is about mutexes")]
macro_rules! every_withdrawing_mutex {
    ($m:ty, $tests:ident) => {
        locks::for_each_algorithm! { withdrawing_mutex => listed!($m, $tests) }
    };
}

/// The same for each group lock. Group locks over a mutex run over several. The printed algorithm
/// of Maor and Taubenfeld is left out: it is broken.
#[allow(unused_macros, reason = "not every test file is about group locks")]
macro_rules! every_group {
    ($m:ty, $tests:ident) => {
        locks::for_each_algorithm! { group => listed!($m, $tests) }
        locks::for_each_algorithm! { over => listed!($m, $tests) }
        locks::for_each_algorithm! { withdrawing => listed!($m, $tests) }
        each! { $tests:
            handover_over_dvir_taubenfeld_1 = locks::handover::Handover<$m, locks::dvir_taubenfeld_1::DvirTaubenfeld1<$m>>,
            handover_over_dvir_taubenfeld_2 = locks::handover::Handover<$m, locks::dvir_taubenfeld_2::DvirTaubenfeld2<$m>>,
            keane_moir_over_mcs = locks::keane_moir::KeaneMoir<$m, locks::mcs::Mcs<$m>>,
            keane_moir_over_burns_lamport = locks::keane_moir::KeaneMoir<$m, locks::burns_lamport::BurnsLamport<$m>>,
            keane_moir_over_black_white_bakery = locks::keane_moir::KeaneMoir<$m, locks::black_white_bakery::BlackWhiteBakery<$m>>,
            keane_moir_over_dvir_taubenfeld_1 = locks::keane_moir::KeaneMoir<$m, locks::dvir_taubenfeld_1::DvirTaubenfeld1<$m>>,
            keane_moir_over_dvir_taubenfeld_2 = locks::keane_moir::KeaneMoir<$m, locks::dvir_taubenfeld_2::DvirTaubenfeld2<$m>>,
        }
    };
}

/// The same for the group locks that serve sessions in rounds. There, a holder that waits inside
/// for another process of its session may wait forever.
#[allow(unused_macros, reason = "not every test file is about group locks")]
macro_rules! every_round {
    ($m:ty, $tests:ident) => {
        locks::for_each_algorithm! { rounds => listed!($m, $tests) }
    };
}

/// The same for `phases` with each of its policies, and for one of them with requests that
/// withdraw. It has its own table, because four locks with one text need fewer tests each.
#[allow(unused_macros, reason = "not every test file is about group locks")]
macro_rules! every_policy {
    ($m:ty, $tests:ident) => {
        locks::for_each_algorithm! { policy => listed!($m, $tests) }
        each! { $tests:
            phases_cancelled = locks::phases::Phases<$m, locks::policy::Cancelled<locks::policy::Eventual>>,
        }
    };
}

/// The same for entries of the list.
macro_rules! listed {
    (($m:ty, $tests:ident) $($ident:ident $name:literal $lock:ty;)*) => {
        $(
            mod $ident {
                #[allow(unused_imports)]
                use super::*;
                #[allow(dead_code)]
                type M = $m;
                #[allow(dead_code)]
                type L = locks::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap<$m>;
                #[allow(dead_code)]
                type R = locks::latch::WordLatch<$m>;
                $tests!($lock);
            }
        )*
    };
}

macro_rules! each {
    ($tests:ident: $($name:ident = $lock:ty,)*) => {
        $(
            mod $name {
                #[allow(unused_imports)]
                use super::*;
                $tests!($lock);
            }
        )*
    };
}
