//! The table order as a tree: children below their parents, processes of one container together.

use foldhash::{HashMap, HashSet};

use super::Row;

/// Arranges sorted rows as a tree and sets the depth of each. Siblings keep their order. A process whose parent is not among the rows is a
/// root; roots of one container are adjacent.
pub(super) fn order(rows: &mut [Row], sorted: &[usize]) -> Vec<usize> {
    let pids: HashSet<u32> = sorted.iter().map(|&index| rows[index].process.key.pid).collect();
    let mut children: HashMap<u32, Vec<usize>> = HashMap::default();
    let mut roots = Vec::new();
    for &index in sorted {
        let process = &rows[index].process;
        match process.parent.filter(|parent| *parent != process.key.pid && pids.contains(parent)) {
            Some(parent) => children.entry(parent).or_default().push(index),
            None => roots.push(index),
        }
    }
    let mut first_of_container = HashMap::default();
    let mut placed: Vec<_> = roots
        .into_iter()
        .enumerate()
        .map(|(place, index)| {
            let container = rows[index].process.container.as_ref();
            (container.map_or(place, |container| *first_of_container.entry(container).or_insert(place)), place, index)
        })
        .collect();
    placed.sort_unstable();
    let mut ordered = Vec::with_capacity(sorted.len());
    let mut pending: Vec<(usize, usize)> = placed.into_iter().rev().map(|(_, _, index)| (index, 0)).collect();
    while let Some((index, depth)) = pending.pop() {
        rows[index].depth = depth;
        ordered.push(index);
        let below = children.remove(&rows[index].process.key.pid).unwrap_or_default();
        pending.extend(below.into_iter().rev().map(|child| (child, depth + 1)));
    }
    // Cycles of parents: they were read at different times, between which a PID was reused.
    let rest: HashSet<usize> = children.into_values().flatten().collect();
    for &index in sorted.iter().filter(|index| rest.contains(*index)) {
        rows[index].depth = 0;
        ordered.push(index);
    }
    ordered
}
