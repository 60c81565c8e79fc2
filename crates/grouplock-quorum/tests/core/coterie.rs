//! The members that each member asks for their votes.

use grouplock_quorum::{Coterie, CoterieError, MemberId, Quorum};

fn quorum(members: &[u16]) -> Quorum {
    members.iter().copied().map(MemberId).collect()
}

#[test]
fn planes_meet_in_exactly_one_member() {
    for size in [3_u16, 7, 13, 21, 31] {
        let coterie = Coterie::plane(size).unwrap();
        let points = coterie.largest_quorum();
        assert_eq!(usize::from(size), points * (points - 1) + 1);
        let quorum = |member| coterie.quorum(MemberId(member)).unwrap();
        for a in 0..size {
            assert_eq!(quorum(a).len(), points);
            for b in (0..size).filter(|b| *b != a) {
                assert_eq!(quorum(a).intersection(quorum(b)).count(), 1, "{a} and {b} of {size}");
            }
        }
    }
}

#[test]
fn there_is_a_coterie_for_every_number_of_members() {
    for members in 1..=200 {
        let coterie = Coterie::smallest(members).unwrap();
        assert_eq!(coterie.members(), members);
        let majority = usize::from(members / 2 + 1);
        assert!(coterie.largest_quorum() <= majority, "{members}");
    }
    assert_eq!(Coterie::smallest(31).unwrap().largest_quorum(), 6);
    assert_eq!(Coterie::smallest(100).unwrap().largest_quorum(), 19);
    assert_eq!(Coterie::grid(6).unwrap().largest_quorum(), 4);
}

#[test]
fn what_is_no_coterie_is_refused_by_name() {
    let refused = |quorums: &[&[u16]]| {
        Coterie::new(quorums.iter().map(|members| quorum(members)).collect()).unwrap_err()
    };
    let (a, b) = (MemberId(0), MemberId(1));
    assert_eq!(refused(&[]), CoterieError::NoMembers);
    assert_eq!(refused(&[&[0], &[]]), CoterieError::EmptyQuorum(b));
    assert_eq!(refused(&[&[0, 1], &[0]]), CoterieError::WithoutItself(b));
    assert_eq!(refused(&[&[0], &[1]]), CoterieError::Disjoint(a, b));
    assert_eq!(refused(&[&[0], &[0, 1]]), CoterieError::NotMinimal { inner: a, outer: b });
    let missing = CoterieError::NoSuchMember { of: a, named: MemberId(2), last: 1 };
    assert_eq!(refused(&[&[0, 2], &[1]]), missing);
    assert_eq!(Coterie::plane(8).unwrap_err(), CoterieError::NoPlane(8));
    assert_eq!(Coterie::folded_plane(32).unwrap_err(), CoterieError::NoPlane(32));
    assert_eq!(Coterie::grid(7).unwrap_err(), CoterieError::NoGrid(7));
    assert_eq!(Coterie::majority(0).unwrap_err(), CoterieError::NoMembers);
    for kind in [Coterie::plane, Coterie::grid, Coterie::folded_plane, Coterie::folded_grid] {
        assert!(kind(0).is_err());
        assert!(kind(u16::MAX).is_err());
    }
    assert_eq!(Coterie::majority(2000).unwrap_err(), CoterieError::TooMany(2000));
}
