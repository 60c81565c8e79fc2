//! Makes each mutant from the text that ships, by replacing a line or two. A replacement that no
//! longer fits the text stops the build, so a mutant cannot silently change its meaning.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A mutant: its name, the text it is made from, and the replacements. A replacement applies once,
/// or wherever the text occurs if it begins with a star.
struct Mutant {
    name: &'static str,
    text: &'static str,
    changes: &'static [(&'static str, &'static str)],
}

const HANDOVER: &str = "group_exclusion/handover.rs";
const HANDOVER_WITHDRAW: &str = "group_exclusion/handover_withdraw.rs";
const HANDOVER_STEPS: &str = "group_exclusion/handover_steps.rs";
const MAOR_TAUBENFELD: &str = "group_exclusion/maor_taubenfeld.rs";
const PHASES: &str = "group_exclusion/phases.rs";
const RECOVERABLE: &str = "group_exclusion/recoverable.rs";
const BWBGME: &str = "group_exclusion/black_white_bakery_gme.rs";
const GLB: &str = "group_exclusion/generalized_bakery.rs";
const PAIRWISE_BAKERY: &str = "group_exclusion/pairwise_bakery.rs";
const ROOMS: &str = "group_exclusion/rooms.rs";
const FORUMS: &str = "group_exclusion/forums.rs";
const BAKERY: &str = "mutual_exclusion/bakery.rs";
const ANDERSON: &str = "mutual_exclusion/anderson.rs";
const CLH: &str = "mutual_exclusion/clh.rs";
const DVIR_TAUBENFELD_1: &str = "mutual_exclusion/dvir_taubenfeld_1.rs";
const DVIR_TAUBENFELD_2: &str = "mutual_exclusion/dvir_taubenfeld_2.rs";
const DVIR_TAUBENFELD_1_SWAP: &str = "mutual_exclusion/dvir_taubenfeld_1_swap.rs";
const BURNS_LAMPORT: &str = "mutual_exclusion/burns_lamport.rs";
const MCS: &str = "mutual_exclusion/mcs.rs";
const JAYANTI_JAYANTI: &str = "mutual_exclusion/jayanti_jayanti.rs";

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "handover_without_cooling",
        text: HANDOVER,
        changes: &[
            ("me.spare.ready = me.spare.cool; // 20", "me.spare.ready = head;"),
            ("me.spare.cool = head; // 20", ""),
        ],
    },
    Mutant {
        name: "handover_always_signals",
        text: HANDOVER,
        changes: &[("if other {", "let _ = other;\n                {")],
    },
    Mutant {
        name: "handover_sets_head_late",
        text: HANDOVER,
        changes: &[
            ("M::doorway_end();", "M::doorway_end();\n        let mut late = false;"),
            ("self.head.write(node, Release); // 3", "late = true; //"),
            ("self.head.write(node, Release); // 6", "late = true; //"),
            ("self.head.write(node, Release); // 9", "late = true; //"),
            ("*M::live(|| []);", "M::live(|| [late.word()]);"),
            (
                "self.record(user).go.signal(true); // 12: awaited in line 7\n        }",
                "self.record(user).go.signal(true);\n        }
        if late {
            self.head.write(node, Release);
        }",
            ),
        ],
    },
    Mutant {
        name: "withdraw_without_looking_at_go",
        text: HANDOVER_WITHDRAW,
        changes: &[("let enabled = go.holds(true); // 25", "let enabled = false; //")],
    },
    Mutant {
        name: "withdraw_though_it_is_being_enabled",
        text: HANDOVER_WITHDRAW,
        changes: &[(
            "let enabling = same && !p.link.cas(node, Ptr::NIL, AcqRel); // 27",
            "let enabling = false; //",
        )],
    },
    Mutant {
        name: "withdraw_without_29",
        text: HANDOVER_WITHDRAW,
        changes: &[("p.next.write(Ptr::NIL, Relaxed); // 29", "//")],
    },
    Mutant {
        name: "withdraw_without_34",
        text: HANDOVER_WITHDRAW,
        changes: &[(
            "let joins = q.session.read(Relaxed) == p.session.read(Relaxed); // 34",
            "let joins = false; //",
        )],
    },
    Mutant {
        name: "withdraw_uses_a_forwarding_node_again",
        text: HANDOVER_WITHDRAW,
        changes: &[("me.spare.ready = self.spare_node();", "")],
    },
    Mutant {
        name: "withdraw_waits_for_a_late_successor",
        text: HANDOVER_WITHDRAW,
        changes: &[(
            "let forwards = n.next.cas(Ptr::NIL, Node::<M>::FORWARD, AcqRel); // 31",
            "M::await_until(|| !n.next.read(Acquire).is_nil()); let forwards = false; //",
        )],
    },
    Mutant {
        name: "recoverable_settles_one",
        text: RECOVERABLE,
        changes: &[(
            "waiter.go.signal(true); // 27: awaited in line 11\n",
            "waiter.go.signal(true);\n            return;\n",
        )],
    },
    Mutant {
        name: "recoverable_mends_without_the_last",
        text: RECOVERABLE,
        changes: &[("waiting.sort_unstable();", "waiting.sort_unstable(); waiting.pop();")],
    },
    Mutant {
        name: "recoverable_buries_unarmed",
        text: RECOVERABLE,
        changes: &[("self.armed.write(true, Relaxed); // 16", "//")],
    },
    Mutant {
        name: "recoverable_disarms_before_it_settles",
        text: RECOVERABLE,
        changes: &[(
            "self.settle(EXIT);\n        self.armed.write(false, Relaxed); // 13",
            "self.armed.write(false, Relaxed);\n        self.settle(EXIT); //",
        )],
    },
    Mutant {
        name: "recoverable_without_32",
        text: RECOVERABLE,
        changes: &[("self.places[q].go.signal(true); // 32", "let _ = q; //")],
    },
    Mutant {
        name: "steps_change_without_forward",
        text: HANDOVER_STEPS,
        changes: &[(
            "let forwards = !last && h.next.cas(Ptr::NIL, Node::<M>::FORWARD, AcqRel); // 31",
            "let forwards = !last && h.next.read(Acquire).is_nil(); //",
        )],
    },
    Mutant {
        name: "steps_change_in_company",
        text: HANDOVER_STEPS,
        changes: &[("if !last && if_last {", "if false {")],
    },
    Mutant {
        name: "steps_enable_forgets_line_12",
        text: HANDOVER_STEPS,
        changes: &[("node = n.link.fas(Node::<M>::ENABLED, AcqRel); // 12", "node = Ptr::NIL; //")],
    },
    Mutant {
        name: "steps_try_enters_behind_another_session",
        text: HANDOVER_STEPS,
        changes: &[(
            "let inside = self.arrive(me, s, pred) || self.withdraw(me, s);",
            "let inside = self.arrive(me, s, pred) || true;",
        )],
    },
    Mutant {
        name: "steps_gives_up_while_another_stands_in",
        text: HANDOVER_STEPS,
        changes: &[("let back = self.flag(me).comes_back();", "let back = true;")],
    },
    Mutant {
        name: "maor_taubenfeld_hands_over",
        text: MAOR_TAUBENFELD,
        changes: &[
            (
                "me.own.current = 1 - me.own.current; // 50",
                "let used = me.own.current;
            me.own.nodes[used] = temp_head_p;
            me.own.current = 1 - used;",
            ),
            (
                "M::live(|| []);\n        // SAFETY: we acquired",
                "M::live(|| [temp_head_p.word()]);\n        // SAFETY: we acquired",
            ),
        ],
    },
    Mutant {
        name: "maor_taubenfeld_without_cas_13_and_30",
        text: MAOR_TAUBENFELD,
        changes: &[
            (
                "let enabled = pred.status.cas(ENABLED, NO_HELP, SeqCst); // 13",
                "let enabled = pred.status.read(SeqCst) == ENABLED; // 13
                if enabled {
                    pred.status.write(NO_HELP, SeqCst); // 14
                }",
            ),
            (
                "let helping = node.status.cas(ENABLED, TRY_HELP, SeqCst); // 30",
                "let helping = node.status.read(SeqCst) == ENABLED; // 30
                if helping {
                    node.status.write(TRY_HELP, SeqCst); // 30
                }",
            ),
        ],
    },
    Mutant {
        name: "maor_taubenfeld_without_cas_15_19_and_44",
        text: MAOR_TAUBENFELD,
        changes: &[
            (
                "let active = pred.active.cas(YES, HELP, SeqCst); // 15",
                "let active = pred.active.read(SeqCst) == YES; // 15
                    if active {
                        pred.active.write(HELP, SeqCst); // 16
                    }",
            ),
            (
                "let active = pred.active.cas(YES, HELP, SeqCst); // 19",
                "let active = pred.active.read(SeqCst) == YES; // 19
                if active {
                    pred.active.write(HELP, SeqCst); // 19
                }",
            ),
            (
                "let inactive = temp_head.active.cas(YES, NO, SeqCst); // 44",
                "let inactive = temp_head.active.read(SeqCst) == YES; // 44
                if inactive {
                    temp_head.active.write(NO, SeqCst); // 47
                }",
            ),
        ],
    },
    // Section 3.3, item 1.
    Mutant {
        name: "maor_taubenfeld_one_node",
        text: MAOR_TAUBENFELD,
        changes: &[("me.own.current = 1 - me.own.current; // 50", "")],
    },
    // Section 3.3, item 5: it holds, as the paper says.
    Mutant {
        name: "maor_taubenfeld_without_39",
        text: MAOR_TAUBENFELD,
        changes: &[("self.head.cas(temp_head_p, Ptr::NIL, SeqCst); // 39", "")],
    },
    // Section 3.3, item 6: it breaks, though the paper says that it does not.
    Mutant {
        name: "maor_taubenfeld_signals_outside_its_exit_lock",
        text: MAOR_TAUBENFELD,
        changes: &[
            (
                "let temp_head_p = self.head.read(SeqCst); // 37",
                "let temp_head_p = self.head.read(SeqCst); // 37
        let mut enabled = Ptr::NIL;",
            ),
            ("self.at(temp_head).go.signal(true); // 43", "enabled = temp_head;"),
            ("self.at(temp_head).go.signal(true); // 47", "enabled = temp_head;"),
            (
                "M::live(|| []);\n        // SAFETY: we acquired",
                "M::live(|| [enabled.word()]);\n        // SAFETY: we acquired",
            ),
            (
                "unsafe { self.lock.release(&mut me.exit) }; // 49",
                "unsafe { self.lock.release(&mut me.exit) }; // 49
        if !enabled.is_nil() {
            self.at(enabled).go.signal(true); // 43
        }",
            ),
        ],
    },
    Mutant {
        name: "bakery_without_choosing",
        text: BAKERY,
        changes: &[("M::await_until(|| !other.choosing.read(SeqCst)); // 5", "")],
    },
    Mutant {
        name: "anderson_without_3",
        text: ANDERSON,
        changes: &[("mine.set(false); // 3: published by line 4", "")],
    },
    Mutant { name: "clh_keeps_its_node", text: CLH, changes: &[("me.n = me.pred; // 5", "")] },
    Mutant {
        name: "dvir_taubenfeld_1_one_node",
        text: DVIR_TAUBENFELD_1,
        changes: &[("me.current = 1 - me.current; // 16", "")],
    },
    Mutant {
        name: "dvir_taubenfeld_1_7_before_6",
        text: DVIR_TAUBENFELD_1,
        changes: &[
            ("mynode.locked.set(true); // 6", "pred.next.write(me.q[me.current], SeqCst); //"),
            ("pred.next.write(me.q[me.current], SeqCst); // 7", "mynode.locked.set(true); //"),
        ],
    },
    Mutant {
        name: "dvir_taubenfeld_1_11_before_10",
        text: DVIR_TAUBENFELD_1,
        changes: &[
            (
                "mynode.status.write(UNLOCKED, SeqCst); // 10",
                "let has_successor = !mynode.next.read(SeqCst).is_nil(); //",
            ),
            (
                "let has_successor = !mynode.next.read(SeqCst).is_nil(); // 11",
                "mynode.status.write(UNLOCKED, SeqCst); //",
            ),
        ],
    },
    Mutant {
        name: "dvir_taubenfeld_2_unlocked",
        text: DVIR_TAUBENFELD_2,
        changes: &[
            (
                "dummy.status.write(zero::<M>(), Relaxed);",
                "dummy.status.write(Ptr::MARK_1, Relaxed);",
            ),
            ("pred.status.cas(pred_pid, ", "pred.status.cas(Ptr::MARK_1, "),
            (
                "qnode.status.write(me.q, SeqCst); // 11",
                "qnode.status.write(Ptr::MARK_1, SeqCst); //",
            ),
            ("qnode.status.cas(me.q, ", "qnode.status.cas(Ptr::MARK_1, "),
        ],
    },
    Mutant {
        name: "bwbgme_without_opposite_color",
        text: BWBGME,
        changes: &[("me.mynumber != 1 && !self.opposite_color(me.mycolor)", "me.mynumber != 1")],
    },
    Mutant {
        name: "bwbgme_without_number_1",
        text: BWBGME,
        changes: &[("me.mynumber != 1 && !self.opposite", "!self.opposite")],
    },
    // Section 6: "simply add an additional check" for a conflict to every wait of the Black-White
    // Bakery.
    Mutant {
        name: "bwbgme_naive",
        text: BWBGME,
        changes: &[
            ("other.color == mycolor && other.conflicts(mysession)", "other.color == mycolor"),
            ("if me.mynumber != 1 && !self.opposite_color(me.mycolor) {", "{"),
        ],
    },
    Mutant {
        name: "glb_without_choosing",
        text: GLB,
        changes: &[(
            "M::await_until(|| !other.choosing.read(SeqCst) || !other.conflicts(mysession)); // 8",
            "",
        )],
    },
    Mutant {
        name: "jayanti_jayanti_lines_up_again",
        text: JAYANTI_JAYANTI,
        changes: &[("if left != me.mypred {", "let _ = left;\n        {")],
    },
    Mutant {
        name: "jayanti_jayanti_leaves_the_pointer",
        text: JAYANTI_JAYANTI,
        changes: &[("v = word.fas(Ptr::NIL, AcqRel); // 5", "v = word.read(Acquire); //")],
    },
    Mutant {
        name: "jayanti_jayanti_without_8",
        text: JAYANTI_JAYANTI,
        changes: &[("mine.word.write(me.mypred, Release); // 8", "//")],
    },
    Mutant {
        name: "pairwise_bakery_without_4",
        text: PAIRWISE_BAKERY,
        changes: &[("other.wait[i].write(false, SeqCst); // 4", "let _ = other; //")],
    },
    Mutant {
        name: "pairwise_bakery_looks_once",
        text: PAIRWISE_BAKERY,
        changes: &[("let second = self.conflict(j, s, t); // 7", "let second = true; //")],
    },
    Mutant {
        name: "pairwise_bakery_without_pending",
        text: PAIRWISE_BAKERY,
        changes: &[("mine.r.write(pack(s, PENDING), SeqCst); // 1", "")],
    },
    Mutant {
        name: "rooms_let_in_before_they_open",
        text: ROOMS,
        changes: &[
            ("self.which.write(r as u64 + 1, SeqCst); // 10", "self.let_in(r);"),
            ("return self.let_in(r); // 10", "return self.which.write(r as u64 + 1, SeqCst); //"),
        ],
    },
    Mutant {
        name: "rooms_wait_for_who_came_late",
        text: ROOMS,
        changes: &[(
            "let last = j == self.rooms[w].cur.read(SeqCst); // 7",
            "let last = j == self.rooms[w].wait.read(SeqCst); //",
        )],
    },
    Mutant {
        name: "forums_with_one_slot",
        text: FORUMS,
        changes: &[("let slots = processes.min(FORUMS) + 1;", "let slots = 1;")],
    },
    Mutant {
        name: "forums_wait_for_who_came_late",
        text: FORUMS,
        changes: &[(
            "let last = out == forum.open.read(Relaxed); // 9",
            "let last = out == forum.come.read(Relaxed); //",
        )],
    },
    Mutant {
        name: "phases_without_notify",
        text: PHASES,
        changes: &[("bits |= NOTIFY; // 39", "")],
    },
    Mutant {
        name: "phases_without_must_lock",
        text: PHASES,
        changes: &[("bits |= MUST_LOCK; // 39", "")],
    },
    Mutant {
        name: "phases_unlocks_without_looking_again",
        text: PHASES,
        changes: &[(
            "let unlocked = lock.word.cas(w, free, Release); // 40",
            "lock.word.faa(free.wrapping_sub(w), Release);
            let unlocked = true; //",
        )],
    },
    Mutant {
        name: "phases_keeps_a_cancelled_grant",
        text: PHASES,
        changes: &[("self.give_back(count, Then::Again); // 20", "")],
    },
    Mutant {
        name: "phases_open_while_changing",
        text: PHASES,
        changes: &[("        if is_open(before) {", "        if is_open(before & !CHANGING) {")],
    },
    Mutant {
        name: "phases_renames_in_company",
        text: PHASES,
        changes: &[("let alone = is_empty(before) && ", "let alone = ")],
    },
    Mutant {
        name: "phases_forgets_a_declined_invitation",
        text: PHASES,
        changes: &[("locked.decline(me.me);", "")],
    },
    Mutant {
        name: "phases_leaves_its_own_session_waiting",
        text: PHASES,
        changes: &[(
            "let theirs = joinable && lock.name.read(Relaxed) == session; // 32",
            "let theirs = false; //",
        )],
    },
    Mutant {
        name: "phases_joins_an_exclusive_holder",
        text: PHASES,
        changes: &[("let same = s != ALONE && is_joinable(w)", "let same = s != ALONE")],
    },
    Mutant {
        name: "phases_hands_over_without_exclusive",
        text: PHASES,
        changes: &[(
            "self.change(w, room, phase.len()); // 36, 37",
            "self.change(w, room, phase.len()); if session == ALONE { self.lock.word.faa(EXCLUSIVE.wrapping_neg(), Relaxed); } //",
        )],
    },
    Mutant {
        name: "phases_reserved_room_is_taken_at_once",
        text: PHASES,
        changes: &[(
            "let free = w & !(SET_UP | NOTIFY) == RESERVED;",
            "let free = w & RESERVED != 0;",
        )],
    },
    Mutant {
        name: "phases_forgets_that_it_was_alone",
        text: PHASES,
        changes: &[(
            "if !must_still_admit_waiters(w, was_alone) {",
            "if !must_still_admit_waiters(w, 0) {",
        )],
    },
    Mutant {
        name: "phases_joins_a_full_session",
        text: PHASES,
        changes: &[("if same && holders(w) >= ", "if false && holders(w) >= ")],
    },
    Mutant {
        name: "phases_opens_without_looking",
        text: PHASES,
        changes: &[(
            "locked.unlock(Then::Opened); // 49",
            "drop(locked); self.word.faa(crate::phases_word::LOCKED.wrapping_neg(), Release); //",
        )],
    },
    Mutant {
        name: "phases_marked_before_it_is_set_up",
        text: PHASES,
        changes: &[
            ("self.made.write(s, Relaxed); // 45", ""),
            (
                "self.open(s, SET_UP); // 47",
                "self.open(s, SET_UP); self.made.write(s, Relaxed); //",
            ),
        ],
    },
    Mutant {
        name: "phases_marked_though_set_up_fails",
        text: PHASES,
        changes: &[(
            "end.wrapping_add(EXCLUSIVE).wrapping_sub(w & SET_UP)",
            "end.wrapping_add(EXCLUSIVE)",
        )],
    },
    Mutant {
        name: "phases_renamed_with_its_mark",
        text: PHASES,
        changes: &[("let change = before & !SET_UP | LOCKED", "let change = before | LOCKED")],
    },
    Mutant {
        name: "phases_joins_a_room_that_is_not_set_up",
        text: PHASES,
        changes: &[("if theirs && set_up && places > 0 {", "if theirs && places > 0 {")],
    },
    Mutant {
        name: "phases_renames_without_looking",
        text: PHASES,
        changes: &[("if before & NOTIFY == 0 {", "if true {")],
    },
    // Too weak an ordering: `src/weak.rs`.
    Mutant {
        name: "weak_dvir_taubenfeld_1_10",
        text: DVIR_TAUBENFELD_1,
        changes: &[("write(UNLOCKED, SeqCst); // 10", "write(UNLOCKED, Release); //")],
    },
    Mutant {
        name: "weak_dvir_taubenfeld_1_7",
        text: DVIR_TAUBENFELD_1,
        changes: &[(
            "write(me.q[me.current], SeqCst); // 7",
            "write(me.q[me.current], Release); //",
        )],
    },
    Mutant {
        name: "weak_dvir_taubenfeld_2_11",
        text: DVIR_TAUBENFELD_2,
        changes: &[
            ("Ordering::{AcqRel, Acquire,", "Ordering::{AcqRel, Acquire, Release,"),
            ("write(me.q, SeqCst); // 11", "write(me.q, Release); //"),
        ],
    },
    Mutant {
        name: "weak_burns_lamport_1",
        text: BURNS_LAMPORT,
        changes: &[
            ("Ordering::SeqCst;", "Ordering::{Release, SeqCst};"),
            ("write(true, SeqCst); // 1", "write(true, Release); //"),
        ],
    },
    Mutant {
        name: "weak_burns_lamport_12",
        text: BURNS_LAMPORT,
        changes: &[
            ("Ordering::SeqCst;", "Ordering::{Relaxed, SeqCst};"),
            ("write(false, SeqCst); // 12", "write(false, Relaxed); //"),
        ],
    },
    Mutant {
        name: "weak_bakery_1",
        text: BAKERY,
        changes: &[
            ("Ordering::SeqCst;", "Ordering::{Release, SeqCst};"),
            ("write(true, SeqCst); // 1", "write(true, Release); //"),
        ],
    },
    Mutant {
        name: "weak_mcs_9",
        text: MCS,
        changes: &[("locked.signal(false); // 9", "locked.set(false); //")],
    },
    Mutant {
        name: "weak_dvir_taubenfeld_1_swap_7",
        text: DVIR_TAUBENFELD_1_SWAP,
        changes: &[
            ("Ordering::{AcqRel,", "Ordering::{AcqRel, Acquire,"),
            ("UNLOCKED, AcqRel); // 7", "UNLOCKED, Acquire); //"),
        ],
    },
    Mutant {
        name: "weak_handover_2",
        text: HANDOVER,
        changes: &[("self.tail.fas(node, AcqRel); // 2", "self.tail.fas(node, Acquire); //")],
    },
    Mutant {
        name: "weak_handover_18",
        text: HANDOVER,
        changes: &[("go.signal(true); // 18", "go.set(true); //")],
    },
    Mutant {
        name: "weak_phases_6",
        text: PHASES,
        changes: &[(
            "self.word.faa(ONE_HOLDER.wrapping_sub(LOCKED | CHANGING), Release); // 6",
            "self.word.faa(ONE_HOLDER.wrapping_sub(LOCKED | CHANGING), Relaxed); //",
        )],
    },
];

/// The text and its parts, which are in the folder of its name. For the steps, also the text that
/// they belong to.
fn files(source: &Path, texts: &Path) -> Vec<(PathBuf, String)> {
    let parts = std::fs::read_dir(source.with_extension("")).into_iter().flatten();
    let parts = parts.map(|part| part.expect("the folder can be read").path());
    let base = source.ends_with(HANDOVER_STEPS).then(|| texts.join(HANDOVER_WITHDRAW));
    let parts = parts.chain(base);
    let read = |file: PathBuf| {
        println!("cargo::rerun-if-changed={}", file.display());
        let mut text = std::fs::read_to_string(&file).expect("the text is part of the workspace");
        text.truncate(text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len()));
        (file, text)
    };
    std::iter::once(source.to_owned()).chain(parts).map(read).collect()
}

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../grouplock-algorithms/src");
    let mut modules = String::new();
    for mutant in MUTANTS {
        let source = texts.join(mutant.text);
        let mut files: Vec<(PathBuf, String)> = files(&source, &texts);
        for (from, to) in mutant.changes {
            let (from, everywhere) =
                from.strip_prefix('*').map_or((*from, false), |from| (from, true));
            let fits: usize = files.iter().map(|(_, text)| text.matches(from).count()).sum();
            let right = if everywhere { fits > 0 } else { fits == 1 };
            assert!(right, "{}: {from:?} occurs {fits} times in {}", mutant.name, mutant.text);
            for (_, text) in &mut files {
                *text = text.replace(from, to);
            }
        }
        let folder = out.join(mutant.name);
        std::fs::create_dir_all(&folder).expect("the output folder can be written");
        // A module with a `path` attribute has its own modules beside it.
        let place = |file: &Path| folder.join(file.file_name().expect("a text is a file"));
        for (file, text) in &files {
            std::fs::write(place(file), text).expect("the output folder can be written");
        }
        let module = |file: &Path, name: &str| {
            let path = place(file).display().to_string();
            format!("#[path = \"{}\"]\npub mod {name};", path.escape_default())
        };
        let inner = if mutant.text == HANDOVER_STEPS {
            let [steps, base] = ["handover_steps", "handover_withdraw"]
                .map(|name| module(Path::new(&format!("{name}.rs")), name));
            format!("pub mod {} {{\n{steps}\n{base}\n}}", mutant.name)
        } else {
            module(&source, mutant.name)
        };
        _ = writeln!(modules, "#[allow(warnings, clippy::all, clippy::pedantic)]\n{inner}");
    }
    std::fs::write(out.join("mutants.rs"), modules).expect("the output folder can be written");
    println!("cargo::rerun-if-changed=build.rs");
}
