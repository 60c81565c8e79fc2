//! The invariant of `docs/proofs/handover.md`, conjunct by conjunct, with the numbers and names of
//! that page.

use crate::state::{GONE, Lazy, NIL, Pc, Size, State, Var, node, record, to};

pub(crate) struct Conjunct {
    pub(crate) name: &'static str,
    pub(crate) holds: fn(&View) -> Lazy<bool>,
}

/// A state to check. Positions in the queue start at one, as on the page.
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) size: Size,
}

/// Its node is not in the queue yet.
fn is_outside(pc: Pc) -> bool {
    pc <= Pc::L2
}

/// Its own node is in the queue.
fn is_waiting(pc: Pc) -> bool {
    (Pc::L3..=Pc::L11).contains(&pc)
}

/// It has published ENABLED, and has not removed a node from the queue.
fn is_admitted(pc: Pc) -> bool {
    (Pc::L12User..=Pc::L17Head).contains(&pc)
}

/// It has removed a node from the queue, and that node is not its `cool` yet.
fn is_leaving(pc: Pc) -> bool {
    pc >= Pc::L18New
}

/// It has not written its predecessor's `next` yet.
fn is_unlinked(pc: Pc) -> bool {
    matches!(pc, Pc::L4 | Pc::L5 | Pc::L6 | Pc::L9)
}

/// Head does not point to its node, if it is the first.
fn is_before_head(pc: Pc) -> bool {
    is_unlinked(pc) || matches!(pc, Pc::L3 | Pc::L6Head | Pc::L9Head)
}

impl View<'_> {
    fn get(&self, var: Var) -> Lazy<u8> {
        self.state.get(var)
    }

    fn pc(&self, p: usize) -> Pc {
        self.state.pc(p)
    }

    fn at(&self, is: fn(Pc) -> bool) -> impl Iterator<Item = usize> {
        (0..self.size.processes).filter(move |&p| is(self.pc(p)))
    }

    /// k, the length of the queue.
    fn k(&self) -> Lazy<usize> {
        Ok(usize::from(self.get(Var::Length)?))
    }

    /// d, the number of admitted processes.
    fn d(&self) -> usize {
        self.at(is_admitted).count()
    }

    /// The pointer to node qᵢ.
    fn q(&self, i: usize) -> Lazy<u8> {
        self.get(Var::Queue(i - 1))
    }

    /// A field of node qᵢ.
    fn of(&self, i: usize, field: fn(usize) -> Var) -> Lazy<u8> {
        let it = node(self.q(i)?).expect("it is a node by its type");
        self.get(field(it))
    }

    /// The waiting process that owns node qᵢ.
    fn owner(&self, i: usize) -> Lazy<Option<usize>> {
        if i > self.k()? {
            return Ok(None);
        }
        let it = self.q(i)?;
        for p in self.at(is_waiting) {
            if self.get(Var::Ready(p))? == it {
                return Ok(Some(p));
            }
        }
        Ok(None)
    }

    /// The line of that process.
    fn owner_at(&self, i: usize) -> Lazy<Option<Pc>> {
        Ok(self.owner(i)?.map(|p| self.pc(p)))
    }

    /// The position of the waiting process `p` in the queue.
    fn place(&self, p: usize) -> Lazy<Option<usize>> {
        let ready = self.get(Var::Ready(p))?;
        for i in 1..=self.k()? {
            if self.q(i)? == ready {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    fn is_at(&self, p: usize, i: usize) -> Lazy<bool> {
        Ok(self.place(p)? == Some(i))
    }

    /// A field of the node that `pointer` points to, unless the pointer is a mark.
    fn behind(&self, pointer: Var, field: fn(usize) -> Var) -> Lazy<Option<u8>> {
        node(self.get(pointer)?).map(|it| self.get(field(it))).transpose()
    }

    /// Whether `holds` is true for all.
    fn each(
        mut all: impl Iterator<Item = usize>,
        mut holds: impl FnMut(usize) -> Lazy<bool>,
    ) -> Lazy<bool> {
        loop {
            match all.next() {
                None => return Ok(true),
                Some(one) if holds(one)? => {}
                Some(_) => return Ok(false),
            }
        }
    }
}

macro_rules! conjuncts {
    ($($name:literal => $holds:ident;)*) => {
        pub(crate) const INVARIANT: &[Conjunct] = &[$(Conjunct { name: $name, holds: $holds },)*];
    };
}

conjuncts! {
    "1 count" => count;
    "2 partition" => partition;
    "3 owners" => owners;
    "4 tail" => tail;
    "5 head" => head;
    "6 lock" => lock;
    "7 preparation" => preparation;
    "8 fields" => fields;
    "9 one session" => one_session;
    "10 next" => next;
    "11 predecessor" => predecessor;
    "12 late successor" => late_successor;
    "13 sessions compared" => sessions_compared;
    "14 link" => link;
    "15 first" => first;
    "16 permitted" => permitted;
    "17 signal of line 12" => signal_12;
    "18 exit" => exit;
    "19 signal of line 18" => signal_18;
}

/// |Q| = |W| + |A|.
fn count(v: &View) -> Lazy<bool> {
    Ok(v.k()? == v.at(is_waiting).count() + v.d())
}

/// The nodes of Q, `ready` of the outside, `cool` of all and `h` of the leaving are different.
fn partition(v: &View) -> Lazy<bool> {
    let places = (0..v.k()?).map(Var::Queue);
    let ready = v.at(is_outside).map(Var::Ready);
    let cool = (0..v.size.processes).map(Var::Cool);
    let taken = v.at(is_leaving).map(Var::H);
    let mut seen = 0u32;
    for var in places.chain(ready).chain(cool).chain(taken) {
        let Some(it) = node(v.get(var)?) else { return Ok(false) };
        if seen >> it & 1 == 1 {
            return Ok(false);
        }
        seen |= 1 << it;
    }
    Ok(true)
}

/// `ready` maps W one to one to the nodes after the first d.
fn owners(v: &View) -> Lazy<bool> {
    let mut seen = 0u32;
    for p in v.at(is_waiting) {
        let Some(i) = v.place(p)? else { return Ok(false) };
        if i <= v.d() || seen >> i & 1 == 1 {
            return Ok(false);
        }
        seen |= 1 << i;
    }
    Ok(true)
}

/// Tail is the last node, or NIL.
fn tail(v: &View) -> Lazy<bool> {
    let last = match v.k()? {
        0 => NIL,
        k => v.q(k)?,
    };
    Ok(v.get(Var::Tail)? == last)
}

/// Head is the first node, unless the owner of that node has not written Head yet.
fn head(v: &View) -> Lazy<bool> {
    if v.k()? == 0 || v.owner_at(1)?.is_some_and(is_before_head) {
        return Ok(true);
    }
    Ok(v.get(Var::Head)? == v.q(1)?)
}

/// At most one process is in lines 14 to 19. While it is there, the exit lock is held.
fn lock(v: &View) -> Lazy<bool> {
    Ok(v.at(|pc| pc >= Pc::L14).count() == usize::from(v.get(Var::Lock)?))
}

/// The work that line 1 has done so far.
fn preparation(v: &View) -> Lazy<bool> {
    View::each(v.at(|pc| (Pc::L1Next..=Pc::L2).contains(&pc)), |p| {
        let n = node(v.get(Var::Ready(p))?).expect("it is a node by its type");
        let past = |pc| v.pc(p) > pc;
        Ok(v.get(Var::Session(n))? == v.get(Var::Asked(p))?
            && (!past(Pc::L1Next) || v.get(Var::Next(n))? == NIL)
            && (!past(Pc::L1Link) || v.get(Var::Link(n))? == NIL)
            && (!past(Pc::L1User) || v.get(Var::User(n))? == record(p))
            && (!past(Pc::L1Go) || v.get(Var::Go(p))? == 0))
    })
}

/// The node of a waiting process has its session and its name.
fn fields(v: &View) -> Lazy<bool> {
    View::each(v.at(is_waiting), |p| {
        let n = node(v.get(Var::Ready(p))?).expect("it is a node by its type");
        Ok(v.get(Var::Session(n))? == v.get(Var::Asked(p))? && v.get(Var::User(n))? == record(p))
    })
}

/// The admitted processes and the first d nodes have one session.
fn one_session(v: &View) -> Lazy<bool> {
    View::each(v.at(is_admitted), |p| {
        View::each(1..=v.d(), |i| Ok(v.of(i, Var::Session)? == v.get(Var::Asked(p))?))
    })
}

/// `next` is the next node after that node was linked, and NIL before.
fn next(v: &View) -> Lazy<bool> {
    let k = v.k()?;
    View::each(1..=k, |i| {
        let unlinked = i == k || v.owner_at(i + 1)?.is_some_and(is_unlinked);
        let next = if unlinked { NIL } else { v.q(i + 1)? };
        Ok(v.of(i, Var::Next)? == next)
    })
}

/// `pred` is the previous node.
fn predecessor(v: &View) -> Lazy<bool> {
    View::each(v.at(is_unlinked), |p| match v.place(p)? {
        Some(i) if i > 1 => Ok(v.get(Var::Pred(p))? == v.q(i - 1)?),
        _ => Ok(true),
    })
}

/// `pred` of a process that is first is GONE, and rests: the process at line 19 has it, or it is
/// the `cool` of a process.
fn late_successor(v: &View) -> Lazy<bool> {
    View::each(v.at(is_unlinked), |p| {
        if !v.is_at(p, 1)? {
            return Ok(true);
        }
        let g = v.get(Var::Pred(p))?;
        if v.behind(Var::Pred(p), Var::Next)? != Some(GONE) {
            return Ok(false);
        }
        if let Some(t) = v.at(|pc| pc == Pc::L19).next() {
            return Ok(v.get(Var::H(t))? == g);
        }
        for t in 0..v.size.processes {
            if v.get(Var::Cool(t))? == g {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// The result of line 4 is true.
fn sessions_compared(v: &View) -> Lazy<bool> {
    View::each(v.at(is_waiting), |p| {
        let mine = v.get(Var::Asked(p))?;
        let before = match (v.pc(p), v.place(p)?) {
            (Pc::L5 | Pc::L6 | Pc::L9, _) => v.behind(Var::Pred(p), Var::Session)?,
            (Pc::L7 | Pc::L10 | Pc::L11, Some(i)) if i > 1 => Some(v.of(i - 1, Var::Session)?),
            _ => return Ok(true),
        };
        let differ = matches!(v.pc(p), Pc::L9 | Pc::L10);
        Ok(before.is_some_and(|before| (before != mine) == differ))
    })
}

/// `link` of an owned node is the next node after that node was registered, and NIL before.
fn link(v: &View) -> Lazy<bool> {
    View::each(v.d() + 1..=v.k()?, |i| {
        let registered = matches!(v.owner_at(i + 1)?, Some(Pc::L6 | Pc::L7));
        let link = if registered { v.q(i + 1)? } else { NIL };
        Ok(v.of(i, Var::Link)? == link)
    })
}

/// A process that is about to write Head is first.
fn first(v: &View) -> Lazy<bool> {
    let writes = |pc| matches!(pc, Pc::L3 | Pc::L6Head | Pc::L9Head);
    View::each(v.at(writes), |p| v.is_at(p, 1))
}

/// A process that may enter is the first of the waiting.
fn permitted(v: &View) -> Lazy<bool> {
    View::each(v.at(is_waiting), |p| {
        let pc = v.pc(p);
        let tested = matches!(pc, Pc::L6 | Pc::L6Head);
        let enabled = tested && v.get(Var::Enabled(p))? == 1;
        let go = pc != Pc::L11 && v.get(Var::Go(p))? == 1;
        if go && !matches!(pc, Pc::L6 | Pc::L6Head | Pc::L7 | Pc::L10) {
            return Ok(false);
        }
        if go && pc == Pc::L10 && v.d() > 0 {
            return Ok(false);
        }
        Ok(!(pc == Pc::L11 || enabled || go) || v.is_at(p, v.d() + 1)?)
    })
}

/// The first of the waiting awaits the signal of line 12. There is at most one such signal.
fn signal_12(v: &View) -> Lazy<bool> {
    let signals = |pc| matches!(pc, Pc::L12User | Pc::L12Go);
    if v.at(signals).count() > 1 {
        return Ok(false);
    }
    View::each(v.at(signals), |r| {
        let i = v.d() + 1;
        let Some(p) = v.owner(i)? else { return Ok(false) };
        let named = match v.pc(r) {
            Pc::L12User => v.get(Var::Succ(r))? == v.q(i)?,
            _ => v.get(Var::Who(r))? == record(p),
        };
        let waits = match v.pc(p) {
            Pc::L7 => true,
            Pc::L6 => v.get(Var::Enabled(p))? == 0,
            _ => false,
        };
        Ok(named && waits && v.get(Var::Go(p))? == 0)
    })
}

/// What the process in lines 15 to 18 knows about the queue.
fn exit(v: &View) -> Lazy<bool> {
    View::each(v.at(|pc| (Pc::L15..=Pc::L18Go).contains(&pc)), |r| {
        let (pc, k) = (v.pc(r), v.k()?);
        if is_leaving(pc) {
            return Ok(k >= 1
                && v.get(Var::X(r))? == v.q(1)?
                && !v.owner_at(1)?.is_some_and(is_before_head));
        }
        Ok(k >= 1
            && v.get(Var::H(r))? == v.q(1)?
            && (pc < Pc::L16 || k >= 2)
            && (pc < Pc::L17Next || !v.owner_at(2)?.is_some_and(is_unlinked))
            && (pc < Pc::L17Head || v.get(Var::X(r))? == v.q(2)?))
    })
}

/// The signal of line 18 goes to the only process that may enter. That process awaits it in line
/// 10.
fn signal_18(v: &View) -> Lazy<bool> {
    View::each(v.at(|pc| (Pc::L18New..=Pc::L18Go).contains(&pc)), |r| {
        let pc = v.pc(r);
        if pc == Pc::L18Old && v.behind(Var::X(r), Var::Session)? != Some(v.get(Var::Seen(r))?) {
            return Ok(false);
        }
        if pc <= Pc::L18Old
            && v.behind(Var::X(r), Var::Session)? == v.behind(Var::H(r), Var::Session)?
        {
            return Ok(true);
        }
        let Some(p) = v.owner(1)? else { return Ok(false) };
        Ok(v.pc(p) == Pc::L10
            && v.get(Var::Go(p))? == 0
            && (pc < Pc::L18Go || v.get(Var::Who(r))? == record(p)))
    })
}

/// The consequences of the invariant.
pub(crate) const GOALS: &[Conjunct] = &[
    Conjunct { name: "mutual exclusion", holds: mutual_exclusion },
    Conjunct { name: "no node is lost", holds: nothing_is_lost },
];

/// The purpose of the invariant: all processes in the critical section have one session.
fn mutual_exclusion(v: &View) -> Lazy<bool> {
    let inside = || v.at(|pc| pc == Pc::L13);
    View::each(inside(), |p| {
        View::each(inside(), |q| Ok(v.get(Var::Asked(p))? == v.get(Var::Asked(q))?))
    })
}

/// Every node belongs to a process or is in the queue. This follows from 1 and 2 by counting.
fn nothing_is_lost(v: &View) -> Lazy<bool> {
    View::each(0..v.size.nodes(), |i| {
        let holds = |var| Ok(v.get(var)? == to(i));
        let any = |mut all: Box<dyn Iterator<Item = Var> + '_>| loop {
            match all.next() {
                None => return Ok(false),
                Some(var) if holds(var)? => return Ok(true),
                Some(_) => {}
            }
        };
        Ok(any(Box::new((0..v.k()?).map(Var::Queue)))?
            || any(Box::new(v.at(is_outside).map(Var::Ready)))?
            || any(Box::new((0..v.size.processes).map(Var::Cool)))?
            || any(Box::new(v.at(is_leaving).map(Var::H)))?)
    })
}
