//! Makes, writes and reads a dossier.

use grouplock_lab::report::{Dossier, Exploration, Task};
use grouplock_lab::{Properties, Property};

#[test]
fn what_lab_check_prints_can_be_added() {
    let printed = r#"{ "algorithm": "mcs", "processes": 2, "sessions": 2, "passages": null,
        "states": 38, "depth": 12, "seconds": 0.01, "verdict": "holds", "property": null,
        "because": null, "trace": null }"#;
    let read: Exploration = serde_json::from_str(printed).expect("the format is kept");
    assert!(read.trace.is_empty() && read.properties == Properties::default());
    let violated = printed.replace("\"property\": null", "\"property\": \"fcfs\"");
    let mut dossier = Dossier::default();
    dossier.add(serde_json::from_str(&violated).expect("the format is kept"));
    let known: Vec<_> = dossier.explorations[0].properties.iter().collect();
    assert_eq!(known, [Property::Fcfs]);
}

#[test]
fn a_dossier_has_a_json_form_with_the_claims() {
    let dossier = Dossier::collect(&[], &mut |_, _| {}).expect("nothing can be wrong");
    let text = serde_json::to_string(&dossier).expect("plain data");
    assert!(text.contains("\"mutual-exclusion\":\"claimed, refuted\""), "{text}");
}

#[test]
fn a_task_for_nobody_is_refused_with_a_suggestion() {
    let refused = Dossier::collect(&[Task::new("handver", 2, 2)], &mut |_, _| {});
    assert!(refused.unwrap_err().to_string().contains("\"handover\""));
}
