//! The list of all algorithms.

/// Every algorithm of this crate, one line each: an identifier, its name on the command line, and
/// its type. Tests, benchmarks and the lab read this list.
///
/// `for_each_algorithm!(kind => each!(anything))` expands to `each! { (anything) … }` with the
/// lines of one kind. The types are over a memory `M` and, for the kinds over a lock, a mutex `L`
/// or a latch `R`. Define types of these names where you use the macro.
///
/// | kind | |
/// |---|---|
/// | `mutex` | mutual exclusion |
/// | `withdrawing_mutex` | the same, whose waiters can withdraw |
/// | `group` | group mutual exclusion |
/// | `rounds` | the same without concurrent occupancy: a late process waits for the next round |
/// | `over` | group mutual exclusion over a mutex `L` |
/// | `withdrawing` | group mutual exclusion over a mutex `L`, whose waiters can withdraw |
/// | `recovering` | group mutual exclusion over a [latch](crate::latch) `R`, whose processes may die |
/// | `specimen` | group mutual exclusion over a mutex `L`, as printed and broken |
/// | `policy` | [`phases`](crate::phases) with each policy |
/// | `cancelled`, `alone` | the same with waiters that withdraw, and with exclusive requests, limits or set-up |
///
/// ```
/// use grouplock_algorithms::{for_each_algorithm, memory::Native, raw::RawMutex};
///
/// type M = Native;
/// macro_rules! print_each {
///     (() $($ident:ident $name:literal $lock:ty;)*) => {
///         $(println!("{}: {}", $name, <$lock as RawMutex<M>>::claims().source);)*
///     };
/// }
/// for_each_algorithm!(mutex => print_each!());
/// ```
#[macro_export]
macro_rules! for_each_algorithm {
    (mutex => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            bakery "bakery" $crate::bakery::Bakery<M>;
            black_white_bakery "black-white-bakery" $crate::black_white_bakery::BlackWhiteBakery<M>;
            black_white_bakery_split "black-white-bakery-split"
                $crate::black_white_bakery::BlackWhiteBakery<M, $crate::black_white_bakery::Split<M>>;
            burns_lamport "burns-lamport" $crate::burns_lamport::BurnsLamport<M>;
            anderson "anderson" $crate::anderson::Anderson<M>;
            clh "clh" $crate::clh::Clh<M>;
            mcs "mcs" $crate::mcs::Mcs<M>;
            dvir_taubenfeld_1 "dvir-taubenfeld-1" $crate::dvir_taubenfeld_1::DvirTaubenfeld1<M>;
            dvir_taubenfeld_1_swap "dvir-taubenfeld-1-swap"
                $crate::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap<M>;
            dvir_taubenfeld_2 "dvir-taubenfeld-2" $crate::dvir_taubenfeld_2::DvirTaubenfeld2<M>;
        }
    };
    (withdrawing_mutex => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            jayanti_jayanti "jayanti-jayanti" $crate::jayanti_jayanti::JayantiJayanti<M>;
        }
    };
    (group => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            petrovic "petrovic" $crate::petrovic::Petrovic<M, $crate::petrovic::Bounded>;
            petrovic_unbounded "petrovic-unbounded"
                $crate::petrovic::Petrovic<M, $crate::petrovic::Unbounded>;
            generalized_bakery "generalized-bakery" $crate::generalized_bakery::GeneralizedBakery<M>;
            black_white_bakery_gme "black-white-bakery-gme"
                $crate::black_white_bakery_gme::BlackWhiteBakeryGme<M>;
            pairwise_bakery "pairwise-bakery" $crate::pairwise_bakery::PairwiseBakery<M>;
        }
    };
    (rounds => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            rooms "rooms" $crate::rooms::Rooms<M>;
            forums "forums" $crate::forums::Forums<M>;
        }
    };
    (over => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            keane_moir "keane-moir" $crate::keane_moir::KeaneMoir<M, L>;
            handover "handover" $crate::handover::Handover<M, L>;
        }
    };
    (withdrawing => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            handover_withdraw "handover-withdraw"
                $crate::handover_withdraw::HandoverWithdraw<M, L>;
        }
    };
    (recovering => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            recoverable "recoverable" $crate::recoverable::Recoverable<M, R>;
        }
    };
    (specimen => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            maor_taubenfeld "maor-taubenfeld" $crate::maor_taubenfeld::MaorTaubenfeld<M, L>;
        }
    };
    (policy => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            phases "phases" $crate::phases::Phases<M, $crate::policy::Eventual>;
            phases_fifo "phases-fifo" $crate::phases::Phases<M, $crate::policy::Fifo>;
            phases_patient "phases-patient" $crate::phases::Phases<M, $crate::policy::Patient>;
        }
    };
    (cancelled => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            phases_cancel "phases-cancel"
                $crate::phases::Phases<M, $crate::policy::Cancelled<$crate::policy::Eventual>>;
            phases_fifo_cancel "phases-fifo-cancel"
                $crate::phases::Phases<M, $crate::policy::Cancelled<$crate::policy::Fifo>>;
            phases_patient_cancel "phases-patient-cancel"
                $crate::phases::Phases<M, $crate::policy::Cancelled<$crate::policy::Patient>>;
        }
    };
    (alone => $each:ident!($($anything:tt)*)) => {
        $each! { ($($anything)*)
            phases_alone "phases-alone"
                $crate::phases::Phases<M, $crate::policy::Alone<$crate::policy::Eventual>>;
            phases_fifo_alone "phases-fifo-alone"
                $crate::phases::Phases<M, $crate::policy::Alone<$crate::policy::Fifo>>;
            phases_patient_alone "phases-patient-alone"
                $crate::phases::Phases<M, $crate::policy::Alone<$crate::policy::Patient>>;
            phases_fifo_alone_cancel "phases-fifo-alone-cancel"
                $crate::phases::Phases<
                    M,
                    $crate::policy::Cancelled<$crate::policy::Alone<$crate::policy::Fifo>>,
                >;
            phases_patient_alone_cancel "phases-patient-alone-cancel"
                $crate::phases::Phases<
                    M,
                    $crate::policy::Cancelled<$crate::policy::Alone<$crate::policy::Patient>>,
                >;
            phases_fifo_limited "phases-fifo-limited"
                $crate::phases::Phases<M, $crate::policy::Limited<$crate::policy::Fifo>>;
            phases_patient_limited "phases-patient-limited"
                $crate::phases::Phases<M, $crate::policy::Limited<$crate::policy::Patient>>;
            phases_setup "phases-setup"
                $crate::phases::Phases<M, $crate::policy::SetUp<$crate::policy::Eventual>>;
            phases_fifo_setup "phases-fifo-setup"
                $crate::phases::Phases<M, $crate::policy::SetUp<$crate::policy::Fifo>>;
            phases_patient_setup "phases-patient-setup"
                $crate::phases::Phases<M, $crate::policy::SetUp<$crate::policy::Patient>>;
            phases_fifo_setup_cancel "phases-fifo-setup-cancel"
                $crate::phases::Phases<
                    M,
                    $crate::policy::Cancelled<$crate::policy::SetUp<$crate::policy::Fifo>>,
                >;
            phases_patient_setup_cancel "phases-patient-setup-cancel"
                $crate::phases::Phases<
                    M,
                    $crate::policy::Cancelled<$crate::policy::SetUp<$crate::policy::Patient>>,
                >;
            phases_fifo_mixed "phases-fifo-mixed"
                $crate::phases::Phases<M, $crate::policy::Mixed<$crate::policy::Fifo>>;
            phases_patient_mixed "phases-patient-mixed"
                $crate::phases::Phases<M, $crate::policy::Mixed<$crate::policy::Patient>>;
        }
    };
}
