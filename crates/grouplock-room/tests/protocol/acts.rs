//! What the participants do.

use crate::line::{ANY, At, Contradiction, Field, IN, Line, OUT, Slot, WAIT};
use crate::memory::{DEAD, Image, Recorder, SESSION, SLOTS, is_dead, narrow, of, state, word};
use crate::mutants::Mutant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
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

/// The participants and their requests.
pub(crate) struct Play {
    pub(crate) mutant: Mutant,
    /// The owner of each slot.
    pub(crate) owners: [usize; SLOTS],
    /// Session, alone, limit.
    pub(crate) requests: &'static [(u64, bool, u64)],
    /// Whether waiters watch other slots.
    pub(crate) watching: bool,
}

impl Play {
    /// Three participants, two sessions and alone.
    pub(crate) fn three(mutant: Mutant) -> Self {
        let requests = &[(1, false, ANY), (2, false, ANY), (1, true, ANY)];
        Play { mutant, owners: [0, 1, 2], requests, watching: false }
    }

    pub(crate) fn die(&self, image: &mut Image, actor: usize) {
        for slot in (0..SLOTS).filter(|slot| self.owners[*slot] == self.owners[actor]) {
            image[of(slot, DEAD)] = 1;
        }
    }

    pub(crate) fn ask(image: &mut Image, slot: usize, (session, alone, most): (u64, bool, u64)) {
        image[of(slot, SESSION)] = narrow(session);
        image[of(slot, Field::Alone as usize)] = alone.into();
        image[of(slot, Field::Most as usize)] = narrow(most);
    }
}

/// The effects of an act of `actor`: the writes, the slots that it nudges, and the slots that it
/// watches afterwards.
pub(crate) struct Effect {
    pub(crate) writes: Vec<(At, u64)>,
    pub(crate) nudged: Vec<(usize, Slot)>,
    pub(crate) watched: Vec<Slot>,
}

pub(crate) fn perform(image: &Image, actor: usize, act: Act) -> Result<Effect, Contradiction> {
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
pub(crate) fn acts(play: &Play, image: &Image, actor: usize) -> Vec<Act> {
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
