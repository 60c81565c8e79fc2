//! The parts of the program texts that an execution comes through.

use std::collections::BTreeMap;

use grouplock_algorithms::claims::Text;
use serde::Serialize;

use crate::trace::Step;

/// How many lines to show around each line that is executed.
const AROUND: usize = 4;

/// Lines of a file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Excerpt {
    /// The number of the first of them.
    from: usize,
    lines: Vec<&'static str>,
}

/// The lines that `steps` execute and those around them, by the file's name.
pub(super) fn excerpts(steps: &[Step], texts: &[Text]) -> BTreeMap<String, Excerpt> {
    let mut ranges: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for step in steps {
        let place = step.source.as_deref().and_then(|source| source.rsplit_once(':'));
        let Some((file, line)) = place else { continue };
        let Ok(line) = line.parse::<usize>() else { continue };
        let range = ranges.entry(file).or_insert((line, line));
        *range = (range.0.min(line), range.1.max(line));
    }
    let excerpt = |(file, (first, last)): (&str, (usize, usize))| {
        let text = texts.iter().find(|text| text.file.rsplit(['/', '\\']).next() == Some(file))?;
        let from = first.saturating_sub(AROUND).max(1);
        let lines = text.contents.lines().skip(from - 1).take(last + AROUND + 1 - from).collect();
        Some((file.to_owned(), Excerpt { from, lines }))
    };
    ranges.into_iter().filter_map(excerpt).collect()
}
