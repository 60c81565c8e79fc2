//! Doubly linked lists whose nodes share one vector.
//!
//! Removed nodes are used again, so a queue that was long once allocates nothing more.

use std::ops::{Index, IndexMut};

/// The index of a node. It is valid until the node is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// The nodes of any number of lists.
pub(super) struct Arena<T> {
    nodes: Vec<Node<T>>,
    /// The first node that is not in use. Each of them links to the next.
    free: Option<NodeId>,
}

struct Node<T> {
    /// `None` while the node is not in use.
    value: Option<T>,
    previous: Option<NodeId>,
    next: Option<NodeId>,
}

/// One list in an [`Arena`]. Only that arena can reach its nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: Option<NodeId>,
    last: Option<NodeId>,
    len: usize,
}

impl List {
    pub(super) const fn first(self) -> Option<NodeId> {
        self.first
    }

    pub(super) const fn last(self) -> Option<NodeId> {
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
    pub(super) fn insert(&mut self, list: &mut List, previous: Option<NodeId>, value: T) -> NodeId {
        let next = match previous {
            Some(previous) => self.node(previous).next,
            None => list.first,
        };
        let node = Node { value: Some(value), previous, next };
        let id = if let Some(id) = self.free {
            self.free = self.node(id).next;
            *self.node_mut(id) = node;
            id
        } else {
            let id = NodeId(u32::try_from(self.nodes.len()).expect("memory is smaller than that"));
            self.nodes.push(node);
            id
        };
        *self.link_after(list, previous) = Some(id);
        *self.link_before(list, next) = Some(id);
        list.len += 1;
        id
    }

    /// Removes a node from `list`.
    ///
    /// # Panics
    /// If there is no such node.
    pub(super) fn remove(&mut self, list: &mut List, id: NodeId) -> T {
        let node = self.node_mut(id);
        let value = node.value.take().expect("the node is in use");
        let (previous, next) = (node.previous, node.next);
        *self.link_after(list, previous) = next;
        *self.link_before(list, next) = previous;
        list.len -= 1;
        let free = self.free.replace(id);
        self.node_mut(id).next = free;
        value
    }

    pub(super) fn previous(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).previous
    }

    pub(super) fn next(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).next
    }

    /// The values of `list`, in order.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = &T> {
        std::iter::successors(list.first, |id| self.next(*id)).map(|id| &self[id])
    }

    /// The link that leads from the node `id` forwards, or from the start of `list` if there is
    /// none.
    fn link_after<'a>(
        &'a mut self,
        list: &'a mut List,
        id: Option<NodeId>,
    ) -> &'a mut Option<NodeId> {
        match id {
            Some(id) => &mut self.node_mut(id).next,
            None => &mut list.first,
        }
    }

    /// The link that leads from the node `id` backwards, or from the end of `list` if there is
    /// none.
    fn link_before<'a>(
        &'a mut self,
        list: &'a mut List,
        id: Option<NodeId>,
    ) -> &'a mut Option<NodeId> {
        match id {
            Some(id) => &mut self.node_mut(id).previous,
            None => &mut list.last,
        }
    }

    fn node(&self, id: NodeId) -> &Node<T> {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node<T> {
        &mut self.nodes[id.0 as usize]
    }
}

impl<T> Index<NodeId> for Arena<T> {
    type Output = T;

    fn index(&self, id: NodeId) -> &T {
        self.node(id).value.as_ref().expect("the node is in use")
    }
}

impl<T> IndexMut<NodeId> for Arena<T> {
    fn index_mut(&mut self, id: NodeId) -> &mut T {
        self.node_mut(id).value.as_mut().expect("the node is in use")
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
