//! The protocol of rooms in a directory, explored: the text of `src/file/line.rs` on a small
//! memory.
//!
//! Three participants enter, wait, withdraw, leave, become alone, let others join, and die.
//! Everything happens under the latch, so an operation is a list of writes. The exploration cuts
//! the list off before every write: that is the death of its owner. Any other participant notices a
//! death at any later time, and may die while it recovers. All states are visited, breadth first.
//!
//! Waiters also watch the slot in front of them, and sleep. The watched slot is in the line, or the
//! watcher was nudged.
//!
//! A mutant is the same text with one edit to the lists of writes. Each must be convicted.

use std::collections::{HashSet, VecDeque};

#[allow(dead_code, reason = "what only the file needs")]
#[path = "../src/file/line.rs"]
mod line;

use line::{ANY, At, Contradiction, Field, IN, Line, OUT, Slot, WAIT, Words};

const SLOTS: usize = 3;
const GLOBALS: usize = 11;
const RING: u64 = 4;
/// The words of the protocol, and three more: the session, whether the owner is dead, and the slots
/// that the waiter watches.
const FIELDS: usize = 13;
const SIZE: usize = GLOBALS + RING as usize + SLOTS * FIELDS;
const SESSION: usize = 10;
const DEAD: usize = 11;
/// A bit for each slot that a waiter watches; 0 after a nudge.
const WATCHED: usize = 12;
/// Deaths that are not acknowledged. More behave like this many.
const UNREPAIRED: u64 = 2;

/// Numbers are small, so a byte is enough for each word. The largest byte stands for the largest
/// word.
type Image = [u8; SIZE];

fn widen(byte: u8) -> u64 {
    if byte == u8::MAX { ANY } else { byte.into() }
}

fn narrow(word: u64) -> u8 {
    if word == ANY { u8::MAX } else { u8::try_from(word).expect("numbers stay small") }
}

fn index(at: At) -> usize {
    let global = [
        At::Armed,
        At::First,
        At::Last,
        At::Head,
        At::Inside,
        At::Most,
        At::Epoch,
        At::Tickets,
        At::Deaths,
        At::Repaired,
        At::Prepared,
    ];
    match at {
        At::Buried(number) => GLOBALS + (number % RING) as usize,
        At::Of(slot, field) => of(usize::from(slot), field as usize),
        at => global.iter().position(|other| *other == at).expect("a global word"),
    }
}

fn of(slot: usize, field: usize) -> usize {
    GLOBALS + RING as usize + slot * FIELDS + field
}

/// A memory that records the writes.
struct Recorder {
    image: Image,
    writes: Vec<(At, u64)>,
    /// After so many writes, nudge this slot.
    nudged: Vec<(usize, Slot)>,
}

impl Recorder {
    fn new(image: Image) -> Self {
        Recorder { image, writes: Vec::new(), nudged: Vec::new() }
    }
}

impl Words for Recorder {
    fn get(&self, at: At) -> u64 {
        widen(self.image[index(at)])
    }

    fn set(&mut self, at: At, value: u64) {
        self.image[index(at)] = narrow(value);
        self.writes.push((at, value));
    }

    fn slots(&self) -> Slot {
        SLOTS as Slot
    }

    fn same_session(&self, one: Slot, other: Slot) -> bool {
        self.image[of(one.into(), SESSION)] == self.image[of(other.into(), SESSION)]
    }

    fn prepared_for(&self, _: Slot) -> bool {
        true
    }

    fn nudge(&mut self, slot: Slot) {
        self.nudged.push((self.writes.len(), slot));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Session, alone, limit.
    Come(u64, bool, u64),
    Go,
    /// Leaves, and queues with another slot of the same owner, for this session.
    Switch(usize, u64),
    TryAlone,
    Downgrade,
    Acknowledge,
    Bury(usize),
    /// Watches the slot in front of it, and sleeps.
    Watch,
    Die,
    /// A new process takes the slot of a dead one.
    Reborn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    SettleForgetsOne,
    ArmedTooLate,
    DisarmedTooEarly,
    RecoveryDoesNotRedo,
    StateBeforeTheRest,
    DeathMarkDropped,
    EpochStays,
    NobodyIsNudged,
    RecoveryNudgesNobody,
}

/// Edits the writes of an operation.
fn edit(mutant: Mutant, act: Act, writes: &mut Vec<(At, u64)>) {
    let is_state =
        |write: &(At, u64), state| matches!(write.0, At::Of(_, Field::State)) && write.1 == state;
    match mutant {
        // `explore` has the other mutants.
        Mutant::None
        | Mutant::RecoveryDoesNotRedo
        | Mutant::NobodyIsNudged
        | Mutant::RecoveryNudgesNobody => {}
        Mutant::SettleForgetsOne => {
            // The last one that is admitted, with all its writes.
            if let Some(at) = writes.iter().rposition(|write| is_state(write, IN)) {
                let slot = writes[at].0;
                let At::Of(slot, _) = slot else { return };
                writes[at].1 = WAIT;
                writes.retain(|write| *write != (At::Head, 0));
                let head = u64::from(slot) + 1;
                let end = writes.len() - 1;
                writes.insert(end, (At::Head, head));
            }
        }
        Mutant::ArmedTooLate => {
            if let Some(at) = writes.iter().position(|write| *write == (At::Armed, 1)) {
                let later = (at + 5).min(writes.len() - 1);
                let write = writes.remove(at);
                writes.insert(later, write);
            }
        }
        Mutant::DisarmedTooEarly => {
            let armed = writes.iter().rposition(|write| *write == (At::Armed, 1));
            if let (Some(from), Some((At::Armed, 0))) = (armed, writes.last()) {
                let earlier = (from + 1).max(writes.len().saturating_sub(4));
                writes[earlier..].rotate_right(1);
            }
        }
        Mutant::StateBeforeTheRest => {
            for at in 3..writes.len() {
                if is_state(&writes[at], IN) {
                    writes[at - 2..=at].rotate_right(1);
                }
            }
        }
        Mutant::DeathMarkDropped => {
            if matches!(act, Act::Bury(_)) {
                writes.retain(|(at, _)| *at != At::Deaths);
            }
        }
        Mutant::EpochStays => {
            let begins = writes.iter().any(|(at, _)| *at == At::Epoch);
            writes.retain(|(at, _)| *at != At::Epoch);
            for (at, value) in writes {
                if begins && matches!(at, At::Of(_, Field::Epoch)) {
                    *value -= 1;
                }
            }
        }
    }
}

fn state(image: &Image, slot: usize) -> u64 {
    word(image, slot, Field::State)
}

fn word(image: &Image, slot: usize, field: Field) -> u64 {
    widen(image[of(slot, field as usize)])
}

fn global(image: &Image, at: At) -> u64 {
    widen(image[index(at)])
}

fn is_dead(image: &Image, slot: usize) -> bool {
    image[of(slot, DEAD)] != 0
}

fn compatible(image: &Image, one: usize, other: usize) -> bool {
    image[of(one, SESSION)] == image[of(other, SESSION)]
        && word(image, one, Field::Alone) == 0
        && word(image, other, Field::Alone) == 0
}

/// The least limit of some slots.
fn least(image: &Image, slots: impl Iterator<Item = usize>) -> u64 {
    slots.map(|slot| word(image, slot, Field::Most)).min().unwrap_or(ANY)
}

/// What must hold after every single write.
fn check_write(
    before: &Image,
    after: &Image,
    act: Act,
    last_epoch: &mut u64,
) -> Result<(), String> {
    let living = |slot: &usize| state(after, *slot) == IN && !is_dead(after, *slot);
    for one in (0..SLOTS).filter(living) {
        if let Some(other) =
            (one + 1..SLOTS).filter(living).find(|other| !compatible(after, one, *other))
        {
            return Err(format!("exclusion: {one} and {other} are inside"));
        }
    }
    let inside = (0..SLOTS).filter(living);
    if inside.clone().count() as u64 > least(after, inside) {
        return Err("exclusion: more are inside than one of them allows".to_owned());
    }
    let (deaths, repaired) = (global(after, At::Deaths), global(after, At::Repaired));
    for slot in 0..SLOTS {
        match (state(before, slot), state(after, slot)) {
            (WAIT, IN) => {
                let told = if deaths > repaired { deaths } else { 0 };
                if word(after, slot, Field::Reported) != told {
                    return Err(format!("{slot} is not told of a death"));
                }
                if word(after, slot, Field::Epoch) != global(after, At::Epoch) {
                    return Err(format!("{slot} enters with a wrong epoch"));
                }
                if (0..SLOTS).all(|other| state(before, other) != IN) {
                    if global(after, At::Epoch) <= *last_epoch {
                        return Err("two phases have one epoch".to_owned());
                    }
                    *last_epoch = global(after, At::Epoch);
                }
            }
            (IN, OUT) if is_dead(after, slot) && matches!(act, Act::Bury(dead) if dead == slot) => {
                let recorded =
                    global(after, At::Buried(deaths)) == word(after, slot, Field::Ticket);
                if deaths == 0 || !recorded {
                    return Err(format!("the death of {slot} is forgotten"));
                }
            }
            (OUT, IN) => return Err(format!("{slot} enters without having queued")),
            _ => {}
        }
    }
    if deaths < global(before, At::Deaths) || global(after, At::Epoch) < global(before, At::Epoch) {
        return Err("a number went back".to_owned());
    }
    if repaired != global(before, At::Repaired) && act != Act::Acknowledge {
        return Err("a death is repaired although nobody said so".to_owned());
    }
    Ok(())
}

/// What must hold whenever the latch is free and no participant died with it: the order is first
/// come first served, and no participant waits that may enter.
fn check_rest(image: &Image) -> Result<(), String> {
    if image[index(At::Armed)] != 0 {
        return Err("an operation ends armed".to_owned());
    }
    let mut line: Vec<usize> = (0..SLOTS).filter(|slot| state(image, *slot) != OUT).collect();
    line.sort_by_key(|slot| word(image, *slot, Field::Ticket));
    let fits = |end: usize| {
        let newest = line[end];
        line[..end].iter().all(|slot| compatible(image, *slot, newest))
            && (end as u64) < least(image, line[..=end].iter().copied())
    };
    let inside = (0..line.len()).position(|end| !fits(end)).unwrap_or(line.len());
    for (place, slot) in line.iter().enumerate() {
        let expected = if place < inside { IN } else { WAIT };
        if state(image, *slot) != expected {
            return Err(format!(
                "the state of {slot}, number {place} in the line, is {}",
                state(image, *slot)
            ));
        }
    }
    let mut at = global(image, At::First);
    let mut walked = Vec::new();
    while at != 0 && walked.len() <= SLOTS {
        let slot = (at - 1) as usize;
        walked.push(slot);
        at = word(image, slot, Field::Next);
    }
    let head = line.get(inside).map_or(0, |slot| *slot as u64 + 1);
    let last = line.last().map_or(0, |slot| *slot as u64 + 1);
    let ends = (global(image, At::Inside), global(image, At::Head), global(image, At::Last));
    if walked != line || ends != (inside as u64, head, last) {
        return Err(format!("links {walked:?} {ends:?} are not {line:?}"));
    }
    for watcher in (0..SLOTS).filter(|slot| state(image, *slot) == WAIT && !is_dead(image, *slot)) {
        let watched = image[of(watcher, WATCHED)];
        if (0..SLOTS).any(|slot| watched & (1 << slot) != 0 && state(image, slot) == OUT) {
            return Err(format!("{watcher} sleeps, and whom it watches is gone"));
        }
    }
    Ok(())
}

/// Makes numbers small that grow without end. Only their order and differences matter.
fn canonical(mutant: Mutant, mut image: Image, last_epoch: u64) -> (Image, u64) {
    let epoch = global(&image, At::Epoch);
    let (deaths, repaired) = (global(&image, At::Deaths), global(&image, At::Repaired));
    let mut tickets: Vec<u64> = (0..SLOTS)
        .filter(|slot| state(&image, *slot) != OUT)
        .map(|slot| word(&image, slot, Field::Ticket))
        .collect();
    tickets.sort_unstable();
    let small =
        |ticket: u64| tickets.iter().position(|t| *t == ticket).map_or(0, |at| at as u64 + 1);
    let buried = small(global(&image, At::Buried(deaths)));
    let unrepaired = (deaths - repaired).min(UNREPAIRED);
    let set = |image: &mut Image, at: At, value: u64| image[index(at)] = narrow(value);
    for number in 0..RING {
        set(&mut image, At::Buried(number), 0);
    }
    set(&mut image, At::Tickets, tickets.len() as u64);
    set(&mut image, At::Deaths, 1 + unrepaired);
    set(&mut image, At::Repaired, 1);
    set(&mut image, At::Buried(1 + unrepaired), buried);
    set(&mut image, At::Epoch, 10);
    // While it is armed, no participant reads what will be rebuilt.
    let unread = global(&image, At::Armed) != 0 && mutant != Mutant::RecoveryDoesNotRedo;
    if unread {
        for at in [At::First, At::Last, At::Head, At::Inside, At::Most] {
            set(&mut image, at, 0);
        }
    }
    for slot in 0..SLOTS {
        let number = slot as Slot;
        if state(&image, slot) == OUT {
            // It is written again before it is read again.
            let dead = image[of(slot, DEAD)];
            image[of(slot, 0)..of(slot, FIELDS)].fill(0);
            image[of(slot, DEAD)] = dead;
            continue;
        }
        let is_in = state(&image, slot) == IN;
        let told = match word(&image, slot, Field::Reported) {
            told if !is_in || told <= repaired => 0,
            told if told == deaths => 1 + unrepaired,
            // Some of the deaths that are not acknowledged, but not all.
            _ => 2,
        };
        let behind = epoch - word(&image, slot, Field::Epoch).min(epoch);
        let epoch = if is_in { 10 - behind.min(3) } else { 0 };
        let ticket = small(word(&image, slot, Field::Ticket));
        set(&mut image, At::Of(number, Field::Ticket), ticket);
        set(&mut image, At::Of(number, Field::Reported), told);
        set(&mut image, At::Of(number, Field::Epoch), epoch);
        if state(&image, slot) != WAIT || is_dead(&image, slot) {
            image[of(slot, WATCHED)] = 0;
        }
        if unread {
            set(&mut image, At::Of(number, Field::Prev), 0);
            set(&mut image, At::Of(number, Field::Next), 0);
        }
    }
    (image, 10 - (epoch - last_epoch.min(epoch)).min(3))
}

/// The effects of an act of `actor`: the writes, the slots that it nudges, and the slots that it
/// watches afterwards.
struct Effect {
    writes: Vec<(At, u64)>,
    nudged: Vec<(usize, Slot)>,
    watched: Vec<Slot>,
}

fn perform(image: &Image, actor: usize, act: Act) -> Result<Effect, Contradiction> {
    let mut memory = Recorder::new(*image);
    let mut watched = Vec::new();
    let slot = actor as Slot;
    let mut line = Line(&mut memory);
    match act {
        Act::Come(..) => line.append(slot)?,
        Act::Go => line.remove(slot)?,
        Act::Switch(new, _) => line.switch(slot, new as Slot)?,
        Act::TryAlone => drop(line.try_alone(slot)?),
        Act::Downgrade => line.downgrade(slot)?,
        Act::Acknowledge => {
            line.mend()?;
            line.acknowledge(slot);
        }
        Act::Bury(dead) => line.bury(dead as Slot)?,
        Act::Watch => {
            watched = line.in_front(slot, SLOTS)?;
            line.watch(slot, &watched);
        }
        Act::Die | Act::Reborn => {}
    }
    Ok(Effect { writes: memory.writes, nudged: memory.nudged, watched })
}

/// The acts that the owner of the slot `actor` can do now.
fn acts(play: &Play, image: &Image, actor: usize) -> Vec<Act> {
    let mut own = (0..SLOTS).filter(|slot| play.owners[*slot] == play.owners[actor]);
    if is_dead(image, actor) {
        let out = own.all(|slot| state(image, slot) == OUT);
        return if out { vec![Act::Reborn] } else { Vec::new() };
    }
    let mut acts: Vec<Act> = (0..SLOTS)
        .filter(|slot| is_dead(image, *slot) && state(image, *slot) != OUT)
        .map(Act::Bury)
        .collect();
    let spare = own.clone().find(|slot| *slot != actor);
    let spare = spare.filter(|spare| state(image, *spare) == OUT);
    match state(image, actor) {
        OUT => {
            if own.all(|slot| state(image, slot) == OUT) {
                acts.extend(
                    play.requests
                        .iter()
                        .map(|(session, alone, most)| Act::Come(*session, *alone, *most)),
                );
            }
        }
        WAIT => {
            acts.push(Act::Go);
            acts.extend(play.watching.then_some(Act::Watch));
        }
        _ if word(image, actor, Field::Alone) != 0 => {
            acts.extend([Act::Go, Act::Downgrade, Act::Acknowledge]);
        }
        _ => acts.extend([Act::Go, Act::TryAlone, Act::Acknowledge]),
    }
    if let (IN, Some(spare)) = (state(image, actor), spare) {
        acts.extend([Act::Switch(spare, 1), Act::Switch(spare, 2)]);
    }
    acts.push(Act::Die);
    acts
}

/// The participants and their requests.
struct Play {
    mutant: Mutant,
    /// The owner of each slot.
    owners: [usize; SLOTS],
    /// Session, alone, limit.
    requests: &'static [(u64, bool, u64)],
    /// Whether waiters watch other slots.
    watching: bool,
}

impl Play {
    /// Three participants, two sessions and alone.
    fn three(mutant: Mutant) -> Self {
        let requests = &[(1, false, ANY), (2, false, ANY), (1, true, ANY)];
        Play { mutant, owners: [0, 1, 2], requests, watching: false }
    }

    fn die(&self, image: &mut Image, actor: usize) {
        for slot in (0..SLOTS).filter(|slot| self.owners[*slot] == self.owners[actor]) {
            image[of(slot, DEAD)] = 1;
        }
    }

    fn ask(image: &mut Image, slot: usize, (session, alone, most): (u64, bool, u64)) {
        image[of(slot, SESSION)] = narrow(session);
        image[of(slot, Field::Alone as usize)] = alone.into();
        image[of(slot, Field::Most as usize)] = narrow(most);
    }
}

/// Visits all states. Returns their number, or the first violation.
fn explore(play: &Play) -> Result<usize, String> {
    let mutant = play.mutant;
    let mut start: Image = [0; SIZE];
    start[index(At::Most)] = narrow(ANY);
    let mut states = HashSet::new();
    let mut queue = VecDeque::new();
    let first = canonical(mutant, start, 0);
    states.insert(first);
    queue.push_back(first);
    while let Some((image, last_epoch)) = queue.pop_front() {
        for actor in 0..SLOTS {
            for act in acts(play, &image, actor) {
                let wrong = |what: String| format!("{what}\n{actor} {act:?} in {image:?}");
                let mut begun = image;
                match act {
                    Act::Come(session, alone, most) => {
                        Play::ask(&mut begun, actor, (session, alone, most));
                    }
                    Act::Switch(new, session) => Play::ask(&mut begun, new, (session, false, ANY)),
                    Act::Die => play.die(&mut begun, actor),
                    Act::Reborn => {
                        for slot in
                            (0..SLOTS).filter(|slot| play.owners[*slot] == play.owners[actor])
                        {
                            begun[of(slot, DEAD)] = 0;
                        }
                    }
                    _ => {}
                }
                if mutant == Mutant::RecoveryDoesNotRedo {
                    begun[index(At::Armed)] = 0;
                }
                let recovers =
                    begun[index(At::Armed)] != 0 && !matches!(act, Act::Die | Act::Reborn);
                let effect = perform(&begun, actor, act);
                let Effect { mut writes, mut nudged, watched } =
                    effect.map_err(|Contradiction| wrong("a contradiction".to_owned()))?;
                edit(mutant, act, &mut writes);
                if recovers && mutant != Mutant::RecoveryNudgesNobody {
                    nudged.extend((0..SLOTS as Slot).map(|slot| (0, slot)));
                }
                if mutant == Mutant::NobodyIsNudged {
                    nudged.clear();
                }
                let (mut now, mut last) = (begun, last_epoch);
                for done in 0..=writes.len() {
                    if done < writes.len() {
                        // It dies before this write. It may also die before a nudge between the
                        // last write and this one.
                        let mut dead = now;
                        for (_, slot) in nudged.iter().filter(|(before, _)| *before < done) {
                            dead[of(usize::from(*slot), WATCHED)] = 0;
                        }
                        play.die(&mut dead, actor);
                        let next = canonical(mutant, dead, last);
                        if states.insert(next) {
                            queue.push_back(next);
                        }
                        let before = now;
                        let (at, value) = writes[done];
                        now[index(at)] = narrow(value);
                        check_write(&before, &now, act, &mut last).map_err(wrong)?;
                    }
                }
                for (_, slot) in nudged {
                    now[of(slot.into(), WATCHED)] = 0;
                }
                if act == Act::Watch {
                    now[of(actor, WATCHED)] = watched.iter().map(|slot| 1 << slot).sum();
                }
                if !matches!(act, Act::Die | Act::Reborn) {
                    check_rest(&now).map_err(wrong)?;
                }
                let next = canonical(mutant, now, last);
                if states.insert(next) {
                    queue.push_back(next);
                }
            }
        }
        if states.len() > 20_000_000 {
            return Err("too many states".to_owned());
        }
    }
    Ok(states.len())
}

#[test]
fn every_state_of_three_participants_is_sound() {
    let states = explore(&Play::three(Mutant::None)).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states");
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn every_state_with_limits_is_sound() {
    let requests = &[(1, false, ANY), (1, false, 2), (2, false, 1)];
    let play = Play { requests, ..Play::three(Mutant::None) };
    let states = explore(&play).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states with limits");
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn every_state_of_one_that_switches_is_sound() {
    let play = Play { owners: [0, 1, 0], ..Play::three(Mutant::None) };
    let states = explore(&play).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states with a switch");
    assert!(states > 1_000, "only {states} states");
}

/// Two sessions; with limits; and with one owner of two slots that switches.
fn watching(mutant: Mutant) -> [Play; 3] {
    let two = &[(1, false, ANY), (2, false, ANY)];
    let limits = &[(1, false, ANY), (1, false, 2), (2, false, 1)];
    let three = || Play { watching: true, requests: two, ..Play::three(mutant) };
    [three(), Play { requests: limits, ..three() }, Play { owners: [0, 1, 0], ..three() }]
}

#[test]
fn no_waiter_sleeps_when_whom_it_watches_is_gone() {
    for play in watching(Mutant::None) {
        let states = explore(&play).unwrap_or_else(|wrong| panic!("{wrong}"));
        println!("{states} states with watchers");
        assert!(states > 1_000, "only {states} states");
    }
}

#[test]
fn a_watcher_that_is_not_nudged_is_convicted() {
    for mutant in [Mutant::NobodyIsNudged, Mutant::RecoveryNudgesNobody] {
        let [play, ..] = watching(mutant);
        let wrong = explore(&play).expect_err("nobody tells the watcher");
        println!("{mutant:?}: {wrong}");
        assert!(wrong.contains("sleeps, and whom it watches is gone"), "{mutant:?}: {wrong}");
    }
}

/// No participant of the image lives. Its links and numbers are from other moments than its states,
/// or are nonsense. A newcomer enters: it buries the slots that it waits for.
#[test]
fn whatever_the_links_say_the_last_one_alive_enters() {
    const COMES: Slot = 2;
    let mut seed = 0x5eed_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut contradictions = 0;
    for round in 0..300_000 {
        let mut image: Image = [0; SIZE];
        for at in [At::First, At::Last, At::Head, At::Inside] {
            image[index(at)] = random(SLOTS as u64 + 1) as u8;
        }
        image[index(At::Most)] = [u8::MAX, 1, 2][random(3) as usize];
        image[index(At::Tickets)] = 3;
        for slot in 0..SLOTS {
            Play::ask(&mut image, slot, (random(2), random(8) == 0, ANY));
            for field in [Field::Prev, Field::Next, Field::Ticket] {
                image[of(slot, field as usize)] = random(SLOTS as u64 + 1) as u8;
            }
            image[of(slot, Field::State as usize)] = random(3) as u8;
        }
        image[of(COMES.into(), Field::State as usize)] = OUT as u8;
        let mut memory = Recorder::new(image);
        let by_force = |memory: &mut Recorder| {
            memory.set(At::Armed, 1);
            for slot in (0..SLOTS as Slot).filter(|slot| *slot != COMES) {
                memory.set(At::Of(slot, Field::State), OUT);
            }
            Line(memory).mend().expect("one cannot contradict itself");
        };
        if Line(&mut memory).append(COMES).is_err() {
            contradictions += 1;
            by_force(&mut memory);
        }
        let mut steps = 0;
        while memory.get(At::Of(COMES, Field::State)) != IN {
            steps += 1;
            assert!(steps <= 2 * SLOTS, "round {round}: it waits for ever in {image:?}");
            match Line(&mut memory).in_front(COMES, SLOTS) {
                Err(Contradiction) => by_force(&mut memory),
                Ok(dead) => {
                    for dead in dead {
                        if Line(&mut memory).bury(dead).is_err() {
                            by_force(&mut memory);
                        }
                    }
                }
            }
        }
    }
    assert!(contradictions > 0, "no image was contradictory");
}

fn convicted(mutant: Mutant, of: &[&str]) {
    match explore(&Play::three(mutant)) {
        Ok(states) => panic!("{mutant:?} gets away with {states} states"),
        Err(wrong) => {
            println!("{wrong}");
            assert!(of.iter().any(|what| wrong.contains(what)), "{mutant:?}: {wrong}");
        }
    }
}

#[test]
fn a_settle_that_forgets_one_is_convicted() {
    convicted(Mutant::SettleForgetsOne, &["in the line, is 1"]);
}

#[test]
fn arming_too_late_is_convicted() {
    convicted(Mutant::ArmedTooLate, &["links", "in the line", "exclusion", "contradiction"]);
}

#[test]
fn disarming_too_early_is_convicted() {
    convicted(Mutant::DisarmedTooEarly, &["links", "in the line", "exclusion", "contradiction"]);
}

#[test]
fn a_recovery_that_does_not_redo_is_convicted() {
    convicted(Mutant::RecoveryDoesNotRedo, &["links", "in the line", "exclusion", "contradiction"]);
}

#[test]
fn a_state_before_the_rest_is_convicted() {
    convicted(Mutant::StateBeforeTheRest, &["wrong epoch", "not told"]);
}

#[test]
fn a_dropped_death_mark_is_convicted() {
    convicted(Mutant::DeathMarkDropped, &["is forgotten"]);
}

#[test]
fn an_epoch_that_stays_is_convicted() {
    convicted(Mutant::EpochStays, &["one epoch"]);
}
