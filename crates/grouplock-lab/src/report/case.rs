//! What a dossier says about an algorithm, for each column of a table.

use grouplock_algorithms::Claims;
use grouplock_algorithms::claims::{Bound, Claim, Growth, Limit, Primitive};

use super::dossier::{Algorithm, Broken, Dossier, Exploration};
use super::table::{Cell, Support};
use crate::explore::Verdict;
use crate::property::Property;
use crate::rmr::{Model, fit, growth, rounded_up};

/// An algorithm with all its variants: over an ideal lock, and over its shipped lock.
pub(super) struct Case<'a> {
    dossier: &'a Dossier,
    /// The shipped variant. Its claims count.
    shipped: &'a Algorithm,
    /// All names, from the plain one to the longest.
    names: Vec<&'a str>,
}

impl<'a> Case<'a> {
    /// The algorithm called `name`, without the lock it uses.
    pub(super) fn of(dossier: &'a Dossier, name: &str) -> Option<Self> {
        let variants = dossier.algorithms.iter().filter(|a| plain(&a.name) == name);
        let mut variants: Vec<_> = variants.collect();
        variants.sort_by_key(|algorithm| algorithm.name.len());
        let shipped = *variants.last()?;
        let names = variants.iter().map(|algorithm| algorithm.name.as_str()).collect();
        Some(Case { dossier, shipped, names })
    }

    pub(super) fn claims(&self) -> &'a Claims {
        &self.shipped.claims
    }

    /// Whether the lock stopped making progress while its references were counted: with so few
    /// processes.
    pub(super) fn breaks(&self) -> Option<&'a Broken> {
        let broken = self.dossier.broken.iter();
        broken
            .filter(|it| self.names.contains(&it.algorithm.as_str()))
            .min_by_key(|it| it.processes)
    }

    pub(super) fn unknown_numbers(&self) -> Cell {
        let Claims { processes, sessions, .. } = *self.claims();
        let both = (processes, sessions) == (Limit::None, Limit::None);
        let known = |limit: Limit| if limit == Limit::None { "any" } else { "fixed" };
        let how = format!("processes {}, sessions {}", known(processes), known(sessions));
        Cell { how, ..Cell::unmeasured(if both { "✓" } else { "✗" }.to_owned()) }
    }

    /// A column for one property.
    pub(super) fn plainly(&self, property: Property) -> Cell {
        let claim = property.claim(self.claims());
        self.evidence(property).cell(yes_or_no(claim), claim)
    }

    /// The strongest of `properties` that is claimed. If none is, the cell says whether even the
    /// weakest of them, the last, is known to fail.
    pub(super) fn strongest(&self, properties: &[(&str, Property)]) -> Cell {
        let claimed = properties.iter().find(|(_, p)| p.claim(self.claims()).is_claimed());
        if let Some(&(label, property)) = claimed {
            return self.evidence(property).cell(label.to_owned(), property.claim(self.claims()));
        }
        let cell = Cell::unmeasured("✗".to_owned());
        let Some(&(label, weakest)) = properties.last() else { return cell };
        let evidence = self.evidence(weakest);
        if evidence.refuted.is_none() {
            return cell;
        }
        let (measured, how) = (format!("no {label}"), evidence.how());
        Cell { measured, how, support: Support::Supported, ..cell }
    }

    /// All of `properties` that are claimed.
    pub(super) fn each(&self, properties: &[(&str, Property)]) -> Cell {
        let claimed = properties.iter().filter(|(_, p)| p.claim(self.claims()).is_claimed());
        let mut cells = claimed.map(|&(label, property)| {
            let claim = property.claim(self.claims());
            (label, self.evidence(property).cell(label.to_owned(), claim))
        });
        let Some((first, mut cell)) = cells.next() else {
            return Cell::unmeasured("✗".to_owned());
        };
        for (label, other) in cells {
            cell.claimed = format!("{}, {}", cell.claimed, other.claimed);
            if (&other.measured, &other.how) != (&cell.measured, &cell.how) {
                cell.measured = format!("{first} {}; {label} {}", cell.measured, other.measured);
                cell.how = format!("{first} {}; {label} {}", cell.how, other.how);
            }
            cell.support = cell.support.max(other.support);
        }
        cell
    }

    /// The explorations of all variants.
    fn explorations(&self) -> impl DoubleEndedIterator<Item = &'a Exploration> {
        let all = self.dossier.explorations.iter();
        all.filter(|exploration| self.names.contains(&&*exploration.algorithm))
    }

    /// Whether it was over an ideal lock, and there is a variant over another one.
    fn is_ideal(&self, exploration: &Exploration) -> bool {
        self.names.len() > 1 && self.names[0] == exploration.algorithm
    }

    fn evidence(&self, property: Property) -> Evidence<'_> {
        let about = |verdict| {
            let all = self.explorations().filter(move |e| e.verdict == verdict);
            all.filter(move |e| e.properties.contains(property))
        };
        let mut held: Vec<_> = about(Verdict::Holds).collect();
        // A result for the whole says more than a result over an ideal lock.
        held.sort_by_key(|exploration| (!self.is_ideal(exploration), rank(exploration)));
        let mut exhausted: Vec<&Exploration> = Vec::new();
        for next in held.into_iter().rev() {
            let (processes, sessions, passages) = rank(next);
            let covered = exhausted.iter().any(|other| {
                let (p, s, k) = rank(other);
                p >= processes && s >= sessions && k >= passages
            });
            if !covered {
                exhausted.push(next);
            }
        }
        // An exploration ends at its first violation, and says nothing about the other properties.
        let refuted = about(Verdict::Violated).filter(|e| e.violated == Some(property));
        let refuted = refuted.min_by_key(|exploration| rank(exploration));
        let limited = about(Verdict::Limit).rev().max_by_key(|exploration| rank(exploration));
        Evidence { case: self, refuted, exhausted, limited }
    }

    pub(super) fn space(&self) -> Cell {
        let claimed = self.claims().space;
        let cell = Cell::unmeasured(claimed.to_string());
        let points = &self.shipped.registers;
        match (points.last(), fit(points)) {
            (None, _) | (_, Growth::NotStated) => cell,
            (Some((processes, registers)), grows) => Cell {
                measured: grows.to_string(),
                how: format!("counted up to {processes} processes (registers: {registers})"),
                support: supported(claimed, grows),
                ..cell
            },
        }
    }

    pub(super) fn rmr(&self, model: Model, claimed: Bound) -> Cell {
        let cell = Cell::unmeasured(claimed.to_string());
        let of = |name: &&str| {
            let points = self.dossier.rmr.iter();
            points.filter(|p| p.algorithm == *name && p.model == model).collect::<Vec<_>>()
        };
        // The shipped variant counts. If it was not measured, its parts count.
        let points = self.names.iter().rev().map(of).find(|points| !points.is_empty());
        let Some(points) = points else { return cell };
        let last = points.iter().map(|point| point.processes).max().unwrap_or(0);
        let found = points.iter().map(|point| point.max).max().unwrap_or(0);
        let (how, grows) = (format!("sampled to {last} processes"), growth(&points, claimed));
        let support = supported(claimed.claimed, grows);
        if let Some(least) = self.breaks() {
            // The costs at other sizes do not show that the lock works.
            let measured = format!("breaks with {} processes", least.processes);
            return Cell { measured, how: least.because.clone(), support: Support::Partly, ..cell };
        }
        if let Some(bound) = points.iter().find_map(|point| point.bound) {
            let measured = format!("O(1), at most {bound}; largest found {found}");
            let how = format!("proven for any number of processes; {how}");
            return Cell { measured, how, support, ..cell };
        }
        let told = match grows {
            Growth::NotStated => String::new(),
            grows => format!("{}, ", Bound { claimed: grows, ..claimed }),
        };
        let measured = if grows == Growth::Unbounded {
            "∞: waits on remote memory".to_owned()
        } else if claimed.amortised {
            let most = points.iter().filter_map(|point| point.amortised).map(rounded_up).max();
            let most = most.unwrap_or(0);
            format!("{told}at most {most} on the mean of a run, largest passage {found}")
        } else {
            format!("{told}largest found {found}")
        };
        Cell { measured, how, support, ..cell }
    }

    /// An exhausted exploration with any number of passages shows that there are finitely many
    /// states. So registers are bounded.
    pub(super) fn registers(&self) -> Cell {
        let claim = self.claims().bounded_registers;
        let all = self.explorations().filter(|e| e.verdict == Verdict::Holds);
        let all = all.filter(|exploration| exploration.passages.is_none());
        let cell = Cell::unmeasured(yes_or_no(claim));
        let Some(largest) = all.max_by_key(|exploration| rank(exploration)) else { return cell };
        Cell {
            measured: "finitely many states".to_owned(),
            how: format!("exhausted up to {}, any number of passages", largest.size(false)),
            support: Support::Supported,
            ..cell
        }
    }
}

/// The name without the lock it uses.
pub(super) fn plain(name: &str) -> &str {
    name.split('+').next().unwrap_or(name)
}

fn rank(exploration: &Exploration) -> (usize, u64, u8) {
    (exploration.processes, exploration.sessions, exploration.passages.unwrap_or(u8::MAX))
}

struct Evidence<'a> {
    case: &'a Case<'a>,
    /// The smallest exploration that found a violation.
    refuted: Option<&'a Exploration>,
    /// The explorations that exhausted their size. None of them is smaller than another in every
    /// respect.
    exhausted: Vec<&'a Exploration>,
    /// The largest exploration that ended early.
    limited: Option<&'a Exploration>,
}

impl Evidence<'_> {
    fn cell(&self, claimed: String, claim: Claim) -> Cell {
        let (measured, support) = match (self.refuted, self.exhausted.first(), self.limited) {
            (Some(_), _, _) => ("refuted", Support::Refuted),
            (None, Some(_), _) => ("holds", Support::Supported),
            (None, None, Some(_)) => ("nothing found", Support::Partly),
            (None, None, None) => ("not measured", Support::Unmeasured),
        };
        let (claimed, measured, support) = match (claim, support) {
            // Known to be false, although this exploration was too small to find it.
            (Claim::Refuted(_), Support::Supported) => {
                (format!("{claimed}, refuted"), "no violation so far", Support::Partly)
            }
            (Claim::Refuted(_), _) => (format!("{claimed}, refuted"), measured, support),
            // Nobody says that it holds.
            (Claim::No, Support::Refuted) => (claimed, "does not hold", Support::Supported),
            _ => (claimed, measured, support),
        };
        Cell { claimed, measured: measured.to_owned(), how: self.how(), support, printed: None }
    }

    fn how(&self) -> String {
        let over = |e: &Exploration| if self.case.is_ideal(e) { " (ideal inner lock)" } else { "" };
        let mut parts = Vec::new();
        if let Some(at) = self.refuted {
            let (steps, size) = (at.trace.len(), at.size(false));
            parts.push(format!("{steps} steps at {size}{}", over(at)));
        }
        for (i, at) in self.exhausted.iter().enumerate() {
            let told = match (i, self.refuted) {
                (0, Some(_)) => "holds, exhausted up to ",
                (0, None) => "exhausted up to ",
                _ => "",
            };
            parts.push(format!("{told}{}{}", at.size(false), over(at)));
        }
        if let (Some(at), true) = (self.limited, self.exhausted.is_empty()) {
            parts.push(format!("{} states of {}{}", at.states, at.size(false), over(at)));
        }
        parts.join("; ")
    }
}

fn supported(claimed: Growth, measured: Growth) -> Support {
    match (claimed, measured) {
        (_, Growth::NotStated) => Support::Partly,
        (Growth::NotStated, _) => Support::Supported,
        _ if measured <= claimed => Support::Supported,
        _ => Support::Refuted,
    }
}

fn yes_or_no(claim: Claim) -> String {
    if claim.is_claimed() { "yes" } else { "no" }.to_owned()
}

pub(super) fn hardware(primitives: &[Primitive]) -> String {
    let strong = primitives.iter().filter_map(|primitive| match primitive {
        Primitive::Read | Primitive::Write => None,
        Primitive::FetchAndStore => Some("fetch&store"),
        Primitive::CompareAndSwap => Some("CAS"),
        Primitive::FetchAndAdd => Some("fetch&add"),
    });
    let strong: Vec<_> = strong.collect();
    if strong.is_empty() { "read/write".to_owned() } else { strong.join(", ") }
}
