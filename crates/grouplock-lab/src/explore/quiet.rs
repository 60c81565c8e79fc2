//! Steps that no other process can notice, and contents that no process will read.

use std::sync::Arc;

use super::Reductions;
use super::canon::Reach;
use super::state::State;
use super::stepper::{Obstacle, Stepper};
use crate::automaton::{LocalId, Note, Obs, Op, Target};
use crate::trace::Section;
use crate::value::Val;

/// The largest number of steps that are taken at once: more than a passage takes alone.
const MOST_QUIET: usize = 100;

impl Stepper {
    /// Blanks what is dead, and takes the steps that no other process can notice or hinder: those
    /// on objects that no other process can reach. Their order with the steps of others does not
    /// matter, so one order is enough.
    pub(crate) fn settle(&mut self, state: &mut State) -> Result<(), Obstacle> {
        let Reductions { scrub, alone, own, .. } = self.options.reductions;
        if !(scrub || alone || own) {
            return Ok(());
        }
        // A process may run in a cycle alone until another one ends that, so there is a limit.
        for _ in 0..MOST_QUIET {
            let reach = if scrub {
                let reach = self.scrub_overwritten(state)?;
                reach.scrub(state, &self.layout);
                reach
            } else {
                Reach::of(state, &self.layout)
            };
            let mut quiet = None;
            for p in 0..state.procs.len() {
                if self.is_unseen(state, p, &reach)? {
                    quiet = Some(p);
                    break;
                }
            }
            let Some(p) = quiet else { return Ok(()) };
            self.step(state, p)?;
        }
        Ok(())
    }

    /// Blanks what idle processes will write before another process can read it: the registers of
    /// their own objects that every passage initialises first. Returns which process can reach what
    /// then.
    ///
    /// Old pointers in such registers lead from one idle object to another, so that neither seems
    /// private. So all are blanked first. Then those are restored whose object another process can
    /// still reach, until nothing changes. What stays blank can be reached only through registers
    /// that are blank too. So the first process that accesses one of them is its owner, and it
    /// writes.
    fn scrub_overwritten(&mut self, state: &mut State) -> Result<Reach, Obstacle> {
        let mut blanked: Vec<(usize, usize, Val)> = Vec::new();
        for p in 0..state.procs.len() {
            let local = state.procs[p].local;
            if self.node(local).section != Section::Remainder {
                continue;
            }
            for &target in self.overwritten(local)?.iter() {
                let register = state.register(&self.layout, p, target);
                let contents = std::mem::replace(&mut state.memory[register], Val::UNDEF);
                blanked.push((p, register, contents));
            }
        }
        loop {
            let reach = Reach::of(state, &self.layout);
            let mut restored = false;
            // From the first write that others may see, later writes of the process matter too.
            let mut open = None;
            blanked.retain(|&(p, register, contents)| {
                let object = self.layout.registers[register].object;
                let private = object.is_some_and(|(object, _)| reach.is_private(object, p));
                if private && open != Some(p) {
                    return true;
                }
                open = Some(p);
                restored = true;
                state.memory[register] = contents;
                false
            });
            if !restored {
                return Ok(reach);
            }
        }
    }

    /// The registers that a passage from the local state `local` writes first, for any session.
    fn overwritten(&mut self, local: LocalId) -> Result<Arc<[Target]>, Obstacle> {
        if let Some(known) = self.overwritten.get(&local) {
            return Ok(Arc::clone(known));
        }
        let mut common: Option<Vec<Target>> = None;
        for session in 1..=self.options.sessions {
            let mut targets = Vec::new();
            let mut edge = self.edge(local, Obs::Request(session))?;
            // The placeholders of the present local state, as they were in the remainder section.
            let mut origin = edge.env.to_vec();
            while let Some((Target::Field(placeholder, field), Op::Write(_))) =
                self.node(edge.target).step
                && targets.len() < MOST_QUIET
            {
                targets.push(Target::Field(usize::from(origin[placeholder]), field));
                edge = self.edge(edge.target, Obs::Done)?;
                origin = edge.env.iter().map(|&from| origin[usize::from(from)]).collect();
            }
            common = Some(match common {
                None => targets,
                Some(common) => {
                    let both = common.iter().zip(&targets).take_while(|(a, b)| a == b);
                    both.map(|(target, _)| *target).collect()
                }
            });
        }
        let common: Arc<[Target]> = common.unwrap_or_default().into();
        self.overwritten.insert(local, Arc::clone(&common));
        Ok(common)
    }

    /// Whether the next step of `p` is possible, is on an object of its own or reads a register
    /// that only it writes, and is no event of a passage.
    fn is_unseen(&mut self, state: &State, p: usize, reach: &Reach) -> Result<bool, Obstacle> {
        let local = state.procs[p].local;
        let node = self.node(local);
        let Some((target, op)) = node.step else { return Ok(false) };
        let register = state.register(&self.layout, p, target);
        let info = &self.layout.registers[register];
        let quiet = match info.object {
            Some((object, _)) => self.options.reductions.alone && reach.is_private(object, p),
            None => self.options.reductions.own && info.owner() == Some(p) && op == Op::Read,
        };
        if !quiet || node.section == Section::Inside {
            return Ok(false);
        }
        let old = state.memory[register];
        if old == Val::UNDEF && !matches!(op, Op::Write(_)) || op.blocks() {
            return Ok(false);
        }
        let (obs, _) = self.observe(state, p, state.operation(p, op), old);
        let edge = self.edge(local, obs)?;
        let then = self.node(edge.target).section;
        let doorway = self.checks_order() && edge.notes.contains(&Note::DoorwayEnd);
        // A round that fails leads back here, so it must not be taken at once.
        if node.head == Some(edge.target) || node.head == Some(local) && self.is_stuck(state, p)? {
            return Ok(false);
        }
        Ok(edge.panic.is_none() && then == node.section && !(doorway && then == Section::Entering))
    }
}
