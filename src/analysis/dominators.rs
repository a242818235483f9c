//! Dominators of a graph: for each node, the last node that lies on every path from the roots to it.
//!
//! Uses the algorithm of Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a Flowgraph", 1979) with path compression: O(m log
//! n) for n nodes and m edges, for any graph. Nothing is recursive, as heap graphs have paths of millions of objects.

/// Represents the absence of a node.
pub(super) const NONE: u32 = u32::MAX;

/// A graph in compressed sparse row format.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// End of the targets of each node; they start at the end of the previous node's targets.
    ends: Vec<u32>,
    targets: Vec<u32>,
}

impl Edges {
    /// Adds a node with its targets. Returns `false` if the numbers do not fit in 32 bits.
    pub(super) fn push(&mut self, targets: impl Iterator<Item = u32>) -> bool {
        self.targets.extend(targets);
        let end = u32::try_from(self.targets.len()).ok().filter(|_| self.ends.len() < NONE as usize - 1);
        self.ends.extend(end);
        end.is_some()
    }

    /// Returns the number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.ends.len()
    }

    fn range(&self, node: u32) -> std::ops::Range<u32> {
        let start = if node == 0 { 0 } else { self.ends[node as usize - 1] };
        start..self.ends[node as usize]
    }

    /// Returns the targets of a node.
    pub(super) fn of(&self, node: u32) -> &[u32] {
        let range = self.range(node);
        &self.targets[range.start as usize..range.end as usize]
    }
}

/// The nodes reachable from the roots in depth-first order, with their dominators.
#[derive(Debug)]
pub(super) struct Dominators {
    /// Node at each position; [`NONE`] at the first, which is the virtual root above all roots.
    pub(super) nodes: Vec<u32>,
    /// Position of the dominator of each position, which is always an earlier one.
    pub(super) dominators: Vec<u32>,
    /// Position of each node; [`NONE`] if unreachable.
    pub(super) places: Vec<u32>,
}

impl Dominators {
    /// Computes the dominators of all nodes reachable from the roots. Targets and roots that are not nodes are ignored.
    pub(super) fn new(edges: &Edges, roots: impl Iterator<Item = u32> + Clone) -> Self {
        let (nodes, places, parents) = depth_first(edges, roots.clone());
        let predecessors = predecessors(edges, roots, &nodes, &places);
        let mut forest = Forest::new(nodes.len());
        let mut dominators = vec![0; nodes.len()];
        // The nodes whose semidominator is at each position, as linked lists.
        let (mut first, mut next) = (vec![NONE; nodes.len()], vec![NONE; nodes.len()]);
        for at in (1..nodes.len() as u32).rev() {
            for predecessor in predecessors.of(at) {
                let best = forest.best(*predecessor);
                forest.semi[at as usize] = forest.semi[at as usize].min(forest.semi[best as usize]);
            }
            let semi = forest.semi[at as usize];
            next[at as usize] = std::mem::replace(&mut first[semi as usize], at);
            let parent = parents[at as usize];
            forest.ancestor[at as usize] = parent;
            let mut waiting = std::mem::replace(&mut first[parent as usize], NONE);
            while waiting != NONE {
                let best = forest.best(waiting);
                let is_parent = forest.semi[best as usize] >= forest.semi[waiting as usize];
                dominators[waiting as usize] = if is_parent { parent } else { best };
                waiting = next[waiting as usize];
            }
        }
        for at in 1..nodes.len() {
            if dominators[at] != forest.semi[at] {
                dominators[at] = dominators[dominators[at] as usize];
            }
        }
        Self { nodes, dominators, places }
    }
}

/// Returns the nodes in depth-first order, the position of each node, and the parent of each position.
fn depth_first(edges: &Edges, roots: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let (mut nodes, mut parents, mut places) = (vec![NONE], vec![0], vec![NONE; edges.nodes()]);
    // Positions, each with the index of its next edge.
    let mut stack = Vec::new();
    let mut visit = |node: u32, from: u32, stack: &mut Vec<(u32, u32)>, nodes: &mut Vec<u32>| {
        if let Some(place) = places.get_mut(node as usize).filter(|place| **place == NONE) {
            *place = nodes.len() as u32;
            stack.push((*place, edges.range(node).start));
            nodes.push(node);
            parents.push(from);
        }
    };
    for root in roots {
        visit(root, 0, &mut stack, &mut nodes);
        while let Some((place, edge)) = stack.last_mut() {
            if *edge < edges.range(nodes[*place as usize]).end {
                let (from, target) = (*place, edges.targets[*edge as usize]);
                *edge += 1;
                visit(target, from, &mut stack, &mut nodes);
            } else {
                stack.pop();
            }
        }
    }
    (nodes, places, parents)
}

/// Returns the reversed edges, between positions.
fn predecessors(edges: &Edges, roots: impl Iterator<Item = u32> + Clone, nodes: &[u32], places: &[u32]) -> Edges {
    let place = |node: u32| places.get(node as usize).copied().filter(|place| *place != NONE);
    let all = || {
        let of_roots = roots.clone().filter_map(place).map(|place| (0, place));
        let targets =
            |(from, node): (usize, &u32)| edges.of(*node).iter().filter_map(|target| place(*target)).map(move |to| (from as u32, to));
        of_roots.chain(nodes.iter().enumerate().skip(1).flat_map(targets))
    };
    let mut ends = vec![0_u32; nodes.len()];
    for (_, to) in all() {
        ends[to as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum - *end;
    }
    // Each value is now the insertion index for its position, and ends up as the end of its range.
    let mut targets = vec![0; sum as usize];
    for (from, to) in all() {
        let at = &mut ends[to as usize];
        targets[*at as usize] = from;
        *at += 1;
    }
    Edges { ends, targets }
}

/// The forest of processed positions.
struct Forest {
    semi: Vec<u32>,
    /// For each position, the one with the smallest semidominator on its compressed path towards the root of its tree.
    label: Vec<u32>,
    ancestor: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    fn new(len: usize) -> Self {
        let all: Vec<u32> = (0..len as u32).collect();
        Self { semi: all.clone(), label: all, ancestor: vec![NONE; len], path: Vec::new() }
    }

    /// Returns the position with the smallest semidominator on the path from this position to below the root of its tree.
    fn best(&mut self, place: u32) -> u32 {
        let Self { semi, label, ancestor, path } = self;
        if ancestor[place as usize] == NONE {
            return place;
        }
        let mut at = place;
        while ancestor[ancestor[at as usize] as usize] != NONE {
            path.push(at);
            at = ancestor[at as usize];
        }
        while let Some(below) = path.pop() {
            let above = ancestor[below as usize];
            let (best, own) = (label[above as usize], label[below as usize]);
            if semi[best as usize] < semi[own as usize] {
                label[below as usize] = best;
            }
            ancestor[below as usize] = ancestor[above as usize];
        }
        label[place as usize]
    }
}
