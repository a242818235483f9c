//! The rows of a call tree: which are expanded, and the lines that connect callers and callees.
//!
//! A method that is its caller's only callee is placed directly below it without indentation: only siblings are indented. Rows are identified by
//! their path of names, because node numbers differ between snapshots.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Shape, State, Tab};
use crate::analysis::{CallNode, Counts, Origin, SampleCount};

/// Maximum number of nodes listed.
pub(super) const MAX_NODES: usize = 1000;

/// Rows explicitly expanded (true) or collapsed (false) by the user.
pub(super) type Expanded = BTreeMap<RowId, bool>;

/// Identity of a row: a hash of its path of names. The paths themselves would need much memory: names and stacks can be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct RowId(u64);

impl RowId {
    fn child(self, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.0, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The tree lines in front of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branch {
    /// For each ancestor branch: whether its line continues.
    pub above: Vec<bool>,
    /// Whether this is the last of several siblings; `None` for an only child.
    pub last: Option<bool>,
    /// Whether the row is expanded; `None` for a leaf.
    pub expanded: Option<bool>,
}

#[derive(Debug, Clone)]
pub(super) struct TreeRow<'a> {
    pub(super) node: CallNode<'a>,
    pub(super) id: RowId,
    pub(super) branch: Branch,
}

/// State of an ancestor row while rows are laid out.
struct Level {
    id: RowId,
    branch: Branch,
    children: usize,
    seen: usize,
    is_heaviest: bool,
}

/// Returns the visible rows of a tree. By default, the heaviest path is expanded, and so is every row that is an only child.
pub(super) fn rows<'a>(nodes: Vec<CallNode<'a>>, expanded: &Expanded) -> Vec<TreeRow<'a>> {
    let mut children = vec![0; nodes.len()];
    let mut open: Vec<usize> = Vec::new();
    let mut roots = 0;
    for (index, node) in nodes.iter().enumerate() {
        open.truncate(node.depth);
        match open.last() {
            Some(parent) => children[*parent] += 1,
            None => roots += 1,
        }
        open.push(index);
    }
    let top = Level {
        id: RowId::default(),
        branch: Branch { expanded: Some(true), ..Branch::default() },
        children: roots,
        seen: 0,
        is_heaviest: true,
    };
    let mut levels = vec![top];
    let mut rows = Vec::new();
    for (node, children) in nodes.into_iter().zip(children) {
        levels.truncate(node.depth + 1);
        let is_top = node.depth == 0;
        // Below a collapsed row, no level has been pushed for the parent.
        let is_shown = levels.len() == node.depth + 1;
        let Some(parent) = levels.last_mut().filter(|_| is_shown) else { continue };
        parent.seen += 1;
        let is_only = parent.children == 1;
        let id = parent.id.child(node.name);
        let mut above = parent.branch.above.clone();
        above.extend(parent.branch.last.filter(|_| !is_top).map(|last| !last));
        let is_heaviest = parent.is_heaviest && parent.seen == 1;
        let by_itself = is_heaviest || (is_only && !is_top);
        let branch = Branch {
            above,
            last: (!is_only).then_some(parent.seen == parent.children),
            expanded: (children > 0).then(|| expanded.get(&id).copied().unwrap_or(by_itself)),
        };
        rows.push(TreeRow { node, id, branch: branch.clone() });
        if branch.expanded == Some(true) {
            levels.push(Level { id, branch, children, seen: 0, is_heaviest });
        }
    }
    rows
}

/// Shortens a function name for a row: a managed method without its namespace, any other function with a prefix for its origin.
pub(super) fn short_label(origin: Origin, name: &str) -> String {
    // In other functions' names, dots are added by compilers: `pick_next_task.isra.0`.
    if origin == Origin::Managed { short_name(name).to_owned() } else { origin.label(name) }
}

/// Returns a method name without its namespace: `Type.Method`.
pub(super) fn short_name(name: &str) -> &str {
    let end = name.find(['(', '<', '[', '!', ' ']).unwrap_or(name.len());
    // A constructor's method name begins with a dot.
    let Some(method) = name[..end].rfind('.').map(|dot| name[..dot].trim_end_matches('.').len()) else { return name };
    name[..method].rfind('.').map_or(name, |dot| &name[dot + 1..])
}

impl State {
    /// Returns the call tree rows of a tab from what it counts: samples, allocations or exceptions.
    pub(super) fn tree_rows<'a>(&self, tab: Tab, counts: &Counts<'a>) -> Vec<TreeRow<'a>> {
        let nodes = if tab == Tab::Methods { self.call_tree(counts) } else { counts.call_tree(SampleCount::all_ns, MAX_NODES) };
        rows(nodes, &self.views.of(tab).expanded)
    }

    /// Whether methods are shown as a call tree.
    pub(in crate::app) fn is_tree(&self) -> bool {
        matches!(self.views.sampling.shape, Shape::Tree | Shape::Callers) && self.has_samples()
    }

    /// Returns the index of the selected row, and all rows.
    fn selected_row(&self) -> Option<(usize, Vec<TreeRow<'_>>)> {
        let counts = if self.tab == Tab::Methods { self.samples() } else { self.type_stacks(self.tab) };
        let rows = self.tree_rows(self.tab, &counts?);
        let at = self.views.selected(self.tab, rows.len(), |row| rows[row].id.to_string()).at;
        (at < rows.len()).then_some((at, rows))
    }

    fn expand(&mut self, row: RowId, expanded: bool) {
        // Keep the current selection.
        self.pin_selection(self.tab);
        self.views.of_mut(self.tab).expanded.insert(row, expanded);
    }

    /// Expands or collapses the selected row.
    pub(in crate::app) fn toggle_row(&mut self) {
        let toggled = self.selected_row().and_then(|(at, rows)| Some((rows[at].id, !rows[at].branch.expanded?)));
        if let Some((row, expanded)) = toggled {
            self.expand(row, expanded);
        }
    }

    /// Expands the selected row, or moves to its first child if it is already expanded.
    pub(in crate::app) fn step_into_row(&mut self) {
        let Some((at, rows)) = self.selected_row() else { return };
        match rows[at].branch.expanded {
            Some(false) => self.expand(rows[at].id, true),
            Some(true) => self.views.select(self.tab, rows[at + 1].id.to_string()),
            None => {}
        }
    }

    /// Collapses the selected row, or moves to its caller if it is already collapsed.
    pub(in crate::app) fn step_out_of_row(&mut self) {
        let Some((at, rows)) = self.selected_row() else { return };
        let row = &rows[at];
        if row.branch.expanded == Some(true) {
            self.expand(row.id, false);
        } else if let Some(caller) = rows[..at].iter().rev().find(|above| above.node.depth < row.node.depth) {
            self.views.select(self.tab, caller.id.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Vec<CallNode<'_>> {
        fn node(word: &str) -> CallNode<'_> {
            let name = word.trim_start_matches('-');
            let count = SampleCount::default();
            CallNode { name, frame: 0, depth: word.len() - name.len(), origin: Origin::Managed, own: count, total: count }
        }
        text.split_whitespace().map(node).collect()
    }

    fn drawn(text: &str, changed: &[(&str, bool)]) -> Vec<String> {
        let row = |path: &str| path.split('/').skip(1).fold(RowId::default(), RowId::child);
        let expanded = changed.iter().map(|(path, expanded)| (row(path), *expanded)).collect();
        let line = |row: TreeRow<'_>| {
            let above: String = row.branch.above.iter().map(|goes_on| if *goes_on { "| " } else { "  " }).collect();
            let own = row.branch.last.map_or("", |last| if last { "`-" } else { "|-" });
            let sign = row.branch.expanded.map_or("  ", |expanded| if expanded { "v " } else { "> " });
            format!("{above}{own}{sign}{}", row.node.name)
        };
        rows(tree(text), &expanded).into_iter().map(line).collect()
    }

    #[test]
    fn heaviest_path_is_expanded_and_only_branches_are_indented() {
        let all = "a -b --c ---d ---e ----f -----g --h ---i x -y";
        assert_eq!(drawn(all, &[]), ["|-v a", "| v b", "| |-v c", "| | |-  d", "| | `-> e", "| `-> h", "`-> x"]);
        // An only child is expanded together with its caller.
        assert_eq!(
            drawn(all, &[("/a/b/c/e", true), ("/a/b/h", true), ("/x", true)]),
            ["|-v a", "| v b", "| |-v c", "| | |-  d", "| | `-v e", "| |   v f", "| |     g", "| `-v h", "|     i", "`-v x", "    y"]
        );
        assert_eq!(drawn(all, &[("/a", false)]), ["|-> a", "`-> x"]);
        assert_eq!(drawn(all, &[("/a/b", false), ("/x", false)]), ["|-v a", "| > b", "`-> x"]);
        assert_eq!(drawn("a -b --c", &[]), ["v a", "v b", "  c"]);
        assert_eq!(drawn("", &[]), [""; 0]);
    }

    /// Names and depth are chosen by the target.
    #[test]
    fn long_names_and_deep_stacks_need_little_memory() {
        let name = "N".repeat(10_000);
        let count = SampleCount::default();
        let nodes = (0..1000).map(|depth| CallNode { name: &name, frame: 0, depth, origin: Origin::Managed, own: count, total: count });
        let rows = rows(nodes.collect(), &Expanded::default());
        let ids: std::collections::BTreeSet<_> = rows.iter().map(|row| row.id.to_string()).collect();
        assert_eq!((rows.len(), ids.len()), (1000, 1000), "each call of a recursion is a row of its own");
        assert!(ids.iter().all(|id| id.len() == 16));
        assert!(rows.iter().all(|row| row.node.name.as_ptr() == name.as_ptr()));
    }

    #[test]
    fn namespaces_are_removed_from_method_names() {
        for (name, short) in [
            ("Shop.Api.OrdersController.Create", "OrdersController.Create"),
            ("Shop.Order..ctor", "Order..ctor"),
            ("Program.Main", "Program.Main"),
            ("Main", "Main"),
            ("..ctor", "..ctor"),
            ("libcoreclr.so!a.b.c", "libcoreclr.so!a.b.c"),
            ("A.B.C.D(System.String)", "C.D(System.String)"),
            ("0x9000", "0x9000"),
            ("", ""),
        ] {
            assert_eq!(short_name(name), short);
        }
        assert_eq!(short_label(Origin::Managed, "Shop.Orders.Ship"), "Orders.Ship");
        assert_eq!(short_label(Origin::Kernel, "pick_next_task.isra.0"), "[k] pick_next_task.isra.0");
    }
}
