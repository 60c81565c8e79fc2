//! The Black-White Bakery exactly as in our copy of Figure 3 of He, Gopalakrishnan and Gafni 2018,
//! except for j = i: there a process of the figure would wait for itself.

use grouplock_algorithms::claims::Claims;
use grouplock_algorithms::memory::Ordering::SeqCst;
use grouplock_algorithms::memory::{Memory, Register, Site, Word};
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::slots::Slots;
use grouplock_algorithms::{CapacityError, black_white_bakery::BlackWhiteBakery};

#[derive(Debug)]
pub(crate) struct Figure3<M: Memory> {
    global_color: M::Register<bool>,
    choosing: Vec<M::Register<bool>>,
    color: Vec<M::Register<bool>>,
    number: Vec<M::Register<u64>>,
    slots: Slots<usize>,
}

impl<M: Memory> RawMutex<M> for Figure3<M> {
    type Process = usize;

    fn claims() -> Claims {
        Claims { name: "figure-3", ..BlackWhiteBakery::<M>::claims() }
    }

    fn new(n: usize) -> Result<Self, CapacityError> {
        let bits = |name| (0..n).map(move |i| M::Register::new(Site::per_process(name, i), false));
        Ok(Figure3 {
            global_color: M::Register::new(Site::shared("GlobalColor"), false),
            choosing: bits("Choosing").collect(),
            color: bits("Token.color").collect(),
            number: (0..n)
                .map(|i| M::Register::new(Site::per_process("Token.number", i), 0))
                .collect(),
            slots: Slots::new(n, usize::MAX, |i| i)?,
        })
    }

    fn join(&self) -> Result<usize, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: usize) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, i: &mut usize) {
        let (i, n) = (*i, self.number.len());
        self.choosing[i].write(true, SeqCst); // 3
        let mycolor = self.global_color.read(SeqCst); // 4
        self.color[i].write(mycolor, SeqCst); // 4
        let same = (0..n).filter(|j| self.color[*j].read(SeqCst) == mycolor); // 5
        let mynumber = 1 + same.map(|j| self.number[j].read(SeqCst)).max().unwrap_or(0); // 5
        self.number[i].write(mynumber, SeqCst); // 5
        self.choosing[i].write(false, SeqCst); // 6
        M::doorway_end();
        for j in (0..n).filter(|j| *j != i) {
            M::await_until(|| !self.choosing[j].read(SeqCst)); // 8
            if self.color[j].read(SeqCst) == mycolor {
                // 9
                M::await_until(|| {
                    let theirs = self.number[j].read(SeqCst);
                    (mynumber, i) < (theirs, j) // 11
                        || self.color[j].read(SeqCst) != mycolor // 12
                        || theirs == 0 // 13
                });
            }
        }
    }

    unsafe fn release(&self, i: &mut usize) {
        let mycolor = self.color[*i].read(SeqCst); // 17
        self.global_color.write(!mycolor, SeqCst); // 18-20
        self.number[*i].write(0, SeqCst); // 22
    }

    fn inspect(me: &usize, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", Word::Number(*me as u64));
    }
}
