//! Parts of a graph in which each place leads to all others.

/// A place in the graph: a state and an order. It is the number of the state, times the number of
/// orders, plus the order.
pub type Pair = u32;

/// Calls `each` with every strongly connected component of the pairs that `through` allows, and
/// with a test for membership in it, until `each` stops it. This is Tarjan's algorithm without
/// recursion. `next` returns the steps from a pair, one at a time: the first step at or after a
/// number, the number after it, and its target.
pub fn components(
    pairs: usize,
    through: impl Fn(Pair) -> bool,
    next: impl Fn(Pair, usize) -> Option<(usize, Pair)>,
    mut each: impl FnMut(&[Pair], &dyn Fn(Pair) -> bool) -> bool,
) {
    const NONE: u32 = u32::MAX;
    let mut index = vec![NONE; pairs];
    let mut low = vec![0; pairs];
    let mut component = vec![NONE; pairs];
    let (mut stack, mut found, mut count) = (Vec::new(), 0, 0);
    let mut calls: Vec<(Pair, usize)> = Vec::new();
    for root in (0..pairs as Pair).filter(|&root| through(root)) {
        if index[root as usize] != NONE {
            continue;
        }
        let mut entered = Some(root);
        loop {
            if let Some(pair) = entered.take() {
                index[pair as usize] = count;
                low[pair as usize] = count;
                count += 1;
                stack.push(pair);
                calls.push((pair, 0));
            }
            let Some((pair, at)) = calls.last_mut() else { break };
            let here = *pair as usize;
            if let Some((after, to)) = next(*pair, *at) {
                *at = after;
                if !through(to) || component[to as usize] != NONE {
                    continue;
                }
                if index[to as usize] == NONE {
                    entered = Some(to);
                } else {
                    low[here] = low[here].min(index[to as usize]);
                }
                continue;
            }
            calls.pop();
            if let Some(&(caller, _)) = calls.last() {
                low[caller as usize] = low[caller as usize].min(low[here]);
            }
            if low[here] == index[here] {
                let is_here = |&pair: &Pair| pair as usize == here;
                let begin = stack.iter().rposition(is_here).expect("it is on the stack");
                stack[begin..].iter().for_each(|&pair| component[pair as usize] = found);
                if each(&stack[begin..], &|pair| component[pair as usize] == found) {
                    return;
                }
                stack.truncate(begin);
                found += 1;
            }
        }
    }
}
