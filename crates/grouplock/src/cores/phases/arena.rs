//! Doubly linked lists whose nodes share one vector.
//!
//! Removed nodes are used again, so a queue that was long once allocates nothing more.

use std::ops::{Index, IndexMut};

/// The index of a node. It is valid until the node is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

/// The nodes of any number of lists.
pub(super) struct Arena<T> {
    nodes: Vec<Node<T>>,
    /// The first node that is not in use. Each of them links to the next.
    free: Option<Slot>,
}

struct Node<T> {
    /// `None` while the node is not in use.
    value: Option<T>,
    previous: Option<Slot>,
    next: Option<Slot>,
}

/// One list in an [`Arena`]. Only that arena can reach its nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: Option<Slot>,
    last: Option<Slot>,
    len: usize,
}

impl List {
    pub(super) const fn first(self) -> Option<Slot> {
        self.first
    }

    pub(super) const fn last(self) -> Option<Slot> {
        self.last
    }

    pub(super) const fn len(self) -> usize {
        self.len
    }
}

impl<T> Arena<T> {
    pub(super) const fn new() -> Self {
        Arena { nodes: Vec::new(), free: None }
    }

    /// Puts `value` behind the node `previous` of `list`, or at its front.
    ///
    /// # Panics
    /// If 2^32 nodes are in use.
    pub(super) fn insert(&mut self, list: &mut List, previous: Option<Slot>, value: T) -> Slot {
        let next = match previous {
            Some(previous) => self.node(previous).next,
            None => list.first,
        };
        let node = Node { value: Some(value), previous, next };
        let slot = if let Some(slot) = self.free {
            self.free = self.node(slot).next;
            *self.node_mut(slot) = node;
            slot
        } else {
            let slot = Slot(u32::try_from(self.nodes.len()).expect("memory is smaller than that"));
            self.nodes.push(node);
            slot
        };
        *self.link_after(list, previous) = Some(slot);
        *self.link_before(list, next) = Some(slot);
        list.len += 1;
        slot
    }

    /// Removes a node from `list`.
    ///
    /// # Panics
    /// If there is no such node.
    pub(super) fn remove(&mut self, list: &mut List, slot: Slot) -> T {
        let node = self.node_mut(slot);
        let value = node.value.take().expect("the node is in use");
        let (previous, next) = (node.previous, node.next);
        *self.link_after(list, previous) = next;
        *self.link_before(list, next) = previous;
        list.len -= 1;
        let free = self.free.replace(slot);
        self.node_mut(slot).next = free;
        value
    }

    pub(super) fn previous(&self, slot: Slot) -> Option<Slot> {
        self.node(slot).previous
    }

    pub(super) fn next(&self, slot: Slot) -> Option<Slot> {
        self.node(slot).next
    }

    /// The values of `list`, in order.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = &T> {
        std::iter::successors(list.first, |slot| self.next(*slot)).map(|slot| &self[slot])
    }

    /// The link that leads from `slot` forwards, or from the start of `list` if there is no `slot`.
    fn link_after<'a>(
        &'a mut self,
        list: &'a mut List,
        slot: Option<Slot>,
    ) -> &'a mut Option<Slot> {
        match slot {
            Some(slot) => &mut self.node_mut(slot).next,
            None => &mut list.first,
        }
    }

    /// The link that leads from `slot` backwards, or from the end of `list` if there is no `slot`.
    fn link_before<'a>(
        &'a mut self,
        list: &'a mut List,
        slot: Option<Slot>,
    ) -> &'a mut Option<Slot> {
        match slot {
            Some(slot) => &mut self.node_mut(slot).previous,
            None => &mut list.last,
        }
    }

    fn node(&self, slot: Slot) -> &Node<T> {
        &self.nodes[slot.0 as usize]
    }

    fn node_mut(&mut self, slot: Slot) -> &mut Node<T> {
        &mut self.nodes[slot.0 as usize]
    }
}

impl<T> Index<Slot> for Arena<T> {
    type Output = T;

    fn index(&self, slot: Slot) -> &T {
        self.node(slot).value.as_ref().expect("the node is in use")
    }
}

impl<T> IndexMut<Slot> for Arena<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        self.node_mut(slot).value.as_mut().expect("the node is in use")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Arena, List};

    fn values(arena: &Arena<u32>, list: List) -> Vec<u32> {
        arena.iter(list).copied().collect()
    }

    #[test]
    fn values_come_in_the_order_of_the_list() {
        let (mut arena, mut list) = (Arena::new(), List::default());
        let two = arena.insert(&mut list, None, 2);
        let four = arena.insert(&mut list, Some(two), 4);
        arena.insert(&mut list, Some(two), 3);
        arena.insert(&mut list, None, 1);
        assert_eq!(values(&arena, list), [1, 2, 3, 4]);
        assert_eq!((list.len(), list.last()), (4, Some(four)));
        assert_eq!(arena.remove(&mut list, two), 2);
        assert_eq!(arena.remove(&mut list, four), 4);
        assert_eq!(values(&arena, list), [1, 3]);
        assert_eq!(list.last(), arena.next(list.first().expect("there is one")));
    }

    #[test]
    fn two_lists_share_the_nodes_and_nodes_are_used_again() {
        let mut arena = Arena::new();
        let (mut odd, mut even) = (List::default(), List::default());
        for number in 0..1000 {
            let list = if number % 2 == 0 { &mut even } else { &mut odd };
            let last = list.last();
            arena.insert(list, last, number);
            if let Some(first) = list.first().filter(|_| list.len() > 3) {
                arena.remove(list, first);
            }
        }
        assert_eq!(values(&arena, odd), [995, 997, 999]);
        assert_eq!(values(&arena, even), [994, 996, 998]);
        assert!(arena.nodes.len() <= 7, "{} nodes", arena.nodes.len());
    }
}
