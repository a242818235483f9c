//! Where threads spend their time: methods as a list, or as a call tree.

use ratatui::layout::Rect;

use crate::analysis::{CallNode, MethodTime, MethodsSnapshot, SampleCount};
use crate::app::{Source, Tab};
use crate::model::{Count, Nanoseconds, Percent};

use super::super::canvas::Canvas;
use super::grid::{Column, Grid, number, text};
use super::panel::{figures, meter};
use super::{Look, below, filter, nothing};

/// Own time, and that of everything below, as numbers and as a bar.
const SHARES: [Column; 3] = [number("OWN", 6), number("ALL", 6), text("", 12)];

/// Draws methods. Says where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let methods = &look.findings.methods;
    let samples = methods.samples;
    if samples.all() == 0 {
        nothing(canvas, look, Source::Samples, "No sample so far.", area);
        return None;
    }
    let share = |count: u64| Percent(count as f64 / samples.all() as f64).to_string();
    let mut top = vec![("samples", Count(samples.all()).to_string(), theme.strong)];
    if are_told_apart(methods) {
        top.extend([("running", share(samples.running), theme.strong), ("waiting", share(samples.waiting), theme.text)]);
    }
    if methods.unresolved > 0 {
        top.push(("without a name", share(methods.unresolved), theme.warn));
    }
    top.push(("threads", methods.threads.len().to_string(), theme.text));
    if let Some(interval) = methods.interval_ns {
        top.push(("each", Nanoseconds(interval).to_string(), theme.text));
    }
    let (head, cursor) = filter(canvas, look.state, area);
    let used = figures(canvas, head, &top);
    let area = below(area, used);
    let (what, style) = match (are_told_apart(methods), look.state.views.waiting) {
        (true, true) => ("thread time, waiting included (w: running only)", theme.dim),
        (true, false) => ("thread time of threads that run (w: waiting, too)", theme.dim),
        // Who waits is told by the name of the method that it is in.
        (false, _) if look.over() => ("thread time: many names did not come, so that threads that wait seem to run", theme.warn),
        (false, _) => ("thread time: threads that wait seem to run until names come, with the rundown at the stop (t)", theme.warn),
    };
    canvas.text(area.x, area.y, area.width, what, style);
    let area = below(area, 1);
    if look.state.views.tree {
        tree(canvas, look, area);
    } else {
        list(canvas, look, area);
    }
    cursor
}

/// Whether enough methods are known by name to tell threads that wait from those that run.
pub(super) fn are_told_apart(methods: &MethodsSnapshot) -> bool {
    methods.unresolved.saturating_mul(10) <= methods.samples.all()
}

/// What to say of a method whose name is not known.
pub(super) fn unknown(look: &Look<'_>) -> &'static str {
    if look.over() { "(its name did not come)" } else { "(names come with the rundown)" }
}

fn list(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let methods = look.state.methods();
    if methods.is_empty() {
        let text =
            if look.state.views.filter.value().is_empty() { "All threads wait: w shows where." } else { "No method matches the filter." };
        canvas.text(area.x, area.y, area.width, text, theme.dim);
        return;
    }
    let [own, all, bar] = SHARES;
    let grid = Grid::new(canvas, area, &[own, all, bar, text("METHOD", 0), text("MODULE", 22), text("TIER", 8)]);
    sorted(canvas, &grid, area.y, if look.state.views.by_total { "ALL" } else { "OWN" });
    let cursor = look.state.view_cursor(Tab::Methods);
    let lines = grid.lines();
    for (method, y) in methods[grid.window(cursor, methods.len())].iter().zip(lines.y..lines.bottom()) {
        shares(canvas, look, &grid, y, method.own, method.total);
        let MethodTime { name, module, tiers, .. } = method;
        if module.is_empty() && name.starts_with("0x") {
            grid.text(canvas, "METHOD", y, &format!("{name} {}", unknown(look)), theme.dim);
        } else {
            grid.text(canvas, "METHOD", y, name, theme.text);
        }
        grid.text(canvas, "MODULE", y, module, theme.dim);
        let tier = tiers.last().map(|tier| tier.name()).unwrap_or_default();
        grid.text(canvas, "TIER", y, tier, theme.dim);
    }
    grid.finish(canvas, look.state, cursor, methods.len());
}

fn tree(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let nodes = &look.findings.tree;
    let [own, all, bar] = SHARES;
    let grid = Grid::new(canvas, area, &[own, all, bar, text("CALL TREE", 0)]);
    let cursor = look.state.view_cursor(Tab::Methods);
    let lines = grid.lines();
    for (node, y) in nodes[grid.window(cursor, nodes.len())].iter().zip(lines.y..lines.bottom()) {
        let CallNode { name, depth, own, total } = node;
        shares(canvas, look, &grid, y, *own, *total);
        // Deep stacks go on where there is still room for a name.
        let Some((x, width)) = grid.place("CALL TREE") else { continue };
        let indent = (2 * *depth).min(usize::from(width / 2)) as u16;
        let counts = look.state.views.counted(*total) > 0;
        canvas.foreign(x + indent, y, width - indent, name, if counts { theme.text } else { theme.dim });
    }
    grid.finish(canvas, look.state, cursor, nodes.len());
}

/// Own and total time as shares of what counts, and as a bar: own, then what it calls.
fn shares(canvas: &mut Canvas<'_>, look: &Look<'_>, grid: &Grid, y: u16, own: SampleCount, total: SampleCount) {
    let theme = canvas.theme;
    let counted = |samples| look.state.views.counted(samples);
    let base = counted(look.findings.methods.samples).max(1) as f64;
    let (own, total) = (counted(own) as f64 / base, counted(total) as f64 / base);
    grid.value(canvas, "OWN", y, Percent(own), if own > 0.0 { theme.strong } else { theme.dim });
    grid.value(canvas, "ALL", y, Percent(total), theme.text);
    if let Some((x, width)) = grid.place("") {
        meter(canvas, x, y, width, &[(own, theme.events), ((total - own).max(0.0), theme.bytes)]);
    }
}

/// Marks the column that the list is sorted by.
fn sorted(canvas: &mut Canvas<'_>, grid: &Grid, y: u16, title: &str) {
    if let Some((x, width)) = grid.place(title) {
        let (key, sign) = (canvas.theme.key, canvas.theme.glyphs.descending);
        canvas.right(x, y, width + 1, &format!("{title}{sign}"), key);
    }
}
