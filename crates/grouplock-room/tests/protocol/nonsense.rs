//! Links and numbers that contradict the states.

use crate::acts::Play;
use crate::line::{ANY, At, Contradiction, Field, IN, Line, OUT, Slot, Words};
use crate::memory::{Image, Recorder, SIZE, SLOTS, index, of};

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

/// An owner of the latch that frees slots by force may die between the record and the free slot.
#[test]
fn a_death_is_recorded_once_by_the_process_that_frees_the_slot() {
    let mut image: Image = [0; SIZE];
    for slot in [0, 1] {
        image[of(slot, Field::State as usize)] = IN as u8;
        image[of(slot, Field::Ticket as usize)] = slot as u8 + 1;
    }
    let mut memory = Recorder::new(image);
    for (slot, deaths) in [(0, 1), (0, 1), (1, 2), (1, 2)] {
        Line(&mut memory).record_death(slot);
        assert_eq!(memory.get(At::Deaths), deaths, "slot {slot}");
    }
}

/// The sessions in a file may be from other moments than its states. If a request could join such a
/// dead holder when another is buried, two sessions would have one epoch.
#[test]
fn dead_holders_of_different_sessions_contradict_each_other() {
    let mut image: Image = [0; SIZE];
    for slot in [0, 1] {
        Play::ask(&mut image, slot, (slot as u64, false, ANY));
        image[of(slot, Field::State as usize)] = IN as u8;
    }
    image[of(0, Field::Next as usize)] = 2;
    image[of(1, Field::Prev as usize)] = 1;
    for (at, word) in [(At::First, 1), (At::Last, 2), (At::Inside, 2), (At::Most, u8::MAX)] {
        image[index(at)] = word;
    }
    assert_eq!(Line(&mut Recorder::new(image)).bury(0), Err(Contradiction));
    Play::ask(&mut image, 1, (0, false, ANY));
    assert_eq!(Line(&mut Recorder::new(image)).bury(0), Ok(()), "one session");
}
