//! Draws counted references.

use grouplock_lab::report::{Broken, Dossier, html::page};
use grouplock_lab::rmr::Measurement;

fn point(processes: usize, max: u64) -> Measurement {
    let algorithm = "a<b".to_owned();
    Measurement { algorithm, processes, max, mean: 1.5, ..Measurement::default() }
}

#[test]
fn every_point_is_drawn_inside_the_frame_and_names_are_escaped() {
    let rmr = vec![point(2, 1), point(64, 100_000), point(256, 0)];
    let dossier = Dossier { rmr, ..Dossier::default() };
    let body = page(&dossier);
    assert_eq!(body.matches("<circle").count(), 3);
    assert!(body.contains("a&lt;b") && !body.contains("a<b"));
    assert!(body.contains(r#"viewBox="0 0 560 340""#));
    for part in body.split("<circle").skip(1) {
        let number = |key: &str| -> f64 {
            let rest = part.split(key).nth(1).expect("the attribute is there");
            rest.split('"').next().and_then(|n| n.parse().ok()).expect("it is a number")
        };
        assert!((0.0..=560.0).contains(&number("cx=\"")));
        assert!((0.0..=340.0).contains(&number("cy=\"")));
    }
}

#[test]
fn a_single_point_has_a_place() {
    let body = page(&Dossier { rmr: vec![point(4, 1)], ..Dossier::default() });
    // The middle between 56 and 538.
    assert!(body.contains(r#"cx="297.0""#), "{body}");
}

#[test]
fn a_size_at_which_a_lock_breaks_is_named_and_so_is_a_proven_bound() {
    let rmr = vec![Measurement { bound: Some(31), ..point(2, 28) }, point(64, 28)];
    let (algorithm, because) = ("a<b".to_owned(), "it stood still".to_owned());
    let broken = vec![Broken { algorithm, processes: 8, because }];
    let body = page(&Dossier { rmr, broken, ..Dossier::default() });
    let row = "<td class=\"number\">28</td><td class=\"number\">✗ breaks</td>\
               <td class=\"number\">28</td><td class=\"number\">≤ 31</td>";
    assert!(body.contains(row) && body.contains("✗ it stood still"), "{body}");
    assert!(body.contains("N = 2: largest found 28") && !body.contains("at most"), "{body}");
}

#[test]
fn nothing_measured_is_said() {
    assert!(page(&Dossier::default()).contains("Not measured"));
}
