//! Tests of single parts.

use std::collections::HashSet;

use grouplock_algorithms::petrovic::{Bounded, Turns};
use grouplock_lab::bounds::longest;
use grouplock_lab::canon::for_each_order;
use grouplock_lab::components::{Pair, components};
use grouplock_lab::memory::set_up;
use grouplock_lab::orders::Orders;
use grouplock_lab::state::{Env, Proc, State};
use grouplock_lab::tokens::Tokens;
use grouplock_lab::value::Val;
use grouplock_lab::visited::{Visited, fingerprint};
use grouplock_lab::weak::{Buffers, Pending};
use grouplock_lab::{MemoryModel, Properties, Property};

#[test]
fn a_name_is_that_of_its_property() {
    for &property in Property::ALL {
        assert_eq!(property.name().parse(), Ok(property));
    }
}

#[test]
fn a_set_yields_each_of_its_properties_once() {
    let all: Properties = Property::ALL.iter().copied().collect();
    let told: Vec<Property> = all.iter().collect();
    assert_eq!(told.iter().copied().collect::<Properties>(), all);
    assert!(told.iter().enumerate().all(|(i, p)| !told[..i].contains(p)), "{told:?}");
}

#[test]
fn a_value_comes_back_as_it_was_packed() {
    assert_eq!(Val::number(0).map(Val::as_number), Ok(Some(0)));
    assert!(Val::number(u64::from(u32::MAX)).is_err());
    assert_eq!(Val::object(3).as_object(), Some(3));
    assert_eq!(Val::mark(0).as_mark(), Some(0));
    assert_eq!(Val::mark(2).as_mark(), Some(2));
    assert!(Val::UNDEF.as_mark().is_none());
    assert_eq!(Val::object(3).map(|o| o + 1), Val::object(4));
    assert_eq!(Val::stranger(1).as_stranger(), Some(1));
}

#[test]
fn tokens_are_equal_whenever_numbers_are() {
    let sessions: Vec<u64> = (0..400_u64).map(|i| i * i * 7 % 11 % 3 + 1).collect();
    let pairs = set_up(|| {
        let (mut numbers, mut tokens) = (Bounded::new(), Tokens::new());
        let mut pairs = vec![(numbers.first(), tokens.first())];
        pairs.extend(sessions.iter().map(|&s| (numbers.next_turn(s), tokens.next_turn(s))));
        pairs
    });
    for (n, t) in &pairs {
        for (m, u) in &pairs {
            assert_eq!(n == m, t == u);
        }
    }
}

#[test]
fn fingerprints_of_small_rows_differ() {
    let mut seen = HashSet::new();
    for a in 0..300 {
        for b in 0..300 {
            assert!(seen.insert(fingerprint(&[a, b, 0])), "{a} {b}");
        }
    }
    assert!(seen.insert(fingerprint(&[0, 0])));
}

#[test]
fn a_fingerprint_is_new_once() {
    let visited = Visited::default();
    assert!(visited.insert(7));
    assert!(!visited.insert(7));
    assert_eq!(visited.count(), 1);
}

#[test]
fn a_state_comes_back_as_it_was_packed() {
    let proc = |local, objects: &[u8]| Proc {
        local,
        env: Env::from_objects(objects.iter().copied()),
        before: 5,
        past_doorway: true,
        undisturbed: local == 9,
        enabled: local == 4,
        overtaken: local == 1,
        passages: 3,
    };
    let mut state = State {
        memory: vec![Val::mark(0), Val::number(7).expect("it is small"), Val::object(2)],
        procs: vec![proc(4, &[]), proc(9, &[1, 0, 111, 3, 4]), proc(1, &[9, 8, 7, 6])],
        buffers: Buffers::default(),
    };
    let mut row = Vec::new();
    state.pack(&mut row);
    assert!(State::unpack(&row, 3) == state);

    state.buffers = Buffers::new(MemoryModel::Pso, 3);
    state.pack(&mut row);
    assert!(State::unpack(&row, 3) == state, "empty buffers");
    let pending = [(Some(2), Val::object(7), true), (None, Val::mark(1), false)];
    for (register, value, ordered) in pending {
        state.buffers.push(1, Pending { register, value, ordered });
    }
    state.pack(&mut row);
    assert!(State::unpack(&row, 3) == state, "full buffers");
}

#[test]
fn only_ties_are_permuted() {
    let looks = [(vec![1], 2), (vec![1], 0), (vec![5], 1)];
    let mut orders = Vec::new();
    for_each_order(&looks, &mut |order| orders.push(order.to_vec()));
    assert_eq!(orders, [[2, 0, 1], [0, 2, 1]]);
}

#[test]
fn components_of_a_small_graph() {
    // 0 → 1 ⇄ 2 → 3, 3 → 3, and 4, which is left out
    let steps: [&[u32]; 5] = [&[1], &[2, 4], &[1, 3], &[3], &[0]];
    let mut found = Vec::new();
    let next = |pair: Pair, at: usize| steps[pair as usize].get(at).map(|&to| (at + 1, to));
    components(
        5,
        |pair| pair != 4,
        next,
        |component, within| {
            assert!((0..5).all(|pair| within(pair) == component.contains(&pair)));
            let mut component = component.to_vec();
            component.sort_unstable();
            found.push(component);
            false
        },
    );
    found.sort();
    assert_eq!(found, [vec![0], vec![1, 2], vec![3]]);
}

#[test]
fn the_longest_path_is_the_bound() {
    assert_eq!(longest(&[]), Ok(0));
    assert_eq!(longest(&[(1, 2), (2, 3), (1, 3), (3, 4), (7, 4)]), Ok(3));
}

#[test]
fn a_cycle_is_shown_from_its_beginning_to_its_beginning() {
    assert_eq!(longest(&[(5, 5)]), Err(vec![5, 5]));
    assert_eq!(longest(&[(9, 1), (1, 2), (2, 3), (3, 1), (3, 4)]), Err(vec![1, 2, 3, 1]));
}

#[test]
fn changes_of_places_follow_each_other() {
    let orders = Orders::of(3, true).expect("three are few");
    assert_eq!((orders.count(), orders.names(0)), (6, &[0, 1, 2][..]));
    let change = orders.find(&[1, 2, 0]);
    let once = orders.after(0, change);
    assert_eq!(orders.names(once), [1, 2, 0]);
    let twice = orders.after(once, change);
    assert_eq!(orders.names(twice), [2, 0, 1]);
    assert_eq!(orders.after(twice, change), 0);
    // Processes 2 and 0 are at positions 0 and 1.
    assert_eq!(orders.named(twice, 0b011), 0b101);
}

#[test]
fn where_nobody_changes_places_there_is_one_order() {
    assert_eq!(Orders::of(8, false).map(|orders| orders.count()), Some(1));
    assert!(Orders::of(8, true).is_none());
}
