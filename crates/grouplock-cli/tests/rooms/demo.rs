//! `grouplock demo`: what new users see first.

use crate::place::Place;

#[test]
fn the_demonstration_shows_sharing_waiting_and_handing_over() {
    let place = Place::new();
    std::fs::create_dir(place.file("tmp")).expect("it can be made");
    let mut demo = place.grouplock(&["demo"]);
    let demo = demo.env("TMPDIR", place.file("tmp"));
    let (code, text, trouble) = crate::place::told(demo);
    assert_eq!((code, &*trouble), (0, ""), "{text}");
    let line = |what: &str| {
        text.lines()
            .position(|line| line.contains(what))
            .unwrap_or_else(|| panic!("{what}: {text}"))
    };
    let shared = line("job 2 is inside too");
    assert!(line("job 1 is inside") < shared && shared < line("job 3 waits: 2 of model A"));
    let entered = line("job 3 is inside (model B)");
    assert!(line("job 1 is done") < entered && line("job 2 is done") < entered, "{text}");
    assert!(text.contains("job 3  model B"), "{text}");
    let left = std::fs::read_dir(place.file("tmp")).expect("it is there").count();
    assert_eq!(left, 0, "nothing is left behind");
}
