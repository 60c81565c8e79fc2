//! The exploration: all states, breadth first.

use std::collections::{HashSet, VecDeque};

use crate::acts::{Act, Effect, Play, acts, perform};
use crate::line::{ANY, At, Contradiction, Field, IN, OUT, Slot, WAIT};
use crate::memory::{
    DEAD, FIELDS, Image, RING, SIZE, SLOTS, WATCHED, global, index, is_dead, narrow, of, state,
    word,
};
use crate::mutants::{Mutant, edit};
use crate::properties::{check_rest, check_write};

/// Deaths that are not acknowledged. More behave like this many.
const UNREPAIRED: u64 = 2;

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

/// Visits all states. Returns their number, or the first violation.
pub(crate) fn explore(play: &Play) -> Result<usize, String> {
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
