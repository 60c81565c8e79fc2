//! What the owner of the latch does: bury the dead, and admit who is next.
//!
//! Everything is found anew in the slots, so there is nothing to repair after an owner that died half-way. The order of
//! writes makes sure of the rest; it is told where it matters.

use super::barrier;
use super::clock;
use super::gate::{Gate, MAX_EPOCH};
use super::latch::Latched;
use super::layout::{self, SESSION_MAX, header, phase, state};
use super::order::{self, Step, Waiter};
use crate::error::RoomError;

/// Whether to ask the kernel who lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    No,
    /// If nobody has for a while.
    IfDue,
    Yes,
}

/// How often the dead are looked for, as long as anybody waits.
pub(super) const PROBE_INTERVAL: u64 = 40_000_000;

/// How often the gate may change under our eyes before we doubt that it is people who enter and leave.
const GATE_ATTEMPTS: u32 = 1_000_000;

/// Who is there.
struct Census {
    inside: Vec<u16>,
    queue: Vec<Waiter>,
}

impl Latched<'_> {
    /// Stops the fast path: afterwards the slots alone tell who is inside. The epoch.
    pub(super) fn manage(&self) -> Result<u64, RoomError> {
        let room = self.room;
        let gate = room.gate();
        for _ in 0..GATE_ATTEMPTS {
            let word = gate.get();
            match Gate::unpack(word) {
                Some(Gate::Managed { epoch }) => return Ok(epoch),
                Some(Gate::Empty { epoch }) => {
                    if gate.swap(word, Gate::Managed { epoch }.pack()) {
                        return Ok(epoch);
                    }
                }
                Some(Gate::Sole { slot, epoch }) => {
                    // From here on the holder cannot leave without the latch. If we die now, whoever comes next finds
                    // `Converting` and goes on.
                    if gate.swap(word, Gate::Converting { slot, epoch }.pack()) {
                        self.convert(slot, epoch)?;
                    }
                }
                Some(Gate::Converting { slot, epoch }) => self.convert(slot, epoch)?,
                Some(Gate::Closed { .. }) => {
                    room.verdict()?;
                    return Err(room.condemn("its gate is closed for no reason"));
                }
                None => return Err(room.condemn("its gate makes no sense")),
            }
        }
        Err(room.condemn("its gate does not hold still"))
    }

    /// Makes an ordinary holder of one that came by the fast path.
    fn convert(&self, slot: u16, epoch: u64) -> Result<(), RoomError> {
        let room = self.room;
        if slot >= room.fixed.capacity {
            return Err(room.condemn("its gate names a slot that does not exist"));
        }
        // The holder writes its state and looks at the gate without a barrier of its own. Now it has either seen that the gate
        // is taken, or we see its state.
        barrier::everywhere().map_err(|error| room.io("synchronise with the users of", error))?;
        let holder = room.slot(slot);
        match holder.state().get() {
            state::HELD => {
                self.record_phase(epoch, slot, holder.since().get(), 1)?;
                holder.epoch().set(epoch);
                holder.told().set(0);
                // If it is not so any more, it has just left and is on its way to the latch.
                holder.state().swap(state::HELD, state::INSIDE);
            }
            // Inside: somebody died between the last two writes. Else it is outside, or gone.
            state::INSIDE | state::CLAIM | state::IDLE | state::FREE => {}
            _ => return Err(room.condemn("its gate names a holder that is not inside")),
        }
        room.gate().set(Gate::Managed { epoch }.pack());
        Ok(())
    }

    /// Writes down the phase that begins.
    fn record_phase(
        &self,
        epoch: u64,
        slot: u16,
        began: u64,
        entries: u64,
    ) -> Result<(), RoomError> {
        let map = &self.room.map;
        let record = header::PHASE;
        let sequence = map.half(record + phase::SEQUENCE);
        sequence.set(sequence.get() | 1);
        map.half(record + phase::FLAGS).set(phase::OPEN);
        map.word(record + phase::EPOCH).set(epoch);
        map.word(record + phase::BEGAN).set(began);
        map.word(record + phase::ENTRIES).set(entries);
        let session = self.room.slot(slot).session();
        if !map.copy_text(session, record + phase::SESSION, SESSION_MAX) {
            return Err(self.too_long());
        }
        sequence.set(sequence.get().wrapping_add(1) & !1);
        Ok(())
    }

    /// If a phase is on record as going on: puts it into the ring.
    fn close_phase(&self, epoch: u64) {
        let map = &self.room.map;
        let from = header::PHASE;
        let flags = map.half(from + phase::FLAGS);
        let entries = map.word(from + phase::ENTRIES).get();
        if flags.get() & phase::OPEN == 0 || map.word(from + phase::EPOCH).get() != epoch {
            return;
        }
        let next = map.word(header::RING_NEXT);
        let last = layout::ring(next.get().wrapping_sub(1));
        // If so, whoever put it there has died before it could close the record.
        let is_there = map.word(last + phase::EPOCH).get() == epoch;
        // One that nobody has entered was cut off by a death before it began.
        if entries > 0 && !is_there {
            let to = layout::ring(next.get());
            let sequence = map.half(to + phase::SEQUENCE);
            sequence.set(sequence.get() | 1);
            map.half(to + phase::FLAGS).set(flags.get() & phase::DIED);
            map.word(to + phase::EPOCH).set(epoch);
            map.word(to + phase::BEGAN).set(map.word(from + phase::BEGAN).get());
            map.word(to + phase::ENDED).set(clock::real());
            map.word(to + phase::ENTRIES).set(entries);
            map.copy_text(from + phase::SESSION, to + phase::SESSION, SESSION_MAX);
            sequence.set(sequence.get().wrapping_add(1) & !1);
            next.set(next.get().wrapping_add(1));
        }
        flags.set(0);
    }

    /// Brings the room to where nobody who may enter still waits.
    pub(super) fn settle(&mut self, probe: Probe) -> Result<(), RoomError> {
        let room = self.room;
        let mut epoch = self.manage()?;
        if epoch < room.map.word(header::PHASE + phase::EPOCH).get() {
            return Err(room.condemn("its epoch went back"));
        }
        let mut census = self.census()?;
        if self.should(probe) {
            self.bury_the_dead(&mut census, epoch)?;
        }
        for slot in &census.inside {
            if room.slot(*slot).epoch().get() != epoch || !self.share(census.inside[0], *slot)? {
                return Err(room.condemn("different sessions or epochs are inside at once"));
            }
        }
        order::sort(room.fixed.policy, &mut census.queue);
        let untold = room.map.half(header::UNTOLD);
        let mut queue = &census.queue[..];
        if census.inside.is_empty() {
            self.close_phase(epoch);
            let Some((first, rest)) = queue.split_first() else {
                // As long as a death is untold the next to enter has to come this way.
                if untold.get() == 0 {
                    room.gate().set(Gate::Empty { epoch }.pack());
                }
                return Ok(());
            };
            epoch = self.begin_phase(epoch, first.slot)?;
            self.admit(first.slot, epoch);
            // Only now: had we died before, the death would have been forgotten with us.
            if untold.get() != 0 {
                untold.set(0);
            }
            census.inside.push(first.slot);
            queue = rest;
        }
        let inside = census.inside[0];
        let steps =
            order::plan(room.fixed.policy, queue, |waiter| self.share(inside, waiter.slot))?;
        for step in steps {
            match step {
                Step::Pass(at) => {
                    let passed = room.slot(queue[at].slot).passed();
                    passed.set(passed.get().saturating_add(1));
                }
                Step::Admit(at) => self.admit(queue[at].slot, epoch),
            }
        }
        Ok(())
    }

    fn should(&self, probe: Probe) -> bool {
        if probe == Probe::No {
            return false;
        }
        let now = clock::monotonic();
        let due = probe == Probe::Yes || self.room.probe_due(now);
        if due {
            self.room.map.word(header::PROBED).set(now);
        }
        due
    }

    fn census(&self) -> Result<Census, RoomError> {
        let mut census = Census { inside: Vec::new(), queue: Vec::new() };
        for number in self.room.used() {
            let slot = self.room.slot(number);
            match slot.state().get() {
                state::FREE | state::IDLE | state::CLAIM | state::HELD => {}
                state::INSIDE => census.inside.push(number),
                state::WAITING => census.queue.push(Waiter {
                    slot: number,
                    ticket: slot.ticket().get(),
                    arrival: slot.arrival().get(),
                    priority: slot.priority().get().cast_signed(),
                    passed: slot.passed().get(),
                }),
                _ => return Err(self.room.condemn("the state of a slot is none")),
            }
        }
        Ok(census)
    }

    /// Frees the slots of those who died. While we have the latch nobody else can change a slot that is inside or waits:
    /// its owner needs the latch to leave, and so does whoever claims the slot of a dead one.
    fn bury_the_dead(&self, census: &mut Census, epoch: u64) -> Result<(), RoomError> {
        let room = self.room;
        let alive = |slot| room.life.is_alive(slot).map_err(|error| room.io("probe", error));
        let mut dead = Vec::new();
        for slot in census.inside.iter().copied().chain(census.queue.iter().map(|w| w.slot)) {
            if !alive(slot)? {
                dead.push(slot);
            }
        }
        for slot in &dead {
            self.bury(*slot, epoch)?;
        }
        census.inside.retain(|slot| !dead.contains(slot));
        census.queue.retain(|waiter| !dead.contains(&waiter.slot));
        Ok(())
    }

    /// Frees a slot whose owner is dead, and notes it if that was inside.
    pub(super) fn bury(&self, number: u16, epoch: u64) -> Result<(), RoomError> {
        let map = &self.room.map;
        let slot = self.room.slot(number);
        if slot.state().get() == state::INSIDE {
            // The note first. Dying before the slot is free notes the same death again.
            let deaths = map.word(header::DEATHS);
            deaths.set(deaths.get().wrapping_add(1));
            map.word(header::DEATH_EPOCH).set(epoch);
            map.word(header::DEATH_NOTICED).set(clock::real());
            map.half(header::DEATH_PID).set(slot.pid().get());
            if !map.copy_text(slot.session(), header::DEATH_SESSION, SESSION_MAX) {
                return Err(self.too_long());
            }
            let flags = map.half(header::PHASE + phase::FLAGS);
            flags.set(flags.get() | phase::DIED);
            map.half(header::UNTOLD).set(1);
        }
        slot.state().set(state::FREE);
        Ok(())
    }

    /// The next epoch, for a phase of the session in `first`.
    fn begin_phase(&self, epoch: u64, first: u16) -> Result<u64, RoomError> {
        let room = self.room;
        if epoch >= MAX_EPOCH {
            return Err(RoomError::EpochsExhausted { path: room.path.clone() });
        }
        let epoch = epoch + 1;
        // The gate first: an epoch that was used must never be used again, one that was not may be lost.
        room.gate().set(Gate::Managed { epoch }.pack());
        self.record_phase(epoch, first, clock::real(), 0)?;
        if room.map.half(header::UNTOLD).get() != 0 {
            room.map.word(header::TOLD_EPOCH).set(epoch);
        }
        Ok(epoch)
    }

    /// Lets someone in. The state is written last, and vouches for the rest.
    fn admit(&mut self, number: u16, epoch: u64) {
        let map = &self.room.map;
        let slot = self.room.slot(number);
        let told = [header::TOLD_EPOCH, header::DEATH_EPOCH]
            .iter()
            .any(|offset| map.word(*offset).get() == epoch);
        slot.told().set(told.into());
        slot.epoch().set(epoch);
        slot.since().set(clock::real());
        let entries = map.word(header::PHASE + phase::ENTRIES);
        entries.set(entries.get().wrapping_add(1));
        slot.state().set(state::INSIDE);
        if self.awake != Some(number) {
            self.wake.push(number);
        }
    }

    /// Whether two slots name the same session.
    fn share(&self, one: u16, other: u16) -> Result<bool, RoomError> {
        let room = self.room;
        let (one, other) = (room.slot(one).session(), room.slot(other).session());
        room.map.same_text(one, other, SESSION_MAX).ok_or_else(|| self.too_long())
    }

    fn too_long(&self) -> RoomError {
        self.room.condemn("the name of a session is longer than possible")
    }

    /// The slot of someone inside.
    pub(super) fn someone_inside(&self) -> Option<u16> {
        let inside = |slot: &u16| self.room.slot(*slot).state().get() == state::INSIDE;
        self.room.used().find(inside)
    }

    /// Those inside or waiting.
    pub(super) fn present(&self) -> Vec<u16> {
        let present = |slot: &u16| {
            matches!(self.room.slot(*slot).state().get(), state::INSIDE | state::WAITING)
        };
        self.room.used().filter(present).collect()
    }
}

impl super::room::FileRoom {
    /// Whether nobody has looked for the dead for a while.
    pub(super) fn probe_due(&self, now: u64) -> bool {
        let probed = self.map.word(header::PROBED).get();
        // From the future: the clock began anew with the machine.
        probed > now || now - probed >= PROBE_INTERVAL
    }
}
