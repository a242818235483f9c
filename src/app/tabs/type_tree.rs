//! Allocation or throw sites of a type as a call tree, from the outermost caller to the allocating or throwing method.

use super::{Cell, Fit, Head, Look, Role, Side, TabList, Table, View};
use crate::analysis::{Counts, SampleCount};
use crate::app::Tab;
use crate::app::call_tree::{TreeRow, short_name};
use crate::app::type_tree::TypeTree;
use crate::model::Percent;

/// Shows the call tree of a tab; `show` formats the weight of its events.
pub(super) fn view<'a>(look: Look<'a>, tab: Tab, stacks: &Counts<'a>, show: fn(u64, Role) -> Cell, head: Vec<Head>) -> View<'a> {
    let all = stacks.samples().all_ns().max(1) as f64;
    let share = move |count: SampleCount| count.all_ns() as f64 / all;
    let rows = look.state.tree_rows(tab, stacks);
    let TabList { list, cursor, selected } = Table::new(rows, |row: &TreeRow<'_>| row.id.to_string())
        .column("SELF", 8, Fit::Right, move |row| match row.node.own.all_ns() {
            0 => Cell::EMPTY,
            own => show(own, Role::Strong),
        })
        .column("TOTAL", 8, Fit::Right, move |row| show(row.node.total.all_ns(), Role::Text))
        .column("SHARE", 6, Fit::Right, move |row| Cell::new(Percent(share(row.node.total)), Role::Text))
        .column("", 12, Fit::Left, move |row| {
            let (own, total) = (share(row.node.own), share(row.node.total));
            Cell::Meter(vec![(own, Role::Events), ((total - own).max(0.0), Role::Bytes)])
        })
        .column("METHOD (CALL TREE)", 0, Fit::Name, |TreeRow { node, branch, .. }| {
            Cell::Node(branch.clone(), short_name(node.name).into(), Role::Text)
        })
        .in_order(look.state, tab);
    let selected = selected.map(|row| row.node.name.to_owned());
    let is_of_type = matches!(look.state.views.of(tab).type_tree, Some(TypeTree::Type(_)));
    let has_events = stacks.samples().all() > 0;
    let empty = if is_of_type && !has_events { "No stacks are distinguished for this type." } else { "No stack was recorded." };
    View {
        head,
        side: selected.clone().map(|name| Side::footer(vec![vec![(name, Role::Accent)]])),
        copy: selected.map(|name| ("method", name)),
        ..View::new(list, cursor, empty)
    }
}
