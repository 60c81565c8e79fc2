//! A state in which some variables have no value yet.
//!
//! A read of a variable without a value returns [`Stop::Need`]. Then the search tries every value
//! of its type. So if some variables were never needed, the state represents all states with any
//! values of these variables.

use std::fmt;

/// The number of processes and sessions. There are two nodes for each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) processes: usize,
    pub(crate) sessions: u8,
}

impl Size {
    pub(crate) fn nodes(self) -> usize {
        2 * self.processes
    }
}

/// Why an expression could not be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// This variable has no value yet.
    Need(Var),
    /// A step is invalid.
    Fault(&'static str),
}

pub(crate) type Lazy<T> = Result<T, Stop>;

/// The next step: a line of the text. Lines with several accesses have parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Pc {
    Idle,
    L1Session,
    L1Next,
    L1Link,
    L1User,
    L1Go,
    L2,
    L3,
    L4,
    L5,
    L6,
    L6Head,
    L7,
    L9,
    L9Head,
    L10,
    L11,
    L12User,
    L12Go,
    /// In the critical section; the next step is line 13.
    L13,
    L14,
    L15,
    L16,
    L17Next,
    L17Head,
    L18New,
    L18Old,
    L18User,
    L18Go,
    L19,
}

impl Pc {
    #[rustfmt::skip]
    pub(crate) const ALL: [Pc; 30] = [
        Pc::Idle, Pc::L1Session, Pc::L1Next, Pc::L1Link, Pc::L1User, Pc::L1Go, Pc::L2, Pc::L3, Pc::L4, Pc::L5,
        Pc::L6, Pc::L6Head, Pc::L7, Pc::L9, Pc::L9Head, Pc::L10, Pc::L11, Pc::L12User, Pc::L12Go, Pc::L13,
        Pc::L14, Pc::L15, Pc::L16, Pc::L17Next, Pc::L17Head, Pc::L18New, Pc::L18Old, Pc::L18User, Pc::L18Go, Pc::L19,
    ];

    /// The line of the text.
    pub(crate) fn line(self) -> u8 {
        let name = format!("{self:?}");
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }
}

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Var {
    Tail,
    Head,
    /// Whether the exit lock is held.
    Lock,
    /// The number of nodes in the queue, and the nodes. These are variables of the proof, not of
    /// the text.
    Length,
    Queue(usize),
    Session(usize),
    Next(usize),
    Link(usize),
    User(usize),
    Go(usize),
    Pc(usize),
    /// The session that the process requests.
    Asked(usize),
    Ready(usize),
    Cool(usize),
    Pred(usize),
    Enabled(usize),
    Succ(usize),
    /// The record that line 12 or 18 has read.
    Who(usize),
    H(usize),
    X(usize),
    /// The value of x.session that line 18 has read.
    Seen(usize),
}

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A node or a mark.
    Pointer,
    Node,
    /// A record or NIL.
    Record,
    /// From zero, the first value of a node.
    Session,
    /// From one.
    Asked,
    Bool,
    Length,
    Pc,
}

pub(crate) const NIL: u8 = 0;
pub(crate) const GONE: u8 = 1;
pub(crate) const ENABLED: u8 = 2;
const MARKS: u8 = 3;

/// A pointer to node `i`.
pub(crate) fn to(i: usize) -> u8 {
    MARKS + i as u8
}

/// The node that a pointer points to.
pub(crate) fn node(pointer: u8) -> Option<usize> {
    pointer.checked_sub(MARKS).map(usize::from)
}

/// A pointer to the record of process `p`.
pub(crate) fn record(p: usize) -> u8 {
    1 + p as u8
}

const MOST: usize = 5;
/// The queue has space for one node more than exist.
const GLOBALS: usize = 5 + 2 * MOST;
const OF_NODE: usize = 4;
const OF_PROCESS: usize = 12;
const VARIABLES: usize = GLOBALS + 2 * MOST * OF_NODE + MOST * OF_PROCESS;
const UNKNOWN: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    values: [u8; VARIABLES],
}

impl Var {
    fn index(self) -> usize {
        let of_node = |i, field| GLOBALS + i * OF_NODE + field;
        let of_process = |p, field| GLOBALS + 2 * MOST * OF_NODE + p * OF_PROCESS + field;
        match self {
            Var::Tail => 0,
            Var::Head => 1,
            Var::Lock => 2,
            Var::Length => 3,
            Var::Queue(i) => 4 + i,
            Var::Session(i) => of_node(i, 0),
            Var::Next(i) => of_node(i, 1),
            Var::Link(i) => of_node(i, 2),
            Var::User(i) => of_node(i, 3),
            Var::Go(p) => of_process(p, 0),
            Var::Pc(p) => of_process(p, 1),
            Var::Asked(p) => of_process(p, 2),
            Var::Ready(p) => of_process(p, 3),
            Var::Cool(p) => of_process(p, 4),
            Var::Pred(p) => of_process(p, 5),
            Var::Enabled(p) => of_process(p, 6),
            Var::Succ(p) => of_process(p, 7),
            Var::Who(p) => of_process(p, 8),
            Var::H(p) => of_process(p, 9),
            Var::X(p) => of_process(p, 10),
            Var::Seen(p) => of_process(p, 11),
        }
    }

    pub(crate) fn all(size: Size) -> Vec<Var> {
        let mut all = vec![Var::Tail, Var::Head, Var::Lock, Var::Length];
        for i in 0..size.nodes() {
            all.extend([Var::Queue(i), Var::Session(i), Var::Next(i), Var::Link(i), Var::User(i)]);
        }
        for p in 0..size.processes {
            all.extend([Var::Go(p), Var::Pc(p), Var::Asked(p), Var::Ready(p), Var::Cool(p)]);
            all.extend([Var::Pred(p), Var::Enabled(p), Var::Succ(p), Var::Who(p)]);
            all.extend([Var::H(p), Var::X(p), Var::Seen(p)]);
        }
        all
    }

    pub(crate) fn of_type(self) -> Type {
        match self {
            Var::Tail
            | Var::Head
            | Var::Next(_)
            | Var::Link(_)
            | Var::Pred(_)
            | Var::Succ(_)
            | Var::H(_)
            | Var::X(_) => Type::Pointer,
            Var::Queue(_) | Var::Ready(_) | Var::Cool(_) => Type::Node,
            Var::User(_) | Var::Who(_) => Type::Record,
            Var::Session(_) | Var::Seen(_) => Type::Session,
            Var::Asked(_) => Type::Asked,
            Var::Lock | Var::Go(_) | Var::Enabled(_) => Type::Bool,
            Var::Length => Type::Length,
            Var::Pc(_) => Type::Pc,
        }
    }

    /// All values of its type.
    pub(crate) fn values(self, size: Size) -> std::ops::Range<u8> {
        let nodes = size.nodes() as u8;
        match self.of_type() {
            Type::Pointer => 0..MARKS + nodes,
            Type::Node => MARKS..MARKS + nodes,
            Type::Record => 0..1 + size.processes as u8,
            Type::Session => 0..1 + size.sessions,
            Type::Asked => 1..1 + size.sessions,
            Type::Bool => 0..2,
            Type::Length => 0..1 + nodes,
            Type::Pc => 0..Pc::ALL.len() as u8,
        }
    }

    /// The node of this field.
    fn lies_in(self) -> Option<usize> {
        match self {
            Var::Session(i) | Var::Next(i) | Var::Link(i) | Var::User(i) => Some(i),
            _ => None,
        }
    }
}

impl State {
    /// The state without any values.
    pub(crate) const UNKNOWN: State = State { values: [UNKNOWN; VARIABLES] };

    /// All processes are idle and none has made a step.
    pub(crate) fn first(size: Size) -> Self {
        let mut state = State { values: [0; VARIABLES] };
        for i in 0..size.nodes() {
            state.set(Var::Queue(i), to(0));
        }
        for p in 0..size.processes {
            state.set(Var::Asked(p), 1);
            state.set(Var::Ready(p), to(2 * p));
            state.set(Var::Cool(p), to(2 * p + 1));
        }
        state
    }

    pub(crate) fn get(&self, var: Var) -> Lazy<u8> {
        match self.values[var.index()] {
            UNKNOWN => Err(Stop::Need(var)),
            value => Ok(value),
        }
    }

    pub(crate) fn flag(&self, var: Var) -> Lazy<bool> {
        Ok(self.get(var)? != 0)
    }

    pub(crate) fn set(&mut self, var: Var, value: u8) {
        self.values[var.index()] = value;
    }

    pub(crate) fn unset(&mut self, var: Var) {
        self.values[var.index()] = UNKNOWN;
    }

    pub(crate) fn knows(&self, var: Var) -> bool {
        self.values[var.index()] != UNKNOWN
    }

    /// The line of process `p`. It is known from the start.
    pub(crate) fn pc(&self, p: usize) -> Pc {
        Pc::ALL[usize::from(self.values[Var::Pc(p).index()])]
    }

    pub(crate) fn set_pc(&mut self, p: usize, pc: Pc) {
        self.set(Var::Pc(p), pc as u8);
    }

    /// The nodes that a variable with a value names or lies in. The other nodes are
    /// interchangeable.
    pub(crate) fn used(&self, all: &[Var]) -> u16 {
        let mut used = 0;
        for &var in all.iter().filter(|var| self.knows(**var)) {
            used |= var.lies_in().map_or(0, |i| 1 << i);
            if matches!(var.of_type(), Type::Pointer | Type::Node) {
                used |= node(self.values[var.index()]).map_or(0, |i| 1 << i);
            }
        }
        used
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Var::Tail => f.write_str("Tail"),
            Var::Head => f.write_str("Head"),
            Var::Lock => f.write_str("ExitLock"),
            Var::Length => f.write_str("|Q|"),
            Var::Queue(i) => write!(f, "Q{}", i + 1),
            Var::Session(i) => write!(f, "n{i}.session"),
            Var::Next(i) => write!(f, "n{i}.next"),
            Var::Link(i) => write!(f, "n{i}.link"),
            Var::User(i) => write!(f, "n{i}.user"),
            Var::Go(p) => write!(f, "p{p}.go"),
            Var::Pc(p) => write!(f, "p{p}.pc"),
            Var::Asked(p) => write!(f, "p{p}.s"),
            Var::Ready(p) => write!(f, "p{p}.ready"),
            Var::Cool(p) => write!(f, "p{p}.cool"),
            Var::Pred(p) => write!(f, "p{p}.pred"),
            Var::Enabled(p) => write!(f, "p{p}.enabled"),
            Var::Succ(p) => write!(f, "p{p}.succ"),
            Var::Who(p) => write!(f, "p{p}.who"),
            Var::H(p) => write!(f, "p{p}.h"),
            Var::X(p) => write!(f, "p{p}.x"),
            Var::Seen(p) => write!(f, "p{p}.seen"),
        }
    }
}

/// The known values, as text.
pub(crate) fn tell(state: &State, size: Size) -> String {
    let known = Var::all(size).into_iter().filter(|var| state.knows(*var));
    let told = known.map(|var| {
        let value = state.values[var.index()];
        let value = match (var.of_type(), value) {
            (Type::Pc, pc) => format!("{:?}", Pc::ALL[usize::from(pc)]),
            (Type::Pointer | Type::Node, pointer) => match node(pointer) {
                Some(i) => format!("n{i}"),
                None => ["NIL", "GONE", "ENABLED"][usize::from(pointer)].to_owned(),
            },
            (Type::Record, 0) => "NIL".to_owned(),
            (Type::Record, record) => format!("p{}", record - 1),
            (_, value) => value.to_string(),
        };
        format!("{var:?}={value}")
    });
    told.collect::<Vec<_>>().join(" ")
}
