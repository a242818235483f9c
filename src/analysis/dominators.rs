//! Dominators of a graph: for each node the last one that every path from the roots to it goes through.
//!
//! The algorithm of Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a Flowgraph", 1979) with path compression: O(m log n) for n nodes
//! and m edges, whatever the graph looks like. Nothing is recursive: graphs of a heap have paths of millions of objects.

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// A graph in compressed rows.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Where the targets of each node end; they begin where those of the node before end.
    ends: Vec<u32>,
    targets: Vec<u32>,
}

impl Edges {
    /// Adds a node with its targets. Returns `false` where there are too many to be numbered.
    pub(super) fn push(&mut self, targets: impl Iterator<Item = u32>) -> bool {
        self.targets.extend(targets);
        let end = u32::try_from(self.targets.len()).ok().filter(|_| self.ends.len() < NONE as usize - 1);
        self.ends.extend(end);
        end.is_some()
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.ends.len()
    }

    fn range(&self, node: u32) -> std::ops::Range<u32> {
        let start = if node == 0 { 0 } else { self.ends[node as usize - 1] };
        start..self.ends[node as usize]
    }

    /// What a node refers to.
    pub(super) fn of(&self, node: u32) -> &[u32] {
        let range = self.range(node);
        &self.targets[range.start as usize..range.end as usize]
    }
}

/// The nodes that are reached from roots, in depth-first order, with their dominators.
#[derive(Debug)]
pub(super) struct Dominators {
    /// The node at each place; [`NONE`] at the first, which is the root of all roots.
    pub(super) nodes: Vec<u32>,
    /// The place of the dominator of each place, which is before it.
    pub(super) dominators: Vec<u32>,
    /// The place of each node; [`NONE`] for those that are not reached.
    pub(super) places: Vec<u32>,
}

impl Dominators {
    /// Those of all nodes that are reached from roots. Targets and roots that are no nodes count for nothing.
    pub(super) fn new(edges: &Edges, roots: impl Iterator<Item = u32> + Clone) -> Self {
        let (nodes, places, parents) = depth_first(edges, roots.clone());
        let predecessors = predecessors(edges, roots, &nodes, &places);
        let mut forest = Forest::new(nodes.len());
        let mut dominators = vec![0; nodes.len()];
        // The nodes that each place is the semidominator of, as lists.
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

/// Nodes in depth-first order, the place of each, and the place that each was reached from.
fn depth_first(edges: &Edges, roots: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let (mut nodes, mut parents, mut places) = (vec![NONE], vec![0], vec![NONE; edges.nodes()]);
    // Places, and the number of their next edge.
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

/// The edges turned round, between places.
fn predecessors(edges: &Edges, roots: impl Iterator<Item = u32> + Clone, nodes: &[u32], places: &[u32]) -> Edges {
    let place = |node: u32| places.get(node as usize).copied().filter(|place| *place != NONE);
    let all = || {
        let of_roots = roots.clone().filter_map(place).map(|place| (0, place));
        let targets =
            |(from, node): (usize, &u32)| edges.of(*node).iter().filter_map(|target| place(*target)).map(move |to| (from as u32, to));
        of_roots.chain(nodes.iter().enumerate().skip(1).flat_map(targets)).filter(|(from, to)| from != to)
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
    // Each now is where the next of its own goes, and in the end where they end.
    let mut targets = vec![0; sum as usize];
    for (from, to) in all() {
        let at = &mut ends[to as usize];
        targets[*at as usize] = from;
        *at += 1;
    }
    Edges { ends, targets }
}

/// The trees of places that were dealt with.
struct Forest {
    semi: Vec<u32>,
    /// Of all between a place and the root of its tree, the one with the least semidominator, as far as is known.
    label: Vec<u32>,
    ancestor: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    fn new(len: usize) -> Self {
        let all: Vec<u32> = (0..len as u32).collect();
        Self { semi: all.clone(), label: all, ancestor: vec![NONE; len], path: Vec::new() }
    }

    /// Of a place and all between it and the root of its tree, the one with the least semidominator.
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
