//! The status page of a member works in a browser.

use std::path::Path;

use crate::cluster::client::session_at;
use crate::cluster::{Cluster, Options, eventually};
use grouplock_room::{Places, Room, RoomOptions};
use grouplock_testing::browser::Browser;
use grouplock_testing::{current_test, skip};

/// A browser, or `None` with a notice.
fn browser(name: &str) -> Option<Browser> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{name}"));
    let browser = Browser::start(&folder);
    if browser.is_none() {
        skip(&current_test(), "chromium is not installed");
    }
    browser
}

fn open(cluster: &Cluster, room: &str, command: &str) -> Room {
    let places = Places::new().with(grouplock_quorum::opener());
    let options = RoomOptions::new().command(command);
    places.open(cluster.place(0).as_str(), room, &options).expect("the cluster is up")
}

fn text(browser: &Browser, selector: &str) -> String {
    let script = format!("return document.querySelector({selector:?})?.textContent ?? ''");
    browser.run(&script).as_str().expect("a text").to_owned()
}

#[test]
fn the_page_shows_holders_waiters_votes_and_past_stages() {
    let mut cluster = Cluster::start(Options::new(3));
    cluster.wait_connected();
    let Some(browser) = browser("status") else { return };
    browser.open(&format!("http://{}/", cluster.status_address(0)));
    eventually("the page says that there are no rooms", || {
        text(&browser, "#rooms").contains("Nobody has asked for a room yet")
    });
    assert_eq!(text(&browser, "h1"), "test: member 0 of 3");

    // Names must not become part of the page.
    let room = open(&cluster, "gpu", "infer --model <script>alert(1)</script>");
    // Member 2 has member 0 in its quorum. Member 1 does not.
    let (a, b) = (session_at(0, 3), session_at(2, 3));
    room.enter(&a).unwrap().leave().unwrap();
    let inside = room.enter(&a).unwrap();
    eventually("the one inside is shown", || {
        let card = text(&browser, "[data-room=gpu]");
        card.contains(&format!("epoch {}", inside.epoch()))
            && card.contains(&a)
            && card.contains("<script>alert(1)</script>")
            && card.contains(&std::process::id().to_string())
    });
    assert!(text(&browser, "[data-room=gpu]").contains("its vote is with member 0"));
    let scripts = browser.run("return document.scripts.length");
    assert_eq!(scripts, 1, "only the page's own");
    let phases = "return document.querySelectorAll('[data-room=gpu] svg rect').length";
    assert_eq!(browser.run(phases), 2, "the phase before and the one that runs");

    // One waiter has the same home. Another has another home: the page shows it by its request for
    // the vote.
    let mut sessions = (1..).map(|n| format!("other {n}"));
    let here = sessions.find(|name| grouplock_quorum::home(name, 3).0 == 0).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| room.enter(&here).unwrap().leave());
        eventually("the one who waits is shown", || {
            let card = text(&browser, "[data-room=gpu]");
            card.contains("WAITING · 1") && card.contains(&here)
        });
        let elsewhere = scope.spawn(|| room.enter(&b).unwrap().leave());
        eventually("the competitor is shown", || {
            text(&browser, "[data-room=gpu]").contains("wanted by member 2")
        });
        inside.leave().unwrap();
        waiting.join().unwrap().unwrap();
        elsewhere.join().unwrap().unwrap();
    });
    eventually("all phases of this home are shown as over", || {
        browser.run(phases) == 3 && !text(&browser, "[data-room=gpu]").contains("INSIDE · epoch")
    });

    cluster.kill(2);
    eventually("the dead member is shown", || {
        text(&browser, "#members li:nth-child(3)") == "2 not connected"
    });
    assert_eq!(browser.errors(), Vec::<String>::new());

    cluster.kill(0);
    eventually("the page says that its member is gone", || {
        text(&browser, "#fresh").starts_with("this member does not answer; shown as of")
    });
}

#[test]
fn the_page_fits_every_screen_and_asks_nobody_else() {
    let cluster = Cluster::start(Options::new(3));
    cluster.wait_connected();
    let Some(browser) = browser("screens") else { return };
    let session = (0..).map(|n| format!("a session with quite a long name {n}"));
    let mut sessions = session.filter(|name| grouplock_quorum::home(name, 3).0 == 0);
    let room = open(
        &cluster,
        "a-room-with-a-name",
        "a command with a good many arguments ".repeat(6).as_str(),
    );
    let inside = room.enter(&sessions.next().unwrap()).unwrap();
    browser.open(&format!("http://{}/", cluster.status_address(0)));
    eventually("the one inside is shown", || {
        text(&browser, "[data-room]").contains("a good many arguments")
    });
    for (width, scheme) in [(390, "light"), (390, "dark"), (768, "light"), (1280, "dark")] {
        browser.emulate(width, scheme);
        let beyond = browser.run(
            "return document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth",
        );
        assert_eq!(beyond, 0, "nothing lies beyond the right edge at {width} px");
    }
    let foreign = browser.run(
        "return performance.getEntriesByType('resource').map(entry => entry.name).filter(name => !name.startsWith(location.origin + '/status.json'))",
    );
    assert_eq!(foreign, serde_json::json!([]), "only its own member is asked");
    let dark = browser.run("return getComputedStyle(document.body).backgroundColor");
    browser.emulate(1280, "light");
    let light = browser.run("return getComputedStyle(document.body).backgroundColor");
    assert_ne!(dark, light);
    inside.leave().unwrap();
}
