//! The steps of a local state, and its edges, as Promela statements.

use std::fmt::Write as _;

use super::Promela;
use crate::automaton::{Edge, Note, Obs, Op, Target};
use crate::export::ExportError;
use crate::export::local_table::Local;
use crate::property::Property;
use crate::trace::Section;
use crate::value::Val;

/// Pointers are larger than numbers, and objects larger than the marks beside them.
pub(super) const FIRST_POINTER: u64 = 2_000_000_000;
pub(super) const FIRST_OBJECT: u64 = FIRST_POINTER + 10;

/// A number in the model.
pub(super) fn number(number: u64) -> Result<u64, ExportError> {
    if number < FIRST_POINTER { Ok(number) } else { Err(ExportError::Number(number)) }
}

impl Promela<'_> {
    /// The register that `target` is for `process`.
    pub(super) fn register(&self, process: &str, target: Target) -> String {
        match target {
            Target::Global(register) => self.globals[&register].clone(),
            Target::Field(placeholder, field) => {
                format!("word(known({process}, {placeholder}), {field})")
            }
        }
    }

    /// The value with the objects of `process`.
    pub(super) fn value(&self, process: &str, value: Val) -> Result<String, ExportError> {
        Ok(match (value.as_mark(), value.as_object(), value.as_number()) {
            (Some(0), ..) => "NIL".to_owned(),
            (Some(mark), ..) => format!("MARK_{mark}"),
            (_, Some(placeholder), _) => format!("pointer(known({process}, {placeholder}))"),
            (_, _, Some(plain)) => number(plain)?.to_string(),
            _ => unreachable!("the text is not believed on what is dead"),
        })
    }

    /// The condition for a step that may have to wait.
    pub(super) fn condition(
        &self,
        process: &str,
        local: &Local,
    ) -> Result<Option<String>, ExportError> {
        Ok(match local.node.step {
            Some((target, Op::WaitFor(value) | Op::WaitUnless(value) | Op::AwaitCas(value, _))) => {
                let register = self.register(process, target);
                Some(format!("{register} == {}", self.value(process, value)?))
            }
            Some((target, Op::WaitOther(value))) => {
                let register = self.register(process, target);
                Some(format!("{register} != {}", self.value(process, value)?))
            }
            _ => None,
        })
    }

    /// The next step of a local state, as the body of an `inline`. A step that may have to wait is
    /// taken only if its condition holds.
    pub(super) fn step(&self, from: usize) -> Result<String, ExportError> {
        let local = &self.table.locals[from];
        let Some((target, op)) = local.node.step else {
            return Ok(self.only(from, Obs::Pass));
        };
        let register = self.register("me", target);
        let value = |value| self.value("me", value);
        Ok(match op {
            Op::Read | Op::WaitOther(_) => format!("v = {register};{}", self.by_value(from)?),
            Op::Write(new) | Op::AwaitCas(_, new) => {
                format!("{register} = {};{}", value(new)?, self.only(from, Obs::Done))
            }
            Op::Fas(new) => {
                format!("v = {register}; {register} = {};{}", value(new)?, self.by_value(from)?)
            }
            Op::Cas(old, new) => {
                let swapped = self.only(from, Obs::Swapped(true));
                let failed = self.only(from, Obs::Swapped(false));
                format!(
                    "if\n\t:: {register} == {} -> {register} = {};{swapped}\n\t:: else ->{failed}\n\tfi",
                    value(old)?,
                    value(new)?,
                )
            }
            Op::Faa(delta, bits) => {
                let sum = format!("v {}", added(delta, bits)?);
                let sum =
                    if bits < 31 { format!("({sum}) & {}", (1_u64 << bits) - 1) } else { sum };
                let fits = format!("number_fits = ({register} >= 0 && {register} < NIL)");
                format!(
                    "v = {register}; {register} = {sum}; {fits}; assert(number_fits);{}",
                    self.by_value(from)?
                )
            }
            Op::WaitFor(_) => self.only(from, Obs::Done),
            Op::WaitUnless(_) => self.only(from, Obs::Waited(true)),
        })
    }

    /// One edge for each value that was observed here. The value is in `v`.
    fn by_value(&self, from: usize) -> Result<String, ExportError> {
        let local = &self.table.locals[from];
        let arity = local.node.arity;
        let mut text = "\n\tif".to_owned();
        for (obs, edge) in &local.edges {
            let &Obs::Value(value) = obs else { continue };
            let condition = if let Some(class) = value.as_stranger() {
                let unknown = (0..arity).map(|i| format!(" && object(v) != known(me, {i})"));
                format!(
                    "is_object(v) && is_of_kind_{class}(object(v)){}",
                    unknown.collect::<String>()
                )
            } else {
                format!("v == {}", self.value("me", value)?)
            };
            _ = write!(text, "\n\t:: {condition} ->{}", self.edge(from, *obs, edge));
        }
        text.push_str("\n\t:: else -> assert(this_edge_was_met)\n\tfi");
        Ok(text)
    }

    /// The edge for an observation without a value.
    pub(super) fn only(&self, from: usize, obs: Obs) -> String {
        match self.table.locals[from].edge(obs) {
            Some(edge) => self.edge(from, obs, edge),
            None => " assert(this_edge_was_met)".to_owned(),
        }
    }

    /// Moves the process along an edge.
    fn edge(&self, from: usize, obs: Obs, edge: &Edge) -> String {
        if let Some(message) = &edge.panic {
            let message = message.replace("*/", "* /").replace('\n', " ");
            return format!(" assert(the_code_does_not_panic) /* {message} */");
        }
        let mut text = self.learned(from, obs, edge);
        let (was, target) = (self.table.section(from), edge.target as usize);
        let is = self.table.section(target);
        let entering = matches!(was, Section::Remainder | Section::Entering);
        if self.watches(Property::Fcfs) && entering && edge.notes.contains(&Note::DoorwayEnd) {
            text.push_str(" ends_doorway();");
        }
        _ = write!(text, " at[me] = {target}");
        if is == Section::Inside && was != Section::Inside {
            text.push_str("; enters()");
        }
        if is == Section::Remainder {
            text.push_str("; rests()");
        }
        text
    }

    /// The objects that the process knows at the end of an edge: each has the place that the target
    /// states. The others have no place.
    fn learned(&self, from: usize, obs: Obs, edge: &Edge) -> String {
        let arity = self.table.locals[from].node.arity;
        let stranger = obs.stranger().is_some();
        let before = |place: usize| {
            if stranger && place == arity {
                "object(v)".to_owned()
            } else {
                format!("known(me, {place})")
            }
        };
        let moved = edge.env.iter().map(|&place| usize::from(place)).enumerate();
        let moved: Vec<_> =
            moved.filter(|&(to, place)| place != to || stranger && place == arity).collect();
        let mut text = String::new();
        if let [(to, place)] = moved[..] {
            _ = write!(text, " known(me, {to}) = {};", before(place));
        } else {
            for (to, place) in &moved {
                _ = write!(text, " k{to} = {};", before(*place));
            }
            for (to, _) in &moved {
                _ = write!(text, " known(me, {to}) = k{to};");
            }
        }
        for place in edge.env.len()..arity {
            _ = write!(text, " known(me, {place}) = 0;");
        }
        text
    }
}

/// "+ 3" or "- 1": the added number, of so many bits.
fn added(delta: u64, bits: u32) -> Result<String, ExportError> {
    let negated = delta.wrapping_neg() & (u64::MAX >> (64 - bits));
    if delta >> (bits - 1) & 1 == 1 && negated < delta {
        Ok(format!("- {}", number(negated)?))
    } else {
        Ok(format!("+ {}", number(delta)?))
    }
}
