//! The raw figures, with one lock in one workload per line, so that `git diff` can compare them.

use serde_json::{Value, json};

use super::goals::Goal;
use super::run::Results;
use crate::machine;

/// The depth to which values are spread over lines.
const SPREAD: usize = 5;

pub(super) fn report(results: &Results, goals: &[Goal]) -> Result<String, serde_json::Error> {
    let machine = json!({
        "processor": machine::processor(),
        "cores": machine::cores(),
        "system": machine::system(),
        "rustc": machine::RUSTC,
    });
    let mut report =
        json!({ "machine": machine, "goals": goals, "results": serde_json::to_value(results)? });
    round(&mut report, 3, 1000.0);
    Ok(text(&report))
}

/// `value` as text: outer levels have an entry per line, inner levels are on one line.
fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text.push('\n');
    text
}

fn write(value: &Value, depth: usize, text: &mut String) {
    let entries: Vec<(Option<&str>, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (Some(&**key), value)).collect(),
        Value::Array(list) => list.iter().map(|value| (None, value)).collect(),
        _ => Vec::new(),
    };
    if entries.is_empty() || depth >= SPREAD || is_flat(value) {
        text.push_str(&value.to_string());
        return;
    }
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    text.push(open);
    for (position, (key, value)) in entries.into_iter().enumerate() {
        text.push_str(if position == 0 { "\n" } else { ",\n" });
        if let Some(key) = key {
            text.push_str(&Value::from(key).to_string());
            text.push_str(": ");
        }
        write(value, depth + 1, text);
    }
    text.push('\n');
    text.push(close);
}

/// Whether the value has at most two levels.
fn is_flat(value: &Value) -> bool {
    fn depth(value: &Value) -> usize {
        match value {
            Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
            Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }
    depth(value) <= 2
}

/// Rounds every fraction to `digits` digits, and from `whole` on to a whole number.
fn round(value: &mut Value, digits: i32, whole: f64) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let Some(exact) = number.as_f64() else { return };
            let unit = if exact.abs() >= whole { 1.0 } else { 10_f64.powi(digits) };
            *value = Value::from((exact * unit).round() / unit);
        }
        Value::Array(list) => list.iter_mut().for_each(|value| round(value, digits, whole)),
        Value::Object(map) => map.values_mut().for_each(|value| round(value, digits, whole)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_text_is_json() {
        let value = json!({"a": [{"b": [1, 2], "c": {"d": [[3]]}}], "e": "\"", "f": [], "g": null});
        let text = text(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.lines().count() > 5, "{text}");
    }

    #[test]
    fn numbers_are_rounded_for_their_size() {
        let mut value = json!([1.23456, 12345.678, 7, "1.23456"]);
        round(&mut value, 3, 1000.0);
        assert_eq!(value, json!([1.235, 12346.0, 7, "1.23456"]));
    }
}
