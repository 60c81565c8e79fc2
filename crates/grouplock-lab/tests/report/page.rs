//! The contents of the page, without a browser.

use grouplock_lab::Verdict;
use grouplock_lab::registry;
use grouplock_lab::report::{Dossier, Exploration, Task, html};
use grouplock_lab::trace::{ProcessAt, Section, Step};
use serde_json::Value;

/// A page with one exploration of `states` states that found `trace`.
fn page(states: u64, trace: Vec<Step>) -> String {
    let tasks = [Task::new("mcs", 2, 1)];
    let mut dossier = Dossier::collect(&tasks, &mut |_, _| {}).expect("the task is right");
    let found: &mut Exploration = &mut dossier.explorations[0];
    (found.states, found.verdict, found.trace) = (states, Verdict::Violated, trace);
    html::page(&dossier)
}

/// The script's data of the trace.
fn data(page: &str) -> Value {
    let begin = r#"<script type="application/json" class="data">"#;
    let data = page.split(begin).nth(1).and_then(|rest| rest.split("</script>").next());
    serde_json::from_str(data.expect("there is a trace")).expect("it is JSON")
}

#[test]
fn thousands_are_set_apart() {
    for (states, shown) in
        [(7, "7"), (1234, "1\u{202f}234"), (1_234_567, "1\u{202f}234\u{202f}567")]
    {
        let page = page(states, Vec::new());
        assert!(page.contains(&format!("<dt>states</dt><dd>{shown}</dd>")), "{shown}");
    }
}

#[test]
fn nothing_in_a_text_can_become_markup() {
    let operation = "</script><!--<b a='\"'>&".to_owned();
    let page = page(1, vec![Step { operation: operation.clone(), ..Step::default() }]);
    assert!(page.contains("<code>&lt;/script&gt;&lt;!--&lt;b a=&#39;&quot;&#39;&gt;&amp;</code>"));
    assert_eq!(data(&page)["steps"][0]["operation"], operation.as_str());
    assert_eq!(page.matches("</script>").count(), 2, "the data and the script itself");
    assert!(!page.contains("<b a"));
}

#[test]
fn steps_in_one_section_make_one_block() {
    use Section::{Doorway, Inside, Remainder};
    let step =
        |section| Step { processes: vec![ProcessAt { section, session: 1 }], ..Step::default() };
    let page = page(1, [Doorway, Doorway, Inside, Remainder, Doorway].map(step).into());
    let blocks: Vec<_> = page.split("<title>process 0 ").skip(1).collect();
    let expected = ["doorway: steps 1 to 2<", "inside: steps 3 to 3<", "doorway: steps 5 to 5<"];
    assert_eq!(blocks.len(), expected.len());
    for (block, expected) in blocks.iter().zip(expected) {
        assert!(block.starts_with(expected), "{block}");
    }
}

#[test]
fn a_picture_of_nobody_is_no_trouble() {
    assert!(page(1, vec![Step::default()]).contains("Lanes of 0 processes"));
}

#[test]
fn an_excerpt_reaches_around_what_is_executed_and_not_beyond_the_file() {
    let text = registry::find("mcs").expect("it is registered").claims.text;
    let lines: Vec<_> = text.contents.lines().collect();
    let last = lines.len();
    let excerpts = |sources: &[String]| {
        let step = |source: &String| Step { source: Some(source.clone()), ..Step::default() };
        data(&page(1, sources.iter().map(step).collect()))["program"].clone()
    };
    let of = |line: usize| format!("mcs.rs:{line}");
    let found = excerpts(&[of(3), of(6), "unknown.rs:1".into(), "nonsense".into()]);
    let first = serde_json::json!({ "mcs.rs": { "from": 1, "lines": lines[..10] } });
    assert_eq!(found, first);
    let rest = serde_json::json!({ "mcs.rs": { "from": last - 5, "lines": lines[last - 6..] } });
    assert_eq!(excerpts(&[of(last - 1)]), rest);
}

/// Evidence keeps the old lines of the text. The page shows the present lines.
#[test]
fn a_line_is_found_again_after_its_text_has_changed() {
    let text = registry::find("mcs").expect("it is registered").claims.text;
    let lines = 1..=text.contents.lines().count() as u32;
    let mut seven = lines.filter(|&line| text.paper_line(line) == Some("7"));
    let (line, None) = (seven.next().expect("line 7 is in the text"), seven.next()) else {
        panic!("line 7 is one line");
    };
    let recorded = |line: u32| Step {
        source: Some(format!("mcs.rs:{line}")),
        paper_line: Some("7".to_owned()),
        ..Step::default()
    };
    let page = page(1, vec![recorded(line), recorded(line + 1), recorded(1)]);
    for step in data(&page)["steps"].as_array().expect("it is a list") {
        assert_eq!(step["source"], format!("mcs.rs:{line}"));
    }
}
