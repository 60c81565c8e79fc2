//! The contents of a paper's table.

use grouplock_lab::report::{Broken, Cell, Dossier, Exploration, Paper, Support, Table, Task};
use grouplock_lab::rmr::Measurement;
use grouplock_lab::{Property, Verdict};

fn dossier(tasks: &[Task]) -> Dossier {
    Dossier::collect(tasks, &mut |_, _| {}).expect("the tasks are right")
}

fn cell<'a>(table: &'a Table, algorithm: &str, column: &str) -> &'a Cell {
    let column = table.columns.iter().position(|name| name.contains(column));
    let row = table.rows.iter().find(|row| row.algorithm == algorithm);
    &row.expect("the row is there").cells[column.expect("the column is there")]
}

#[test]
fn what_was_not_measured_says_so() {
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier(&[]));
    assert_eq!(cell(&table, "handover", "Fairness").measured, "not measured");
    assert_eq!(cell(&table, "handover", "RMR in CC").measured, "not measured");
    assert_eq!(cell(&table, "handover", "Fairness").claimed, "FCFS, FIFE");
}

#[test]
fn what_was_exhausted_says_how_far() {
    let dossier = dossier(&[Task::new("handover", 2, 1), Task::new("handover", 2, 2)]);
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    let fairness = cell(&table, "handover", "Fairness");
    assert_eq!(fairness.measured, "holds");
    assert_eq!(fairness.how, "exhausted up to 2 × 2 (ideal inner lock)");
    assert_eq!(fairness.support, Support::Supported);
}

#[test]
fn starvation_freedom_needs_passages_without_end() {
    let task = Task::new("keane-moir", 2, 2);
    let measured = |task| {
        let table = Table::measured(Paper::HE, &dossier(&[task]));
        cell(&table, "keane-moir", "starvation").measured.clone()
    };
    assert_eq!(measured(task.clone().passages(1)), "not measured");
    assert_eq!(measured(task), "holds");
}

#[test]
fn what_nobody_claims_and_does_not_hold_is_no_refutation() {
    let task = Task::new("phases-fifo", 2, 2).only(Property::StarvationFreedom);
    let table = Table::measured(Paper::HE, &dossier(&[task]));
    let cell = cell(&table, "phases-fifo", "starvation");
    assert_eq!((&*cell.claimed, &*cell.measured), ("no", "does not hold"));
    assert_eq!(cell.support, Support::Supported);
}

#[test]
fn sizes_with_different_results_are_all_shown() {
    let dossier = dossier(&[
        Task::new("handover+dvir-taubenfeld-1-swap", 2, 2).passages(1),
        Task::new("handover", 2, 2),
        Task::new("handover", 2, 1),
        Task::new("handover", 3, 2).passages(1),
    ]);
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    assert_eq!(
        cell(&table, "handover", "Fairness").how,
        "exhausted up to 2 × 2, 1 passage each; 3 × 2, 1 passage each (ideal inner lock); \
         2 × 2 (ideal inner lock)"
    );
}

#[test]
fn a_claim_that_an_exploration_refutes_says_so() {
    let mut dossier = dossier(&[Task::new("handover", 2, 2)]);
    let found: &mut Exploration = &mut dossier.explorations[0];
    (found.verdict, found.violated) = (Verdict::Violated, Some(Property::Fcfs));
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    let fairness = cell(&table, "handover", "Fairness");
    assert_eq!(fairness.measured, "FCFS refuted; FIFE not measured");
    assert_eq!(fairness.support, Support::Refuted);
    assert_eq!(cell(&table, "handover", "exclusion").measured, "not measured");
}

#[test]
fn a_claim_known_to_be_false_does_not_look_true_because_a_run_was_short() {
    let dossier = dossier(&[Task::new("maor-taubenfeld", 2, 1)]);
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    let exclusion = cell(&table, "maor-taubenfeld", "exclusion");
    assert_eq!(exclusion.claimed, "yes, refuted");
    assert_eq!(exclusion.measured, "no violation so far");
    assert_eq!(exclusion.support, Support::Partly);
}

#[test]
fn a_limit_is_never_shown_as_a_proof() {
    let mut dossier = dossier(&[Task::new("handover", 2, 2)]);
    dossier.explorations[0].verdict = Verdict::Limit;
    let table = Table::measured(Paper::HE, &dossier);
    assert_eq!(cell(&table, "handover", "P5").measured, "nothing found");
    assert_eq!(cell(&table, "handover", "Bounded").measured, "not measured");
}

fn counted(points: &[(usize, u64)], bound: Option<u64>) -> Dossier {
    let point = |&(processes, max): &(usize, u64)| Measurement {
        algorithm: "handover".to_owned(),
        processes,
        max,
        mean: 20.0,
        bound,
        ..Measurement::default()
    };
    Dossier { rmr: points.iter().map(point).collect(), ..dossier(&[]) }
}

#[test]
fn counted_references_are_shown_as_found_with_their_growth() {
    // The largest number is not the number for the most processes.
    let dossier = counted(&[(2, 22), (8, 29), (64, 28), (256, 28)], None);
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    let rmr = cell(&table, "handover", "RMR in CC");
    assert_eq!(rmr.measured, "O(1), largest found 29");
    assert_eq!(rmr.how, "sampled to 256 processes");
    assert_eq!(cell(&table, "handover", "RMR in DSM").measured, "not measured");
}

#[test]
fn only_a_proven_bound_is_shown_as_at_most() {
    let dossier = counted(&[(2, 22), (8, 29)], Some(31));
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    let rmr = cell(&table, "handover", "RMR in CC");
    assert_eq!(rmr.measured, "O(1), at most 31; largest found 29");
    assert_eq!(rmr.how, "proven for any number of processes; sampled to 8 processes");
    assert_eq!(rmr.support, Support::Supported);
}

#[test]
fn a_lock_that_broke_has_no_figures_and_no_tick() {
    let explored = dossier(&[Task::new("handover", 2, 2)]).explorations;
    let mut dossier = Dossier { explorations: explored, ..counted(&[(2, 22), (64, 28)], Some(31)) };
    let before = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    assert_eq!(cell(&before, "handover", "exclusion").support, Support::Supported);
    let (algorithm, because) = ("handover".to_owned(), "it stood still".to_owned());
    dossier.broken.push(Broken { algorithm, processes: 8, because });
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
    let rmr = cell(&table, "handover", "RMR in CC");
    assert_eq!((&*rmr.measured, &*rmr.how), ("breaks with 8 processes", "it stood still"));
    let row = table.rows.iter().find(|row| row.algorithm == "handover").expect("it is ours");
    assert!(row.cells.iter().all(|cell| cell.support != Support::Supported), "{row:?}");
}

#[test]
fn the_papers_words_stand_beside_ours() {
    let table = Table::measured(Paper::HE, &dossier(&[]));
    assert_eq!(cell(&table, "keane-moir", "RMR").printed, Some("O(log N)"));
    assert_eq!(cell(&table, "handover", "RMR").printed, None);
}

#[test]
fn every_line_of_the_markdown_has_as_many_cells() {
    let text = Table::measured(Paper::HE, &dossier(&[])).to_markdown();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert!(lines.len() > 20);
    assert!(lines.iter().all(|line| line.matches('|').count() == 11), "{text}");
}

#[test]
fn a_printed_row_has_a_word_for_each_column_but_the_first() {
    for paper in Paper::ALL {
        let columns = Table::measured(paper, &dossier(&[])).columns.len();
        for [_, called, words] in paper.printed {
            assert_eq!(words.split('|').count() + 1, columns, "{called}");
        }
    }
}

/// Ten rows: four are measured here (two of them make one), and the others are quoted.
#[test]
fn rows_whose_algorithms_are_not_here_are_quoted() {
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier(&[]));
    let mut called: Vec<_> = table.rows.iter().filter_map(|row| row.called).collect();
    called.dedup();
    assert_eq!(called.len() + table.quoted.len(), 10);
    for row in &table.quoted {
        assert_eq!(row.printed.len(), table.columns.len(), "{}", row.called);
    }
    let text = table.to_markdown();
    assert!(text.contains("(Gokhale & Mittal 2019)"), "{text}");
    assert_eq!(text.matches("quoted, not here").count(), 7, "{text}");
}

#[test]
fn our_claims_are_not_shown_as_those_of_others() {
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier(&[]));
    let text = table.to_markdown();
    for (name, whose, theirs) in [
        ("forums", "ours, the profile of Aravind and Hesselink 2019", "Aravind & Hesselink 2019"),
        (
            "pairwise-bakery",
            "ours, the profile of Danek and Hadzilacos 2004 but for FIFE",
            "Danek & Hadzilacos 2004",
        ),
    ] {
        let row = table.rows.iter().find(|row| row.algorithm == name).expect("it is measured");
        assert_eq!((row.called, row.source), (None, whose));
        assert!(text.contains(&format!("| {whose} ")), "{text}");
        assert!(table.quoted.iter().any(|row| row.called == theirs), "{theirs} is quoted as well");
    }
    assert!(text.contains("Gokhale, Dhoked and Mittal, PPoPP 2021"), "{text}");
}

/// If a lock does not claim a property and the lab found a violation, this supports the ✗ in its
/// row.
#[test]
fn what_is_lacking_is_shown() {
    let task = Task::new("rooms", 2, 1).passages(1).only(Property::ConcurrentOccupancy);
    let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier(&[task]));
    let entering = cell(&table, "rooms", "entering");
    assert_eq!((&*entering.claimed, &*entering.measured), ("✗", "no CO"));
    assert!(entering.how.contains("steps at 2 × 1"), "{}", entering.how);
    assert_eq!(entering.support, Support::Supported);
    assert_eq!(cell(&table, "forums", "entering").measured, "not measured");
}
