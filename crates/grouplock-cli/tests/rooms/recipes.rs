//! `docs/recipes.md`: every block is run, with stand-ins for the programs it calls.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use grouplock_testing::Running;

use crate::place::{Place, install};

/// Records its start, its end and its room.
const STAND_IN: &str = "#!/bin/sh
where=\"${GROUPLOCK_ROOM-nowhere}|${GROUPLOCK_SESSION-nothing}|${0##*/}\"
echo \"begin|$where\" >> \"$RECIPE_LOG\"
sleep 0.05
echo \"end|$where\" >> \"$RECIPE_LOG\"
";

struct Recipe {
    title: String,
    language: String,
    text: String,
}

fn recipes() -> Vec<Recipe> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
    let page = fs::read_to_string(page).expect("the page is there");
    page.split("\n## ")
        .skip(1)
        .map(|section| {
            let title = section.lines().next().unwrap_or_default().to_owned();
            let (_, block) = section.split_once("\n```").expect("each recipe has a block");
            let (language, rest) = block.split_once('\n').expect("a block has lines");
            let (text, _) = rest.split_once("\n```").expect("a block ends");
            Recipe { title, language: language.to_owned(), text: format!("{text}\n") }
        })
        .collect()
}

/// The blocks as shell scripts that do what cron, make, systemd or a shell would do.
fn scripts(recipe: &Recipe, place: &Place) -> Vec<String> {
    let lines = || recipe.text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    match recipe.language.as_str() {
        "sh" => vec![recipe.text.clone()],
        "crontab" => lines()
            .map(|line| line.split_whitespace().skip(5).collect::<Vec<_>>().join(" "))
            .collect(),
        "ini" => {
            lines().filter_map(|line| line.strip_prefix("ExecStart=")).map(str::to_owned).collect()
        }
        "make" => {
            fs::write(place.file("Makefile"), &recipe.text).expect("it can be written");
            vec![format!("make -j4 -C '{}'", place.path().display())]
        }
        other => panic!("{}: nobody knows how to run `{other}`", recipe.title),
    }
}

/// The programs that `text` calls, without the builtins of the shell and `grouplock`.
const PROGRAMS: [&str; 18] = [
    "pg_dump",
    "migrate",
    "infer",
    "flash",
    "run-tests",
    "build-image",
    "apt-get",
    "render",
    "restic",
    "read-chip",
    "write-chip",
    "reindex",
    "ssh",
    "upgrade-kernel",
    "backup-tool",
    "load-model",
    "start-database",
    "stop-database",
];

fn try_out(recipe: &Recipe) -> Vec<String> {
    let place = Place::new();
    let programs = place.file("bin");
    fs::create_dir(&programs).expect("it can be made");
    let written = place.file("stand-in");
    fs::write(&written, STAND_IN).expect("it can be written");
    fs::set_permissions(&written, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let stand_in = programs.join("stand-in");
    install(&written, &stand_in);
    for name in PROGRAMS {
        symlink(&stand_in, programs.join(name)).expect("it can be made");
    }
    symlink(env!("CARGO_BIN_EXE_grouplock"), programs.join("grouplock")).expect("it can be made");
    let path = std::env::var("PATH").unwrap_or_default();
    let log = place.file("log");
    let start = |script: &String| {
        let mut shell = Command::new("sh");
        shell.args(["-euc", script]).env("PATH", format!("{}:{path}", programs.display()));
        shell.env("GROUPLOCK_AT", place.rooms()).env("RECIPE_LOG", &log);
        shell.env_remove("MAKEFLAGS").stdin(Stdio::null()).stdout(Stdio::null());
        Running::start(shell)
    };
    // Two copies together: rooms are for more than one process.
    let scripts = scripts(recipe, &place);
    assert!(!scripts.is_empty(), "{}", recipe.title);
    let running: Vec<Running> = scripts.iter().chain(&scripts).map(start).collect();
    for script in running {
        let code = script.code();
        // The image builder of recipe 4 may give up and exit with the code for "later".
        let later = code == Some(75) && recipe.text.contains("75");
        assert!(code == Some(0) || later, "{}: {code:?}", recipe.title);
    }
    let log = fs::read_to_string(log).expect("the stand-ins were called");
    log.lines().map(str::to_owned).collect()
}

/// The recipes that must be alone.
const ALONE: [&str; 7] =
    ["migrate", "apt-get", "flash", "write-chip", "load-model", "start-database", "stop-database"];
/// The recipes that set something up for their session.
const SET_UP: [&str; 3] = ["flash", "load-model", "start-database"];

/// Asserts that no two sessions of a room worked at the same time, that recipes which must be alone
/// were alone, and that each session used what was set up last.
fn check(title: &str, log: &[String]) {
    let mut inside: Vec<(&str, &str, &str)> = Vec::new();
    let mut ready: Option<&str> = None;
    let sets_up = log.iter().any(|line| SET_UP.iter().any(|program| line.ends_with(program)));
    let most = if title.contains("At most four") { 4 } else { usize::MAX };
    for line in log {
        let parts: Vec<&str> = line.split('|').collect();
        let [what, room, session, program] = parts[..] else { panic!("{title}: {line}") };
        if what == "begin" {
            let met = |(r, s, other): &&(&str, &str, &str)| {
                *r == room && (*s != session || ALONE.contains(other) || ALONE.contains(&program))
            };
            let other = inside.iter().find(met);
            assert!(other.is_none(), "{title}: {line} met {other:?}:\n{}", log.join("\n"));
            inside.push((room, session, program));
            assert!(inside.len() <= most, "{title}: {inside:?}");
            let used = !sets_up || ALONE.contains(&program) || ready == Some(session);
            assert!(used, "{title}: {line} where {ready:?} is set up:\n{}", log.join("\n"));
            if ALONE.contains(&program) {
                ready = SET_UP.contains(&program).then_some(session);
            }
        } else {
            let at = inside.iter().position(|here| *here == (room, session, program));
            inside.swap_remove(at.expect("it has begun"));
        }
    }
    assert!(inside.is_empty(), "{title}");
}

#[test]
fn the_recipes_do_what_they_say() {
    let recipes = recipes();
    assert_eq!(recipes.len(), 14);
    for recipe in &recipes {
        let log = try_out(recipe);
        assert!(log.len() >= 4, "{}: {log:?}", recipe.title);
        assert!(!log.iter().any(|line| line.contains("|nowhere|")), "{}: {log:?}", recipe.title);
        check(&recipe.title, &log);
    }
}

#[test]
fn the_check_of_the_recipes_can_fail() {
    let log = ["begin|r|a|x", "begin|r|b|x", "end|r|a|x", "end|r|b|x"].map(str::to_owned);
    assert!(std::panic::catch_unwind(|| check("two sessions", &log)).is_err());
    let apart = ["begin|r|a|x", "end|r|a|x", "begin|r|b|x", "end|r|b|x"].map(str::to_owned);
    check("one after the other", &apart);
    let wrong = |log: &[&str]| {
        let log: Vec<_> = log.iter().map(|line| (*line).to_owned()).collect();
        std::panic::catch_unwind(|| check("At most four", &log)).is_err()
    };
    assert!(wrong(&["begin|r|a|migrate", "begin|r|a|x", "end|r|a|x", "end|r|a|migrate"]));
    assert!(wrong(&["begin|r|a|flash", "end|r|a|flash", "begin|r|b|x", "end|r|b|x"]));
    assert!(!wrong(&["begin|r|a|flash", "end|r|a|flash", "begin|r|a|x", "end|r|a|x"]));
    assert!(wrong(&["begin|r|a|x"; 5]));
}
