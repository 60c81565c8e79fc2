//! The report page works in a browser.

use std::path::Path;

use grouplock_lab::memory::SimMemory;
use grouplock_lab::report::{Algorithm, Dossier, Exploration, Task, html};
use grouplock_lab::rmr::{Measurement, Model};
use grouplock_lab::{Options, Subject, Verdict, check};
use grouplock_testing::browser::Browser;
use grouplock_testing::{current_test, skip};

use crate::careless::Careless;

const NAME: &str = "careless<script>alert(1)</script>";

/// Everything that a page can show: a counterexample, an exploration that holds, counted
/// references.
fn dossier() -> Dossier {
    let holds = [Task::new("handover", 2, 2), Task::new("dvir-taubenfeld-1", 2, 1)];
    let mut dossier = Dossier::collect(&holds, &mut |_, _| {}).expect("the tasks are right");
    let subject = Subject::group::<Careless<SimMemory>>(NAME);
    let options = Options::new(&subject, 3, 2);
    let outcome = check(&subject, &options).expect("it takes any size");
    assert_eq!(outcome.verdict, Verdict::Violated);
    dossier.algorithms.push(Algorithm::of(&subject));
    dossier.add(Exploration::of(&subject, &Task::new(NAME, 3, 2), outcome));
    // Invented numbers for the plot.
    for (name, slope, base) in [("handover", 0, 28), (NAME, 4, 0), ("dvir-taubenfeld-1", 0, 10)] {
        for model in [Model::Cc, Model::Dsm] {
            for n in [2, 8, 64, 256] {
                dossier.rmr.push(Measurement {
                    algorithm: name.to_owned(),
                    model,
                    processes: n as usize,
                    max: slope * n + base,
                    mean: (slope * n + base) as f64 / 2.0,
                    remote_spinning: model == Model::Dsm && name == NAME,
                    ..Measurement::default()
                });
            }
        }
    }
    dossier
}

/// A browser that shows the page. `None`, and a notice, if there is no browser.
fn open(name: &str) -> Option<Browser> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(browser) = Browser::start(&folder.join(format!("chromium-{name}"))) else {
        skip(&current_test(), "chromium is not installed");
        return None;
    };
    let path = folder.join(format!("{name}.html"));
    std::fs::write(&path, html::page(&dossier())).expect("the folder for tests is writable");
    browser.open(&format!("file://{}", path.display()));
    Some(browser)
}

fn shown(browser: &Browser) -> u64 {
    let at = browser.run("return Number(document.querySelector('article.trace').dataset.at)");
    at.as_u64().expect("a step has a number")
}

fn text(browser: &Browser, selector: &str) -> String {
    let script = format!("return document.querySelector({selector:?}).textContent");
    browser.run(&script).as_str().expect("an element has a text").to_owned()
}

#[test]
fn a_trace_can_be_clicked_through() {
    let Some(browser) = open("clicks") else { return };
    let last = browser.run("return document.querySelectorAll('.steps tbody tr').length");
    let last = last.as_u64().expect("a count");
    assert!(last >= 5, "two must ask, look and write: {last} steps");
    assert_eq!(shown(&browser), 1);
    let first = text(&browser, ".card");
    assert!(first.contains("asks for session"), "{first}");

    browser.click("[data-act=next]");
    assert_eq!(shown(&browser), 2);
    assert_ne!(text(&browser, ".card"), first);
    browser.click("[data-act=previous]");
    assert_eq!((shown(&browser), text(&browser, ".card")), (1, first));
    browser.click("[data-act=previous]");
    assert_eq!(shown(&browser), 1, "nothing comes before the first step");

    browser.click("[data-act=last]");
    assert_eq!(shown(&browser), last);
    assert!(text(&browser, ".card").contains("in conflict"));
    assert_eq!(text(&browser, "article output"), format!("step {last} of {last}"));
    let inside = browser.run("return document.querySelectorAll('.who .inside').length");
    assert_eq!(inside, 2, "the violation shows two inside");
    let line = text(&browser, ".steps tr[aria-current=step] td");
    assert_eq!(line, last.to_string(), "the list marks the step that is shown");

    // Keys move a slider as a pointer does.
    browser.press("article input[type=range]", "\u{e012}\u{e012}");
    assert_eq!(shown(&browser), last - 2);
    browser.run("document.querySelector('article.trace').focus()");
    browser.press("article.trace", "\u{e014}");
    assert_eq!(shown(&browser), last - 1, "arrow keys step");

    browser.click("[data-act=first]");
    // The page itself pauses at the third step: a command from here could come after the last one.
    browser.run(
        "const trace = document.querySelector('article.trace');
         new MutationObserver((_, observer) => {
             if (trace.dataset.at !== '3') return;
             observer.disconnect();
             trace.querySelector('[data-act=play]').click();
             trace.dataset.paused = 'yes';
         }).observe(trace, { attributes: true })",
    );
    browser.click("[data-act=play]");
    let paused = "return document.querySelector('article.trace').dataset.paused === 'yes'";
    grouplock_testing::until("playing goes on by itself", || browser.run(paused) == true);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(shown(&browser), 3, "a paused trace stays where it is");

    browser.run("location.hash = '#trace-0@4'; window.dispatchEvent(new Event('hashchange'))");
    assert_eq!(shown(&browser), 4, "an address can name a step");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn the_page_fits_every_screen_and_asks_nobody() {
    let Some(browser) = open("screens") else { return };
    for (width, scheme) in [(390, "light"), (390, "dark"), (768, "light"), (1280, "dark")] {
        browser.emulate(width, scheme);
        let beyond = browser.run(
            "return document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth",
        );
        assert_eq!(beyond, 0, "nothing lies beyond the right edge at {width} px");
    }
    let asked = browser.run("return performance.getEntriesByType('resource').length");
    assert_eq!(asked, 0, "the page needs nothing but itself");
    let dark = browser.run("return getComputedStyle(document.body).backgroundColor");
    browser.emulate(1280, "light");
    let light = browser.run("return getComputedStyle(document.body).backgroundColor");
    assert_ne!(dark, light);
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn plots_set_lines_apart_and_names_stay_text() {
    let Some(browser) = open("plots") else { return };
    assert_eq!(browser.run("return document.querySelectorAll('.plot .dot').length"), 24);
    browser.click(".series button");
    let apart = browser.run("return document.querySelectorAll('.apart .of.chosen').length");
    assert_eq!(apart, 2, "one line in each plot");
    browser.click(".series button");
    assert_eq!(browser.run("return document.querySelectorAll('.apart').length"), 0);
    assert_eq!(text(&browser, "article h3 code"), NAME);
    assert_eq!(browser.run("return document.querySelectorAll('code script').length"), 0);
    assert_eq!(browser.errors(), Vec::<String>::new());
}
