//! What must hold: after every single write, and whenever the latch is free.

use crate::acts::Act;
use crate::line::{ANY, At, Field, IN, OUT, WAIT};
use crate::memory::{Image, SESSION, SLOTS, WATCHED, global, index, is_dead, of, state, word};

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
pub(crate) fn check_write(
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
pub(crate) fn check_rest(image: &Image) -> Result<(), String> {
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
