//! The latch of rooms in a directory, explored: the text of `src/file/latch_word.rs` on a small
//! world.
//!
//! Three participants take the latch and release it, again and again. Each step on the word, each
//! call to the kernel and each of its locks is a step of the world. Any participant may die before
//! any step, and a new process may claim its slot. All states are visited. The mutants are in
//! `xtask/mutants/room.txt`.

use std::cell::Cell;
use std::collections::HashMap;

#[path = "../src/file/latch_word.rs"]
mod latch_word;

use latch_word::{LatchWord, TakeResult};

const PEOPLE: usize = 3;

/// The next step of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Get,
    Swap(u32, u32),
    Sleep(u32),
    Wake,
    IsAlive(usize),
    Reclaim,
    EndReclaim,
    Claim,
}

/// Answers the steps that were made, and stops the text at the first new one.
struct Replay<'a> {
    answers: &'a [u8],
    next: Cell<usize>,
}

impl Replay<'_> {
    fn ask(&self, step: Step) -> Result<u8, Step> {
        let answer = self.answers.get(self.next.get()).copied();
        self.next.set(self.next.get() + 1);
        answer.ok_or(step)
    }
}

impl LatchWord for Replay<'_> {
    type Error = Step;

    fn get(&self) -> Result<u32, Step> {
        self.ask(Step::Get).map(widen)
    }

    fn swap(&self, old: u32, new: u32) -> Result<bool, Step> {
        Ok(self.ask(Step::Swap(old, new))? != 0)
    }

    fn sleep(&self, word: u32) -> Result<(), Step> {
        self.ask(Step::Sleep(word)).map(drop)
    }

    fn wake(&self) -> Result<(), Step> {
        self.ask(Step::Wake).map(drop)
    }

    fn is_alive(&self, slot: u16) -> Result<bool, Step> {
        Ok(self.ask(Step::IsAlive(slot.into()))? != 0)
    }

    fn try_reclaiming<T>(&self, work: impl FnOnce() -> Result<T, Step>) -> Result<Option<T>, Step> {
        if self.ask(Step::Reclaim)? == 0 {
            return Ok(None);
        }
        let done = work()?;
        self.ask(Step::EndReclaim)?;
        Ok(Some(done))
    }
}

/// A word in a byte: the highest bit, and the slot of the owner, which is small.
fn narrow(word: u32) -> u8 {
    (word >> 31 << 7 | word & 0x7f) as u8
}

fn widen(byte: u8) -> u32 {
    u32::from(byte >> 7) << 31 | u32::from(byte & 0x7f)
}

/// The current action of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Dead,
    /// A new process wants the slot.
    Claiming,
    Outside,
    Trying,
    Waiting,
    /// It slept because of the owner. Now it asks whether the owner is dead.
    Doubting(u16),
    /// Owns the latch, and will release it.
    Inside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Person {
    part: Part,
    /// The answers in this part, and their number.
    answers: [u8; 8],
    count: u8,
    asleep: bool,
    /// Whether its slot's byte is locked.
    alive: bool,
}

impl Person {
    fn is(part: Part) -> Self {
        let alive = !matches!(part, Part::Dead | Part::Claiming);
        Person { part, answers: [0; 8], count: 0, asleep: false, alive }
    }

    fn answers(&self) -> &[u8] {
        &self.answers[..self.count.into()]
    }

    fn hear(&mut self, answer: u8) {
        self.answers[usize::from(self.count)] = answer;
        self.count += 1;
    }

    /// The possible next parts, or the next step.
    fn run(&self, slot: u16) -> Result<Vec<Part>, Step> {
        let gate = Replay { answers: self.answers(), next: Cell::new(0) };
        let either = |taken, other| vec![if taken { Part::Inside } else { other }];
        Ok(match self.part {
            Part::Dead => vec![Part::Claiming],
            Part::Outside => vec![Part::Trying],
            // As `claim_slot` does.
            Part::Claiming => {
                let claimed = gate.try_reclaiming(|| {
                    gate.ask(Step::Claim)?;
                    latch_word::is_left_to(&gate, slot)
                })?;
                claimed.map_or(vec![Part::Claiming], |left| either(left, Part::Trying))
            }
            Part::Trying => either(latch_word::try_take(&gate, slot)?, Part::Waiting),
            Part::Waiting => match latch_word::take_or_sleep(&gate, slot)? {
                TakeResult::Taken => vec![Part::Inside],
                TakeResult::Retry => vec![Part::Waiting],
                // Both are possible, as it depends on the time.
                TakeResult::Slept(owner) => vec![Part::Waiting, Part::Doubting(owner)],
                TakeResult::Invalid => panic!("the word names no owner"),
            },
            Part::Doubting(owner) => {
                either(latch_word::take_from_dead(&gate, slot, owner)?, Part::Waiting)
            }
            Part::Inside => {
                latch_word::release(&gate)?;
                vec![Part::Outside]
            }
        })
    }

    /// Whether it may act as the owner.
    fn owns(&self) -> bool {
        // To release is to read and swap, until a swap succeeds.
        let released = self.answers().iter().skip(1).step_by(2).any(|swapped| *swapped != 0);
        self.part == Part::Inside && !released
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    word: u8,
    reclaiming: Option<usize>,
    people: [Person; PEOPLE],
}

impl World {
    fn new() -> Self {
        let people = std::array::from_fn(|_| Person::is(Part::Outside));
        World { word: 0, reclaiming: None, people }
    }

    /// The possible results of a step of one participant.
    fn after(&self, who: usize) -> Vec<World> {
        let person = &self.people[who];
        if person.asleep {
            return Vec::new();
        }
        match person.run(who as u16) {
            Ok(parts) => parts.into_iter().map(|part| self.with(who, part)).collect(),
            Err(step) => self.perform(who, step).into_iter().flat_map(World::settled).collect(),
        }
    }

    fn with(&self, who: usize, part: Part) -> World {
        let mut next = *self;
        let alive = next.people[who].alive;
        next.people[who] = Person { alive, ..Person::is(part) };
        next
    }

    /// The same, with each participant at a step or at rest: to begin the next part is no step.
    fn settled(self) -> Vec<World> {
        for (who, person) in self.people.iter().enumerate() {
            if person.count > 0
                && !person.asleep
                && let Ok(parts) = person.run(who as u16)
            {
                let next = parts.into_iter().map(|part| self.with(who, part));
                return next.flat_map(World::settled).collect();
            }
        }
        vec![self]
    }

    fn perform(&self, who: usize, step: Step) -> Vec<World> {
        let mut next = *self;
        let answer = match step {
            Step::Get => self.word,
            Step::Swap(old, new) => {
                if self.word == narrow(old) {
                    next.word = narrow(new);
                }
                (self.word == narrow(old)).into()
            }
            Step::Sleep(word) if narrow(word) == self.word => {
                next.people[who].asleep = true;
                return vec![next];
            }
            Step::Wake => {
                next.people[who].hear(0);
                let sleepers: Vec<_> = (0..PEOPLE).filter(|p| self.people[*p].asleep).collect();
                let woken = |sleeper: usize| next.woken(sleeper);
                return if sleepers.is_empty() {
                    vec![next]
                } else {
                    sleepers.into_iter().map(woken).collect()
                };
            }
            Step::Sleep(_) => 0,
            Step::IsAlive(slot) => self.people[slot].alive.into(),
            Step::Reclaim => {
                if self.reclaiming.is_none() {
                    next.reclaiming = Some(who);
                }
                self.reclaiming.is_none().into()
            }
            Step::EndReclaim => {
                next.reclaiming = None;
                0
            }
            Step::Claim => {
                next.people[who].alive = true;
                1
            }
        };
        next.people[who].hear(answer);
        vec![next]
    }

    /// A sleeper continues.
    fn woken(&self, who: usize) -> World {
        let mut next = *self;
        next.people[who].asleep = false;
        next.people[who].hear(0);
        next
    }

    fn dies(&self, who: usize) -> World {
        let mut next = *self;
        next.people[who] = Person::is(Part::Dead);
        next.reclaiming = self.reclaiming.filter(|owner| *owner != who);
        next
    }

    /// No two participants own the latch, and no owner is without its word.
    fn check(&self) {
        let owners: Vec<_> = (0..PEOPLE).filter(|who| self.people[*who].owns()).collect();
        assert!(owners.len() <= 1, "two owners: {self:#?}");
        if let Some(who) = owners.first() {
            assert_eq!(
                latch_word::owner(widen(self.word)),
                Some(*who as u16),
                "not its owner: {self:#?}"
            );
        }
    }
}

/// All states, and the successors of each without a death and without a new process.
fn explore(deaths: bool, timeouts: bool) -> (Vec<World>, Vec<Vec<u32>>) {
    let mut numbers = HashMap::from([(World::new(), 0)]);
    let (mut worlds, mut edges) = (vec![World::new()], Vec::new());
    while let Some(world) = worlds.get(edges.len()).copied() {
        world.check();
        let mut follow = Vec::new();
        let mut add = |next: World| -> u32 {
            *numbers.entry(next).or_insert_with_key(|next| {
                worlds.push(*next);
                u32::try_from(worlds.len() - 1).expect("there are fewer")
            })
        };
        for who in 0..PEOPLE {
            let after: Vec<_> = world.after(who).into_iter().map(&mut add).collect();
            if world.people[who].part != Part::Dead {
                follow.extend(after);
            }
            if timeouts && world.people[who].asleep {
                follow.extend(world.woken(who).settled().into_iter().map(&mut add));
            }
            if deaths && world.people[who].part != Part::Dead {
                add(world.dies(who));
            }
        }
        edges.push(follow);
    }
    (worlds, edges)
}

/// There are never two owners. And every live participant can still get the latch, if no further
/// process dies or comes.
#[test]
fn every_state_with_deaths_is_sound() {
    let (worlds, edges) = explore(true, true);
    let mut back = vec![Vec::new(); worlds.len()];
    for (from, follow) in edges.iter().enumerate() {
        for to in follow {
            back[*to as usize].push(from);
        }
    }
    for who in 0..PEOPLE {
        let inside = |world: &World| world.people[who].part == Part::Inside;
        let mut todo: Vec<_> = (0..worlds.len()).filter(|at| inside(&worlds[*at])).collect();
        let mut can = vec![false; worlds.len()];
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut can[at], true) {
                todo.extend(&back[at]);
            }
        }
        let lives = |at: &usize| worlds[*at].people[who].part != Part::Dead;
        let lost = (0..worlds.len()).filter(lives).find(|at| !can[*at]);
        assert_eq!(lost.map(|at| &worlds[at]), None, "{who} never gets it");
    }
    println!("{} states", worlds.len());
}

/// Without deaths no participant needs the clock: every sleeper is woken.
#[test]
fn no_wake_up_is_lost() {
    let (worlds, _) = explore(false, false);
    for world in &worlds {
        let rests = |person: &Person| person.asleep || person.part == Part::Outside;
        let lost = world.people.iter().all(rests) && world.people.iter().any(|one| one.asleep);
        assert!(!lost, "nobody wakes the sleepers: {world:#?}");
    }
    println!("{} states", worlds.len());
}
