//! The tables as a Promela model, for Spin.
//!
//! Each step of a process is one `d_step`, and there are no other transitions. So Spin, without its
//! partial order reduction, stores the same states as the lab without its reductions.

mod step;

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::ExportError;
use super::local_table::{Local, LocalTable};
use crate::automaton::{Obs, Op};
use crate::property::{Properties, Property};
use crate::trace::{Section, place};
use crate::value::Val;
use step::{FIRST_OBJECT, FIRST_POINTER, number};

struct Promela<'a> {
    table: &'a LocalTable,
    properties: Properties,
    /// The names of the registers that lie in no object.
    globals: FxHashMap<usize, String>,
    /// The number of places of each object.
    stride: usize,
}

pub(super) fn write(table: &LocalTable, properties: Properties) -> Result<String, ExportError> {
    let layout = &table.layout;
    let mut globals: FxHashMap<usize, String> = FxHashMap::default();
    for (place, &register) in layout.globals.iter().enumerate() {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = layout.register_name(register).chars().map(plain).collect();
        let mut name = format!("r_{}", name.trim_end_matches('_'));
        if globals.values().any(|known| *known == name) {
            _ = write!(name, "_{place}");
        }
        globals.insert(register, name);
    }
    let stride = layout.objects.iter().map(|object| object.registers.len()).max().unwrap_or(0);
    let model = Promela { table, properties, globals, stride };
    let parts = [
        model.header(),
        model.memory()?,
        model.processes(),
        model.monitors(),
        model.steps()?,
        model.process()?,
        model.formulas()?,
    ];
    Ok(parts.join("\n"))
}

impl Promela<'_> {
    fn watches(&self, property: Property) -> bool {
        self.properties.contains(property)
    }

    /// Whether a process may stop forever in its remainder section. Otherwise all may request
    /// again, and none is ever alone.
    fn stops(&self) -> bool {
        self.watches(Property::DeadlockFreedom) || self.watches(Property::StarvationFreedom)
    }

    fn header(&self) -> String {
        let states = self.table.locals.len();
        let mut text = format!(
            "/*
{}, {}: {}.

Made by `grouplock-lab export`. To check it, with this text in model.pml:

    spin -a model.pml
",
            self.table.subject.name, self.table.size, self.properties
        );
        let (ignored, looks) = if self.stops() {
            ("", "assertions, and that nobody waits when nobody can move (invalid end states)")
        } else {
            (" -E", "assertions")
        };
        _ = writeln!(
            text,
            "    gcc -O2 -DNOREDUCE -DSAFETY -DNOCLAIM -o pan pan.c && ./pan -m2000000{ignored}    # {looks}"
        );
        let claims = self.claims();
        if !claims.is_empty() {
            text.push_str("    gcc -O2 -DNOREDUCE -o pan pan.c        # executions without end, with weak fairness\n");
            for claim in claims {
                _ = writeln!(text, "    ./pan -a -f -m2000000 -N {claim}");
            }
        }
        _ = write!(
            text,
            "
What is here: the {states} local states of a process, what it does to which register in each, and where each value that it can
observe leads; the first contents of memory; and monitors and formulas, written for Spin.

What has to be trusted: that the local states are those of the code. They were found by running it, and executions were taken
for one where the text says that they are alike (the remainder section, entry to the critical section, `live`, the head of an
`await`); the lab tries that along several ways, which is no proof. That a step is one access, and memory is sequentially
consistent. That asking goes with the first step, unless that step may have to wait.

What need not be trusted: the lab's search, its monitors, and its reductions. States are not merged by symmetry here, dead or
unreachable contents are not blanked, and no steps are taken together. Edges that the lab did not meet are assertions.
*/
"
        );
        text
    }

    /// The names of the formulas.
    fn claims(&self) -> Vec<String> {
        let mut claims = Vec::new();
        if self.watches(Property::DeadlockFreedom) {
            claims.push("deadlock_freedom".to_owned());
        }
        if self.watches(Property::StarvationFreedom) {
            claims.extend((0..self.table.processes).map(|p| format!("starvation_freedom_{p}")));
        }
        claims
    }

    /// Registers, their first contents, and the meaning of values.
    fn memory(&self) -> Result<String, ExportError> {
        let layout = &self.table.layout;
        let mut text =
            "/* Memory. Numbers stand for themselves; these are pointers: */\n".to_owned();
        _ = writeln!(text, "#define NIL {FIRST_POINTER}");
        for mark in 1..=2 {
            _ = writeln!(text, "#define MARK_{mark} {}", FIRST_POINTER + mark);
        }
        _ = writeln!(text, "#define pointer(o) ({FIRST_OBJECT} + (o))");
        _ = writeln!(text, "#define object(v) ((v) - {FIRST_OBJECT})");
        _ = writeln!(text, "#define is_object(v) ((v) >= {FIRST_OBJECT})");
        for (kind, of) in layout.classes.iter().enumerate() {
            let of: Vec<_> = of.iter().map(|o| format!("(o) == {o}")).collect();
            _ = writeln!(text, "#define is_of_kind_{kind}(o) ({})", of.join(" || "));
        }
        let mut contents = Vec::new();
        for (place, register) in layout.globals.iter().enumerate() {
            _ = writeln!(text, "#define {} memory[{place}]", self.globals[register]);
            contents.push(first(layout.registers[*register].initial)?);
        }
        if self.stride > 0 {
            let (from, stride) = (layout.globals.len(), self.stride);
            _ = writeln!(text, "#define word(o, f) memory[{from} + {stride} * (o) + (f)]");
        }
        for (o, object) in layout.objects.iter().enumerate() {
            let place = layout.globals.len() + self.stride * o;
            let fields =
                object.registers.iter().map(|&register| layout.registers[register].site.name);
            let fields: Vec<_> = fields.collect();
            _ = writeln!(
                text,
                "/* object {o}, {}, from {place} on: {} */",
                object.name,
                fields.join(", ")
            );
            for &register in &object.registers {
                contents.push(first(layout.registers[register].initial)?);
            }
            contents.resize(place + self.stride, "0".to_owned());
        }
        _ = writeln!(
            text,
            "int memory[{}] = {{ {} }};",
            contents.len().max(1),
            contents.join(", ")
        );
        Ok(text)
    }

    /// The positions of the processes.
    fn processes(&self) -> String {
        let LocalTable { processes, sessions, ref first, .. } = *self.table;
        let list = |numbers: &mut dyn Iterator<Item = usize>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
        };
        let mut text =
            "/* Processes: each is in a local state, and knows some objects. */\n".to_owned();
        _ = writeln!(text, "#define me _pid");
        let kind = if self.table.locals.len() < 256 { "byte" } else { "short" };
        let at = list(&mut first.iter().map(|(local, _)| *local));
        _ = writeln!(text, "{kind} at[{processes}] = {{ {at} }};");
        let most = self.table.most_known();
        if most > 0 {
            let known = first.iter().flat_map(|(_, known)| {
                known.iter().copied().chain(std::iter::repeat(0)).take(most)
            });
            let known = list(&mut { known });
            _ = writeln!(text, "#define known(p, i) knows[(p) * {most} + (i)]");
            _ = writeln!(text, "byte knows[{}] = {{ {known} }};", processes * most);
        }
        let sections = [
            ("idle", Section::Remainder),
            ("tries", Section::Entering),
            ("gives_up", Section::Withdrawing),
            ("inside", Section::Inside),
        ];
        // With the comparison to zero, a formula treats it as one proposition. Each additional
        // proposition doubles Spin's time for the formula.
        for (name, section) in sections {
            let (from, to) = self.table.range(section);
            _ = writeln!(text, "#define {name}(p) ((at[p] >= {from} && at[p] < {to}) != 0)");
        }
        text.push_str("/* The session that a process asked for; none while it is idle. */\n");
        _ = writeln!(text, "byte session[{processes}];");
        _ = writeln!(text, "#define in_conflict(a, b) ({})", self.conflicts(sessions));
        if self.table.passages.is_some() {
            _ = writeln!(text, "byte passages[{processes}];");
        }
        text.push_str("/* For use within a step. */\nhidden int v;\nhidden byte q, others;\n");
        for place in 0..most {
            _ = writeln!(text, "hidden byte k{place};");
        }
        text.push_str(
            "/* What is asserted. The last three name mistakes of the code or of the lab. */
hidden byte mutual_exclusion, first_come_first_served, number_fits, this_edge_was_met, the_code_does_not_panic;
",
        );
        text
    }

    /// The pairs of sessions that exclude each other.
    fn conflicts(&self, sessions: u64) -> String {
        let pairs = (1..=sessions).flat_map(|a| (1..=sessions).map(move |b| (a, b)));
        let conflict = self.table.subject.conflict;
        if pairs.clone().all(|(a, b)| conflict(a, b)) {
            return "true".to_owned();
        }
        if pairs.clone().all(|(a, b)| conflict(a, b) == (a != b)) {
            return "(a) != (b)".to_owned();
        }
        let pairs = pairs.filter(|&(a, b)| conflict(a, b));
        let pairs: Vec<_> = pairs.map(|(a, b)| format!("(a) == {a} && (b) == {b}")).collect();
        if pairs.is_empty() { "false".to_owned() } else { pairs.join(" || ") }
    }

    /// The notes when a process requests, ends its doorway, enters and becomes idle.
    fn monitors(&self) -> String {
        let LocalTable { processes, sessions, subject, passages, .. } = *self.table;
        let [excludes, advances, fcfs] =
            [Property::MutualExclusion, Property::DeadlockFreedom, Property::Fcfs]
                .map(|property| self.watches(property));
        let withdraws = fcfs && subject.withdraws;
        let each = |body: &str| {
            format!(
                "\tq = 0;\n\tdo\n\t:: q < {processes} ->\n{body}\t\tq++\n\t:: else -> break\n\tod;\n"
            )
        };
        let each_if = |cases: &str| each(&format!("\t\tif\n{cases}\t\t:: else\n\t\tfi;\n"));
        let forget_me = each("\t\tbefore[q] = before[q] & ~(1 << me);\n");
        let mut limits = String::new();
        for session in 1..=sessions {
            let most = (subject.most)(session);
            // The conflicts of a mutex already say this.
            if most < processes && !(subject.conflict)(session, session) {
                let fits = format!("session[me] != {session} || others < {most}");
                _ = writeln!(limits, "\tmutual_exclusion = mutual_exclusion && ({fits});");
            }
        }
        let marks = format!(
            "bit past[{processes}]; /* Whether it has ended its doorway, and has not entered. */
byte before[{processes}]; /* Those who had done so when it asked, and still have: as a set. */
"
        );
        let asked = "\t\t:: q != me && past[q] && in_conflict(s, session[q]) -> before[me] = before[me] | (1 << q)\n";
        let met = "\t\t:: q != me && inside(q) -> others++; mutual_exclusion = mutual_exclusion && !in_conflict(session[me], session[q])\n";
        let overtaken = format!(
            "bit overtaken[{processes}]; /* While it gave up, somebody who came later entered. */\n"
        );
        let overtakes = "\t\t:: (before[me] >> q) & 1 && gives_up(q) -> overtaken[q] = 1
\t\t:: (before[me] >> q) & 1 && !gives_up(q) -> first_come_first_served = 0
";
        let entered =
            "bit entered; /* Whether the last step was one by which somebody entered. */\n";
        let parts: &[(bool, &str)] = &[
            (true, "/* Events of a passage. */\n"),
            (advances, entered),
            (fcfs, &marks),
            (withdraws, &overtaken),
            (true, "inline asks(s) {\n\tsession[me] = s;\n"),
            (passages.is_some(), "\tpassages[me]++;\n"),
            (fcfs, &each_if(asked)),
            (true, "\tskip\n}\n"),
            (fcfs, "inline ends_doorway() { past[me] = 1 }\n"),
            (true, "inline enters() {\n"),
            (advances, "\tentered = 1;\n"),
            (excludes, "\tmutual_exclusion = 1; others = 0;\n"),
            (excludes, &each_if(met)),
            (excludes, &limits),
            (excludes, "\tassert(mutual_exclusion);\n"),
            (fcfs, "\tpast[me] = 0;\n"),
            (fcfs && !withdraws, "\tfirst_come_first_served = (before[me] == 0);\n"),
            (withdraws, "\tfirst_come_first_served = !overtaken[me];\n"),
            (withdraws, &each_if(overtakes)),
            (fcfs, "\tassert(first_come_first_served);\n\tbefore[me] = 0;\n"),
            (fcfs, &forget_me),
            (true, "\tskip\n}\ninline rests() {\n\tsession[me] = 0;\n"),
            (fcfs, "\tbefore[me] = 0;\n"),
            (withdraws, "\tpast[me] = 0;\n\tovertaken[me] = 0;\n"),
            (withdraws, &forget_me),
            (true, "\tskip\n}\n"),
        ];
        parts.iter().filter(|(is_here, _)| *is_here).map(|(_, text)| *text).collect()
    }

    /// The step of each local state.
    fn steps(&self) -> Result<String, ExportError> {
        let mut text = "/* The local states in which something is done: the step, and where what is observed leads. */\n".to_owned();
        for (number, local) in self.table.locals.iter().enumerate() {
            if local.node.section == Section::Remainder {
                continue;
            }
            let session = local.node.session;
            let at = local.node.at.map_or_else(String::new, |at| place(at) + ", ");
            _ = write!(
                text,
                "/* {at}session {session} */\ninline step_{number}() {{\n\t{}\n}}\n",
                self.step(number)?.trim_start()
            );
        }
        Ok(text)
    }

    /// The process: each step is one transition.
    fn process(&self) -> Result<String, ExportError> {
        let LocalTable { processes, sessions, passages, .. } = *self.table;
        let mut text = format!("active [{processes}] proctype process() {{\n\tdo\n");
        let begins = if self.watches(Property::DeadlockFreedom) { "entered = 0; " } else { "" };
        for (number, local) in self.table.locals.iter().enumerate() {
            if local.node.section == Section::Remainder {
                for session in 1..=sessions {
                    let more =
                        passages.map_or(String::new(), |most| format!(" && passages[me] < {most}"));
                    let asked = self.only(number, Obs::Request(session));
                    let first = self.first_step(local, session);
                    _ = writeln!(
                        text,
                        "\t:: d_step {{ at[me] == {number}{more} -> {begins}asks({session});{asked}{first} }}"
                    );
                }
                continue;
            }
            let condition = self.condition("me", local)?;
            let condition = condition.map_or(String::new(), |condition| format!(" && {condition}"));
            _ = writeln!(
                text,
                "\t:: d_step {{ at[me] == {number}{condition} -> {begins}step_{number}() }}"
            );
            let in_vain = match local.node.step {
                Some((_, Op::WaitUnless(_))) => String::new(),
                Some((target, Op::WaitOther(value))) => {
                    let register = self.register("me", target);
                    format!(" && {register} == {}", self.value("me", value)?)
                }
                _ => continue,
            };
            let gives_up = self.only(number, Obs::Waited(false));
            _ = writeln!(
                text,
                "\t:: d_step {{ at[me] == {number}{in_vain} -> {begins}{gives_up} }}"
            );
        }
        if self.stops() {
            text.push_str("\t:: idle(me) -> goto end_stopped\n\tod;\nend_stopped: false\n}\n");
        } else {
            text.push_str("\tod\n}\n");
        }
        Ok(text)
    }

    /// A request accesses nothing. So it is part of the first step of the entry section, unless
    /// that step may have to wait.
    fn first_step(&self, idle: &Local, session: u64) -> String {
        let edge = idle.edge(Obs::Request(session)).filter(|edge| edge.panic.is_none());
        let Some(edge) = edge else { return String::new() };
        let node = &self.table.locals[edge.target as usize].node;
        if node.section == Section::Entering && node.step.is_some_and(|(_, op)| !op.blocks()) {
            format!("; step_{}()", edge.target)
        } else {
            String::new()
        }
    }

    /// The formulas for infinite executions.
    fn formulas(&self) -> Result<String, ExportError> {
        let processes = self.table.processes;
        let mut text = String::new();
        if self.claims().is_empty() {
            return Ok(text);
        }
        // A process that could take an ideal lock again and again takes it. That is more than weak
        // fairness, which Spin provides.
        let mut fair = String::new();
        if self.table.has_ideal() {
            text.push_str("/* An ideal lock is fairer than Spin: whoever could take it again and again takes it. */\n");
            for p in 0..processes {
                let (mut wants, mut could) = (Vec::new(), Vec::new());
                for (number, local) in self.table.locals.iter().enumerate() {
                    if let Some((_, Op::AwaitCas(..))) = local.node.step
                        && let Some(condition) = self.condition(&p.to_string(), local)?
                    {
                        wants.push(format!("at[{p}] == {number}"));
                        could.push(format!("at[{p}] == {number} && {condition}"));
                    }
                }
                _ = writeln!(text, "#define wants_ideal_{p} (({}) != 0)", wants.join(" || "));
                let could = could.join(" || ");
                _ = writeln!(text, "#define could_take_ideal_{p} (({could}) != 0)");
            }
            let each = (0..processes)
                .map(|p| format!("(<> [] !could_take_ideal_{p} || [] <> !wants_ideal_{p})"));
            fair = format!("({}) -> ", each.collect::<Vec<_>>().join(" && "));
        }
        if self.watches(Property::DeadlockFreedom) {
            let somebody: Vec<_> = (0..processes).map(|p| format!("tries({p})")).collect();
            let somebody = somebody.join(" || ");
            _ = writeln!(
                text,
                "/* While somebody tries, somebody enters. */\nltl deadlock_freedom {{ {fair}[] <> (entered || !({somebody})) }}"
            );
        }
        if self.watches(Property::StarvationFreedom) {
            text.push_str("/* Nobody tries for ever. */\n");
            for p in 0..processes {
                _ = writeln!(text, "ltl starvation_freedom_{p} {{ {fair}[] <> !tries({p}) }}");
            }
        }
        Ok(text)
    }
}

/// The first contents of a register.
fn first(value: Val) -> Result<String, ExportError> {
    Ok(match (value.as_mark(), value.as_object(), value.as_number()) {
        (Some(mark), ..) => (FIRST_POINTER + mark as u64).to_string(),
        (_, Some(object), _) => (FIRST_OBJECT + object as u64).to_string(),
        (_, _, Some(plain)) => number(plain)?.to_string(),
        _ => unreachable!("the text is not believed on what is dead"),
    })
}
