//! What counts as a remote memory reference.

use grouplock_algorithms::memory::Home;
use grouplock_lab::rmr::model::{Caches, Effect, Model};

const READ: Effect = Effect::Read;
const CHANGE: Effect = Effect::Write { changes: true };
const SAME: Effect = Effect::Write { changes: false };
const SWAP: Effect = Effect::Update { writes: true, changes: true };
const FAILED_CAS: Effect = Effect::Update { writes: false, changes: false };

/// Which accesses to one register, shared by all, count in `model`.
fn counts(model: Model, accesses: &[(usize, Effect)]) -> Vec<bool> {
    let mut caches = Caches::new(3, vec![Home::Shared]);
    accesses
        .iter()
        .map(|&(process, effect)| caches.access(process, 0, effect)[model as usize])
        .collect()
}

#[test]
fn the_first_read_counts_and_the_next_does_not() {
    for model in [Model::Cc, Model::CcWriteBack, Model::CcWriteThrough] {
        assert_eq!(counts(model, &[(0, READ), (0, READ), (1, READ)]), [true, false, true]);
    }
}

#[test]
fn a_read_counts_again_after_another_process_changed_the_value() {
    for model in [Model::Cc, Model::CcWriteBack, Model::CcWriteThrough] {
        let accesses = [(0, READ), (1, CHANGE), (1, CHANGE), (0, READ), (0, READ)];
        assert_eq!(counts(model, &accesses)[3..], [true, false], "{model}");
    }
}

#[test]
fn by_section_2_3_a_write_counts_if_it_changes_the_value() {
    let accesses = [(0, CHANGE), (0, CHANGE), (0, SAME), (1, SAME), (0, READ)];
    assert_eq!(counts(Model::Cc, &accesses), [true, true, false, false, false]);
}

#[test]
fn by_section_2_3_an_update_counts_if_its_read_or_its_write_does() {
    let accesses = [(0, FAILED_CAS), (0, FAILED_CAS), (0, SWAP), (1, FAILED_CAS), (0, READ)];
    assert_eq!(counts(Model::Cc, &accesses), [true, false, true, true, false]);
}

#[test]
fn with_write_back_an_owner_writes_for_nothing_until_another_looks() {
    let accesses = [(0, CHANGE), (0, CHANGE), (0, SWAP), (1, READ), (0, READ), (0, CHANGE)];
    let expected = [true, false, false, true, false, true];
    assert_eq!(counts(Model::CcWriteBack, &accesses), expected);
}

#[test]
fn with_write_back_whatever_may_write_takes_the_copies_of_others() {
    for takes in [SAME, FAILED_CAS, SWAP] {
        let accesses = [(0, READ), (1, takes), (0, READ), (1, takes)];
        assert_eq!(counts(Model::CcWriteBack, &accesses), [true, true, true, true]);
    }
}

#[test]
fn with_write_through_every_write_counts_and_takes_all_copies() {
    let accesses = [(0, READ), (0, SAME), (0, READ), (0, READ), (0, SAME), (1, SWAP)];
    assert_eq!(counts(Model::CcWriteThrough, &accesses), [true, true, true, false, true, true]);
}

#[test]
fn with_write_through_a_failed_compare_and_swap_counts_and_takes_none() {
    let accesses = [(0, READ), (1, FAILED_CAS), (1, FAILED_CAS), (0, READ)];
    assert_eq!(counts(Model::CcWriteThrough, &accesses), [true, true, true, false]);
}

#[test]
fn on_distributed_memory_all_but_ones_own_counts() {
    let mut caches = Caches::new(2, vec![Home::Shared, Home::Process(0), Home::Process(1)]);
    for effect in [READ, SAME, CHANGE, SWAP, FAILED_CAS] {
        let counted = [0, 1, 2].map(|register| caches.access(0, register, effect)[3]);
        assert_eq!(counted, [true, false, true]);
    }
}

#[test]
fn a_peek_changes_nothing() {
    let mut caches = Caches::new(2, vec![Home::Shared]);
    assert_eq!(caches.peek(0, 0, READ), caches.peek(0, 0, READ));
    assert_eq!(caches.peek(0, 0, READ), caches.access(0, 0, READ));
}

#[test]
fn names_are_read_back() {
    for model in Model::ALL {
        assert_eq!(model.name().parse(), Ok(model));
    }
    assert!("numa".parse::<Model>().unwrap_err().contains("cc-write-back"));
}
