//! Reads lists of mutants. `xtask/mutants/grouplock.txt` describes the format.

/// One fault in one file, and the test that must notice it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The fault, in a sentence.
    pub(crate) what: String,
    /// From the root of the repository.
    pub(crate) file: String,
    pub(crate) check: Check,
    /// Whether `cargo xtask test` tries it.
    pub(crate) ci: bool,
    text: String,
    instead: String,
}

/// A test program that must fail.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Check {
    pub(crate) package: String,
    /// Its name, or `lib`.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// The tool that replaces the standard library.
    pub(crate) cfg: Option<String>,
}

impl Check {
    pub(crate) fn filter(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    pub(crate) fn shown(&self) -> String {
        let words = [&self.package, &self.program].into_iter().chain(&self.arguments);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl Mutant {
    /// `whole` with the fault.
    pub(crate) fn applied_to(&self, whole: &str) -> Result<String, String> {
        match whole.matches(&self.text).count() {
            1 => Ok(whole.replacen(&self.text, &self.instead, 1)),
            0 => Err(format!("{}: `{}` does not have the text any more", self.name, self.file)),
            n => Err(format!("{}: `{}` has the text {n} times", self.name, self.file)),
        }
    }
}

/// Reads a list.
pub(crate) fn read(list: &str) -> Result<Vec<Mutant>, String> {
    let list = format!("\n{list}");
    // The text before the first one is a comment.
    list.split("\n== ").skip(1).map(mutant).collect()
}

fn mutant(entry: &str) -> Result<Mutant, String> {
    let (title, rest) = entry.split_once('\n').unwrap_or((entry, ""));
    let (name, what) = title.split_once(' ').unwrap_or((title, ""));
    let mut mutant =
        Mutant { name: name.to_owned(), what: what.trim().to_owned(), ..Mutant::default() };
    let wrong = |why: &str| format!("{name}: {why}");
    let (head, body) = rest.split_once("---\n").ok_or_else(|| wrong("there is no line `---`"))?;
    for line in head.lines().filter(|line| !line.trim().is_empty()) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("in", file) => file.trim().clone_into(&mut mutant.file),
            ("cfg", tool) => mutant.check.cfg = Some(tool.trim().to_owned()),
            ("ci", "") => mutant.ci = true,
            ("check", check) => {
                let mut words = check.split_whitespace().map(str::to_owned);
                mutant.check.package = words.next().unwrap_or_default();
                mutant.check.program = words.next().unwrap_or_default();
                mutant.check.arguments = words.collect();
            }
            _ => return Err(wrong(&format!("`{line}` is not understood"))),
        }
    }
    if mutant.what.is_empty() || mutant.file.is_empty() || mutant.check.program.is_empty() {
        return Err(wrong("it needs a sentence, `in FILE` and `check PACKAGE PROGRAM`"));
    }
    let (text, instead) = format!("\n{body}\n")
        .split_once("\n+++\n")
        .map(|(text, instead)| (text[1..].to_owned(), instead.trim_end().to_owned()))
        .ok_or_else(|| wrong("there is no line `+++`"))?;
    if text.trim().is_empty() || text == instead {
        return Err(wrong("nothing is replaced"));
    }
    (mutant.text, mutant.instead) = (text, instead);
    Ok(mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "A comment.\n\n    == NAME not a mutant\n\n== first It is wrong\nin a/b.rs\n\
        check lock shuttle --exact one\ncfg shuttle\nci\n---\n  old line\n  and another\n+++\n  new line\n\n\
        == second It is gone\nin c.rs\ncheck lock lib\n---\ngone\n+++\n";

    #[test]
    fn a_list_is_read() {
        let [first, second] = &read(LIST).expect("it is right")[..] else { panic!("two mutants") };
        assert_eq!((&*first.name, &*first.what, &*first.file), ("first", "It is wrong", "a/b.rs"));
        assert_eq!(first.check.shown(), "lock shuttle --exact one");
        assert_eq!((first.check.cfg.as_deref(), first.ci), (Some("shuttle"), true));
        assert_eq!((&*first.text, &*first.instead), ("  old line\n  and another", "  new line"));
        assert_eq!((second.check.cfg.as_deref(), second.ci), (None, false));
        assert_eq!((&*second.text, &*second.instead), ("gone", ""));
    }

    #[test]
    fn a_text_must_stand_once_in_its_file() {
        let second = &read(LIST).expect("it is right")[1];
        assert_eq!(second.applied_to("be gone!").as_deref(), Ok("be !"));
        assert!(second.applied_to("be here").is_err_and(|why| why.contains("any more")));
        assert!(second.applied_to("gone, gone").is_err_and(|why| why.contains("2 times")));
    }

    #[test]
    fn what_is_missing_is_said() {
        for (list, why) in [
            ("== a b\nin f\ncheck p t\n---\nx\n", "`+++`"),
            ("== a b\nin f\ncheck p t\nx\n+++\ny\n", "`---`"),
            ("== a b\ncheck p t\n---\nx\n+++\ny\n", "in FILE"),
            ("== a b\nin f\ncheck p\n---\nx\n+++\ny\n", "check PACKAGE"),
            ("== a b\nin f\ncheck p t\nslow\n---\nx\n+++\ny\n", "`slow`"),
            ("== a b\nin f\ncheck p t\n---\nx\n+++\nx\n", "nothing is replaced"),
        ] {
            let said = read(list).expect_err("it is wrong");
            assert!(said.contains(why), "{said}");
        }
    }
}
