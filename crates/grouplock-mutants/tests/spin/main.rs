//! Spin, which knows nothing of the lab, gives the same results for exported models as the lab
//! gives for the code.

mod engine;

use engine::{Look, Said, ask, is_there};
use grouplock_algorithms::claims::Kind;
use grouplock_lab::export::promela;
use grouplock_lab::{Options, Properties, Property, Reductions, Subject, Verdict, check, registry};
use grouplock_mutants::list::{Case, all};

/// A question to Spin and to the lab.
#[derive(Clone, Copy, Debug)]
struct Question {
    subject: Subject,
    processes: usize,
    sessions: u64,
    passages: Option<u8>,
    property: Property,
}

impl Question {
    fn of(name: &str, processes: usize, property: Property) -> Self {
        let subject = registry::find(name).expect("it is registered");
        Question { subject, processes, sessions: 2, passages: None, property }
    }

    fn options(&self) -> Options {
        let mut options = Options::new(&self.subject, self.processes, self.sessions);
        options.passages = self.passages;
        options.properties = Properties::only(self.property);
        // A mutation may make the text's statements about dead registers false.
        options.reductions.forget = false;
        options
    }

    fn model(&self) -> String {
        promela(&self.subject, &self.options()).expect("it can be exported")
    }

    /// Spin's results for `model`, one for each kind of check.
    fn asked(&self, model: &str) -> Vec<Said> {
        let name = |p| format!("starvation_freedom_{p}");
        match self.property {
            // Handover has no loop. So if passages are bounded, an execution without end only waits
            // in the end, and `Ends` finds that. The formula has many more states.
            Property::DeadlockFreedom if self.passages > Some(1) => {
                assert_eq!(self.subject.name, "handover", "does its text have no loop?");
                ask(model, &[Look::Ends])
            }
            Property::DeadlockFreedom => ask(model, &[Look::Ends, SOMEBODY_ENTERS]),
            Property::StarvationFreedom => {
                let names: Vec<_> = (0..self.processes).map(name).collect();
                ask(model, &names.iter().map(|name| Look::Formula(name)).collect::<Vec<_>>())
            }
            _ => ask(model, &[Look::Assertions]),
        }
    }

    /// Spin's messages if this property is violated.
    fn complaints(&self) -> &'static [&'static str] {
        match self.property {
            Property::MutualExclusion => &["assertion violated mutual_exclusion"],
            Property::Fcfs => &["assertion violated first_come_first_served"],
            Property::DeadlockFreedom => &["invalid end state", "acceptance cycle"],
            _ => &["acceptance cycle"],
        }
    }

    /// Whether Spin and the lab count the same states.
    fn counts(&self) -> bool {
        matches!(self.property, Property::MutualExclusion | Property::Fcfs)
    }

    /// The states in the table of `docs/verification.md`, if it has this question.
    fn said_on_the_page(&self) -> Option<u64> {
        let Question { subject, processes, sessions, passages, property } = self;
        let size = match subject.claims.kind {
            Kind::Mutual => format!("{processes} processes"),
            Kind::Group => format!("{processes} × {sessions}"),
        };
        let bound = match passages {
            None => String::new(),
            Some(1) => ", 1 passage each".to_owned(),
            Some(passages) => format!(", {passages} passages each"),
        };
        let row = format!("| `{}`, {size}{bound} |", subject.name);
        let page = include_str!("../../../../docs/verification.md");
        let cells = page.lines().find_map(|line| line.strip_prefix(&row))?;
        let column = usize::from(*property != Property::MutualExclusion);
        cells.split('|').nth(column)?.trim().replace(',', "").parse().ok()
    }

    /// Compares Spin's results for `model` with the lab's results for the code. Returns the common
    /// verdict, or the difference. If both count the same states, the lab and Spin each without its
    /// reductions, the numbers are compared too. (If processes may stop forever, Spin has more
    /// states: one for each set of idle processes that has stopped.)
    fn compare(&self, model: &str) -> Result<Verdict, String> {
        let said = self.asked(model);
        let mut options = self.options();
        let counts = self.counts();
        if counts {
            options.reductions = Reductions::NONE;
        }
        let outcome = check(&self.subject, &options).expect("the sizes are right");
        let (verdict, ours) = (outcome.verdict, outcome.states);
        let Question { subject, processes, property, .. } = self;
        let told = format!("{}, {processes} processes, {property}", subject.name);
        println!("{told}: lab {verdict:?}, {ours} states; spin {said:?}");
        let wrong: Vec<_> = said.iter().filter_map(|said| said.wrong.as_deref()).collect();
        if let Some(other) = wrong.iter().find(|wrong| !self.complaints().contains(wrong)) {
            return Err(format!("{told}: spin says {other}"));
        }
        let theirs = if wrong.is_empty() { Verdict::Holds } else { Verdict::Violated };
        if theirs != verdict {
            return Err(format!("{told}: the lab says {verdict:?}, spin {theirs:?}: {said:?}"));
        }
        if counts && verdict == Verdict::Holds && said[0].states != ours {
            return Err(format!("{told}: the lab sees {ours} states, spin {}", said[0].states));
        }
        if counts && verdict == Verdict::Holds {
            let said = self.said_on_the_page();
            assert!(
                said.is_none_or(|said| said == ours),
                "{told}: {said:?} on the page, not {ours}"
            );
        }
        let violated = outcome.violation.map(|violation| violation.property);
        assert!(violated.is_none_or(|violated| violated == *property), "{told}: {violated:?}");
        Ok(verdict)
    }
}

/// Six algorithms, and the number of passages of each process. The number is bounded if there are
/// too many states without reductions.
const ALGORITHMS: [(&str, usize, Option<u8>); 6] = [
    ("clh", 3, None),
    ("mcs", 3, None),
    ("dvir-taubenfeld-1-swap", 2, None),
    ("burns-lamport", 3, None),
    ("keane-moir", 2, None),
    ("handover", 2, Some(2)),
];

/// Checks all of them. Returns the names of those that violate the property, in the results of
/// both.
fn violated(property: Property) -> Vec<&'static str> {
    let mut violated = Vec::new();
    for (name, processes, passages) in ALGORITHMS {
        let question = Question { passages, ..Question::of(name, processes, property) };
        let verdict = question.compare(&question.model()).unwrap_or_else(|why| panic!("{why}"));
        if question.counts() {
            let told = question.said_on_the_page();
            assert_eq!(told.is_some(), verdict == Verdict::Holds, "{name}");
        }
        violated.extend((verdict == Verdict::Violated).then_some(name));
    }
    violated
}

#[test]
fn spin_and_the_lab_see_the_same_states_and_no_two_sessions_inside() {
    if is_there() {
        assert!(violated(Property::MutualExclusion).is_empty());
    }
}

#[test]
fn spin_and_the_lab_agree_on_the_order_and_see_the_same_states() {
    if is_there() {
        assert_eq!(violated(Property::Fcfs), ["burns-lamport", "keane-moir"]);
    }
}

/// Features that the six lack: additions to numbers, waits that can be withdrawn, a limit on a
/// session, tokens.
#[test]
fn spin_and_the_lab_see_the_same_states_of_other_steps() {
    if !is_there() {
        return;
    }
    for (name, passages, property) in [
        ("anderson", 2, Property::Fcfs),
        ("handover-withdraw", 1, Property::Fcfs),
        ("phases-fifo-limited", 1, Property::MutualExclusion),
        ("petrovic", 1, Property::MutualExclusion),
        ("jayanti-jayanti", 2, Property::MutualExclusion),
    ] {
        let question = Question { passages: Some(passages), ..Question::of(name, 2, property) };
        let verdict = question.compare(&question.model()).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(verdict, Verdict::Holds, "{name}");
        assert!(question.said_on_the_page().is_some(), "{name}");
    }
}

const SOMEBODY_ENTERS: Look<'_> = Look::Formula("deadlock_freedom");

/// `handover` with so many passages of each of two processes.
fn handover(passages: u8) -> Question {
    let question = Question::of("handover", 2, Property::DeadlockFreedom);
    Question { passages: Some(passages), ..question }
}

#[test]
fn spin_and_the_lab_agree_that_somebody_enters() {
    if is_there() {
        assert!(violated(Property::DeadlockFreedom).is_empty());
        let once = handover(1);
        assert_eq!(once.compare(&once.model()), Ok(Verdict::Holds));
    }
}

#[test]
#[ignore = "a minute; `cargo xtask soak` runs it"]
fn spin_finds_no_execution_of_two_passages_without_end_in_which_nobody_enters() {
    if is_there() {
        let said = ask(&handover(2).model(), &[SOMEBODY_ENTERS]);
        assert_eq!(said[0].wrong, None);
    }
}

/// Two processes that make any number of passages. Without reductions, `handover` has too many
/// states for this. The one-bit lock and `phases` do not claim starvation freedom.
#[test]
fn spin_and_the_lab_agree_on_starvation() {
    if !is_there() {
        return;
    }
    let names =
        ["clh", "mcs", "dvir-taubenfeld-1-swap", "burns-lamport", "keane-moir", "phases-fifo"];
    for name in names {
        let question = Question::of(name, 2, Property::StarvationFreedom);
        let verdict = question.compare(&question.model()).unwrap_or_else(|why| panic!("{why}"));
        let starves = ["burns-lamport", "phases-fifo"].contains(&name);
        assert_eq!(verdict == Verdict::Violated, starves, "{name}");
    }
}

/// The mutant of `of` with the fault `what`.
fn mutant(of: &str, what: &str) -> Question {
    let case = all().into_iter().find(|case| case.of == of && case.what == what);
    let case = case.expect("it is in the list");
    let Case { subject, processes, sessions, .. } = case;
    let property = case.breaks.expect("it breaks something");
    Question { subject, processes, sessions, passages: None, property }
}

/// Its tickets grow forever.
fn bakery_without_choosing() -> Question {
    Question { passages: Some(2), ..mutant("bakery", "no choosing") }
}

#[test]
fn spin_convicts_mutants() {
    if !is_there() {
        return;
    }
    for question in [
        bakery_without_choosing(),
        mutant("clh", "a process keeps its own node"),
        mutant("phases-fifo-alone", "a session joins an exclusive holder"),
    ] {
        let verdict = question.compare(&question.model()).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(verdict, Verdict::Violated, "{}", question.subject.name);
    }
}

/// The comparison can fail: the test removes a monitor, an edge, a wait, or a step of the code from
/// a model.
#[test]
fn a_model_that_is_not_of_the_code_is_noticed() {
    if !is_there() {
        return;
    }
    let differs = |question: &Question, model: &str, why: &str| {
        assert_ne!(model, question.model(), "nothing was changed");
        let told = question.compare(model).expect_err(why);
        assert!(told.contains(why), "{told}");
    };
    let broken = bakery_without_choosing();
    let unwatched = broken.model().replace("assert(mutual_exclusion)", "skip");
    differs(&broken, &unwatched, "the lab says Violated");

    let clh = Question::of("clh", 2, Property::MutualExclusion);
    let unmet = clh.model().replace(":: is_object(v)", ":: false && is_object(v)");
    differs(&clh, &unmet, "assertion violated this_edge_was_met");
    // A process that should wait for its predecessor does not.
    let impatient = without_condition(&clh.model());
    differs(&clh, &impatient, "assertion violated mutual_exclusion");
    // One more word of memory, which names the process that was inside last. Nothing is wrong, but
    // there are more states. (Spin omits variables that no process reads.)
    let elaborate = clh.model().replace(
        "inline enters() {",
        "byte last;\ninline enters() {\n\tlast = me; assert(last < 9);",
    );
    differs(&clh, &elaborate, "the lab sees 96 states");
    // The node is never released.
    let deaf = Question { property: Property::DeadlockFreedom, ..clh };
    let forgetful = deaf.model().replace("word(known(me, 0), 0) = 0;", "");
    differs(&deaf, &forgetful, "the lab says Holds");
    // The exit lock is never released.
    let twice = handover(2);
    let locked = twice.model().replace("r_ideal_lock = 0;", "");
    differs(&twice, &locked, "the lab says Holds");
}

/// The model without the condition of its only step that may have to wait.
fn without_condition(model: &str) -> String {
    let lines = model.lines().map(|line| match line.split_once(" && word(") {
        Some((begin, rest)) if line.contains("d_step") => {
            let (_, end) = rest.split_once(" -> ").expect("a condition has an end");
            format!("{begin} -> {end}\n")
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}
