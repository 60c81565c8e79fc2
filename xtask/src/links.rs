//! Checks that the links of the pages lead to existing files and headings of the repository, and
//! that each page begins with its readers.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{LIMIT, Program, root};

/// Checks every page. The error lists broken links, and pages that do not name their readers.
pub(crate) fn check() -> Result<(), String> {
    let listed = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let listed = Program::new("git").arguments(&listed).quietly(LIMIT)?.output;
    let (mut count, mut broken) = (0, Vec::new());
    // The target of a symbolic link is checked where it is.
    let is_page = |page: &&str| root().join(page).is_file() && !root().join(page).is_symlink();
    for page in listed.lines().filter(is_page) {
        let text = read(&root().join(page))?;
        if has_readers(page) && reader(&text).is_none() {
            broken.push(format!("{page} does not open with `*For …*`"));
        }
        for link in links(&text).into_iter().filter(|link| is_ours(link)) {
            count += 1;
            if let Err(why) = follow(Path::new(page), &text, &link) {
                broken.push(format!("{page}: `{link}` {why}"));
            }
        }
    }
    println!("{count} links");
    if count == 0 {
        return Err("no links were found, which cannot be".to_owned());
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n  ")) }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// Whether a page must name its readers. Pages about the whole project do it in other ways.
fn has_readers(page: &str) -> bool {
    page.contains('/') && page != "docs/README.md"
}

/// The readers of a page, from the first line after the heading.
fn reader(text: &str) -> Option<&str> {
    let first = text.lines().skip(1).find(|line| !line.is_empty())?;
    first.strip_prefix("*For ")?.strip_suffix(".*")
}

/// Whether a link leads to this repository.
fn is_ours(link: &str) -> bool {
    !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:")
}

/// The reason why a link is broken, if it is.
fn follow(page: &Path, text: &str, link: &str) -> Result<(), String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path: PathBuf = root().join(page.parent().unwrap_or(Path::new(""))).join(file);
    if !path.exists() {
        return Err("is not there".to_owned());
    }
    let is_page = file.is_empty() || path.extension().is_some_and(|extension| extension == "md");
    if anchor.is_empty() || !is_page {
        return Ok(());
    }
    let other = if file.is_empty() { text.to_owned() } else { read(&path)? };
    if anchors(&other).iter().any(|known| known == anchor) {
        Ok(())
    } else {
        Err("has no such heading".to_owned())
    }
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The line without the parts between backquotes, which may look like links.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part } else { "`" }).collect()
}

/// The targets of the links and images of a page.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        for (opening, closing) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            let pieces = line.split(opening).skip(1);
            let targets = pieces.filter_map(|piece| piece.split(closing).next());
            found.extend(targets.filter_map(|it| it.split(' ').next()).map(str::to_owned));
        }
        // `[name]: target`
        if let Some((name, target)) = line.split_once("]: ")
            && name.starts_with('[')
        {
            found.extend(target.split(' ').next().map(str::to_owned));
        }
    }
    found
}

/// The anchors of the headings of a page, by GitHub's rules.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut anchors = Vec::new();
    for line in prose(text) {
        let Some((_, heading)) = line
            .split_once("# ")
            .filter(|(marks, _)| marks.len() < 6 && marks.chars().all(|mark| mark == '#'))
        else {
            continue;
        };
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        // Only the text of a link is part of the anchor.
        let heading = heading.split("](").map(|part| part.split_once(')').map_or(part, |it| it.1));
        let heading = heading.collect::<String>().to_lowercase();
        let name: String = heading.trim().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        let times = seen.entry(name.clone()).or_default();
        anchors.push(if *times == 0 { name } else { format!("{name}-{times}") });
        *times += 1;
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Rooms: `run` & more\n[a](b.md#c) and `[no](link)` ![i](i.svg \"title\")\n\
        ```\n# no heading\n[no](code)\n```\n## Twice\n## Twice\n[n]: d.md\n<img src=\"p.svg\">";

    #[test]
    fn links_are_found_and_code_is_not_read() {
        assert_eq!(links(PAGE), ["b.md#c", "i.svg", "d.md", "p.svg"]);
    }

    #[test]
    fn headings_are_called_as_github_calls_them() {
        assert_eq!(anchors(PAGE), ["rooms-run--more", "twice", "twice-1"]);
    }

    #[test]
    fn a_page_opens_with_its_readers() {
        assert_eq!(reader("# A\n\n*For whoever has one.*\n\ntext"), Some("whoever has one"));
        assert_eq!(reader("# A\n\ntext\n\n*For whoever has one.*"), None);
        assert_eq!(reader("# A\n"), None);
        assert!(has_readers("docs/lab/README.md") && has_readers("crates/a/README.md"));
        assert!(!has_readers("README.md") && !has_readers("docs/README.md"));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_an_error() {
        let page = Path::new("README.md");
        assert_eq!(follow(page, PAGE, "Cargo.toml"), Ok(()));
        assert_eq!(follow(page, PAGE, "#twice-1"), Ok(()));
        assert!(follow(page, PAGE, "Cargo.tom").is_err());
        assert!(follow(page, PAGE, "#thrice").is_err());
        assert!(follow(page, PAGE, "CONTRIBUTING.md#nothing-of-this-name").is_err());
    }
}
