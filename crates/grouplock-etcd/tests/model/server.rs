//! What the server does with a request, and what really happens by it.

use grouplock_etcd::protocol::{Entrant, Outcome};
use grouplock_etcd::view::EntryState;

use crate::asks::{Answer, Ask, Sent};
use crate::mutants::Mutant;
use crate::store::NoLease;
use crate::truth::{Id, read_id};
use crate::world::{DEATHS, LEAVING, ORDER, State, TRACE, World, ids, keys};

impl World {
    pub(crate) fn entrant(&self, who: usize, round: u8, lease: i64) -> Entrant {
        let id = format!("{who}-{round}");
        Entrant { keys: keys(), group: self.sessions[who].to_owned(), id, lease }
    }

    /// The server executes a request.
    pub(crate) fn serve(&self, state: &mut State, who: usize, sent: &Sent) -> Answer {
        let Sent { round, lease, ask } = sent;
        let (entrant, id) = (self.entrant(who, *round, *lease), (who, *round));
        if let Ask::Look(position) = ask {
            let view = state.store.view(&keys());
            return match entrant.inside(*position, &view) {
                _ if view.entry_state(*position) == Some(EntryState::Gone) => Answer::Absent,
                Some(inside) => Answer::Inside(inside),
                None => Answer::Unsettled(*position, Some(view)),
            };
        }
        let before = state.store.clone();
        let response = match state.store.txn(&self.mutant.request(&entrant, ask)) {
            Ok(response) => response,
            Err(NoLease) => return Answer::NoLease,
        };
        match ask {
            Ask::Knock | Ask::Join(..) | Ask::Enter(_) => {
                let joined = if let Ask::Join(phase, ..) = ask { Some(phase) } else { None };
                if !response.succeeded && !matches!(ask, Ask::Enter(_)) {
                    return Answer::NotSo;
                }
                match entrant.read(response, joined).expect("it can be read") {
                    Outcome::Inside(inside) => {
                        self.come(state, id, Some(*lease), inside.position);
                        Answer::Inside(inside)
                    }
                    Outcome::Unsettled(position, view) => {
                        self.come(state, id, Some(*lease), position);
                        Answer::Unsettled(position, view)
                    }
                    Outcome::Queued(position) => {
                        state.truth.queued(id, *lease);
                        Answer::Queued(position)
                    }
                    Outcome::Absent(_) => Answer::Absent,
                }
            }
            Ask::Settle(position, view) => {
                if response.succeeded {
                    let mut inside = entrant.settle(*position, view).1;
                    if self.mutant == Mutant::SettlesOwn {
                        inside.epoch = *position;
                    }
                    Answer::Inside(inside)
                } else {
                    Answer::Unsettled(*position, None)
                }
            }
            Ask::Claim(position, view) => {
                if !state.truth.is_present(id) && state.store != before {
                    state.wrong.insert(TRACE);
                }
                match entrant.read_claim(response, *position, view) {
                    Some(mut inside) => {
                        if self.mutant == Mutant::ClaimOpens && inside.opened_phase {
                            inside.epoch = state.store.revision;
                        }
                        self.come(state, id, Some(*lease), *position);
                        Answer::Inside(inside)
                    }
                    None => Answer::Absent,
                }
            }
            Ask::Leave(position, _, view) => {
                let heirs = view.as_ref().filter(|_| response.succeeded);
                let heirs = heirs.map(|view| view.heirs(*position)).unwrap_or_default();
                if !state.truth.left(id, Entrant::read_leave(response)) {
                    state.wrong.insert(LEAVING);
                }
                for (position, heir) in heirs {
                    self.come(state, read_id(&heir.id), None, position);
                }
                Answer::Left
            }
            Ask::Abandon => {
                // The client does not know which keys it has to delete.
                state.truth.left(id, 0);
                Answer::Left
            }
            Ask::Notice(_) => Answer::Noticed(response),
            Ask::Bury(grave) => {
                let total = grave.deaths.report.as_ref().map_or(0, |report| report.total);
                let (epoch, dead) = (grave.inside.epoch, ids(&grave.inside.dead));
                if response.succeeded && !state.truth.buried(id, epoch, &dead, total) {
                    state.wrong.insert(DEATHS);
                }
                // No client waits for this answer.
                Answer::Absent
            }
            Ask::Look(_) => unreachable!("it was answered"),
        }
    }

    /// Records that a client is admitted, even if it does not know yet.
    fn come(&self, state: &mut State, id: Id, lease: Option<i64>, position: i64) {
        let view = state.store.view(&keys());
        let other = |group: &str| group != self.sessions[id.0];
        if view.entries().any(|(its, entry)| its < position && other(&entry.group)) {
            state.wrong.insert(ORDER);
        }
        state.truth.came(id, lease, state.store.revision);
    }
}
