//! Where threads spend their time: methods as a list, as a call tree or as a flame graph, of all threads or of one.

use ratatui::layout::Rect;

use crate::analysis::{CallNode, Counts, SampleCount};
use crate::app::tabs::{Look, sampled};
use crate::app::{Shape, Source, Tab};
use crate::model::{Count, Nanoseconds, Percent};

use super::super::canvas::Canvas;
use super::grid::{Column, Grid, number, text};
use super::panel::{figures, meter};
use super::{below, filter, flame, frame_name, nothing, split, tab};

/// Own time, and that of everything below, as numbers and as a bar.
const SHARES: [Column; 3] = [number("OWN", 6), number("ALL", 6), text("", 12)];

/// Draws methods. Says where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let sampling = &look.state.views.sampling;
    let counts = look.state.samples()?;
    let (samples, profile) = (counts.samples(), counts.profile());
    if samples.all() == 0 && look.state.shown_thread().is_none() {
        nothing(canvas, look, Source::Samples, area);
        return None;
    }
    let share = |part: u64, all: u64| Percent(part as f64 / all.max(1) as f64).to_string();
    let mut top = vec![("samples", Count(samples.all()).to_string(), theme.strong)];
    if are_told_apart(&counts) {
        let of_time = |ns: u64| share(ns, samples.all_ns());
        top.extend([("running", of_time(samples.running_ns), theme.strong), ("waiting", of_time(samples.waiting_ns), theme.text)]);
    }
    if counts.unresolved() > 0 {
        top.push(("without a name", share(counts.unresolved(), samples.all()), theme.warn));
    }
    if counts.cut().all() > 0 {
        top.push(("cut off at 100 frames", share(counts.cut().all_ns(), samples.all_ns()), theme.warn));
    }
    top.push(("threads", counts.threads().len().to_string(), theme.text));
    if let Some(interval) = profile.interval_ns {
        top.push(("each", Nanoseconds(interval).to_string(), theme.text));
    }
    let (head, cursor) = filter(canvas, look.state, area);
    let used = figures(canvas, head, &top);
    let area = below(area, used);
    let (what, style) = match (are_told_apart(&counts), sampling.waiting || sampling.shape == Shape::Threads) {
        (true, true) if sampling.shape == Shape::Threads => {
            ("thread time; CPU is processor time, from /proc. Enter: a thread's methods", theme.dim)
        }
        (true, true) => ("thread time, waiting included (w: running only)", theme.dim),
        (true, false) => ("thread time of threads that run (w: waiting, too)", theme.dim),
        // Who waits is told by the name of the method that it is in.
        (false, _) if look.over() => ("thread time: many names did not come, so that threads that wait seem to run", theme.warn),
        (false, _) => ("thread time: threads that wait seem to run until names come", theme.warn),
    };
    let mut line = Rect { height: 1, ..area };
    if let Some(thread) = look.state.shown_thread().filter(|_| sampling.shape != Shape::Threads) {
        let rows = look.state.thread_rows();
        let name = rows.iter().find(|row| row.thread == Some(thread)).map_or("", |row| row.name);
        let chip = format!(" thread {thread} {name}{}", if name.is_empty() { "" } else { " " });
        let used = canvas.foreign(line.x, line.y, line.width, &chip, theme.chip);
        let used = used + canvas.pieces(line.x + used, line.y, line.width.saturating_sub(used), &[("  Backspace: all   ", theme.dim)]);
        line = Rect { x: line.x + used, width: line.width.saturating_sub(used), ..line };
    }
    canvas.text(line.x, line.y, line.width, what, style);
    let area = below(area, 1);
    match sampling.shape {
        Shape::List => list(canvas, look, &counts, area),
        Shape::Tree => tree(canvas, look, &counts, area),
        Shape::Flame => flame::draw(canvas, look, area),
        Shape::Threads => {
            let threads = sampled(*look, look.state.thread_rows());
            tab::selectable(canvas, look.state, threads.as_ref(), look.state.view_cursor(Tab::Methods), area);
        }
    }
    cursor
}

/// Whether enough methods are known by name to tell threads that wait from those that run.
pub(in crate::ui) fn are_told_apart(counts: &Counts<'_>) -> bool {
    counts.unresolved().saturating_mul(10) <= counts.samples().all()
}

fn list(canvas: &mut Canvas<'_>, look: &Look<'_>, counts: &Counts<'_>, area: Rect) {
    let theme = canvas.theme;
    let methods = look.state.methods();
    if methods.is_empty() {
        return frame_name::none(canvas, look, area);
    }
    let [own, all, bar] = SHARES;
    // The selected name in full, where the list has no room for it.
    let (area, footer) = split(area, area.height - u16::from(area.height > 6));
    let grid = Grid::new(canvas, area, &[own, all, bar, text("METHOD", 0), text("MODULE", 22), text("TIER", 8)]);
    sorted(canvas, &grid, area.y, if look.state.views.sampling.by_total { "ALL" } else { "OWN" });
    let cursor = look.state.view_cursor(Tab::Methods);
    let lines = grid.lines();
    for ((method, frame), y) in methods[grid.window(cursor, methods.len())].iter().zip(lines.y..lines.bottom()) {
        shares(canvas, look, counts, &grid, y, method.own, method.total);
        if !frame.is_known() {
            grid.text(canvas, "METHOD", y, &format!("{} {}", frame.name, look.unresolved()), theme.dim);
        } else if let Some((x, room)) = grid.place("METHOD") {
            frame_name::write(canvas, x, y, room, &frame.name, theme.text);
        }
        grid.text(canvas, "MODULE", y, &frame.module, theme.dim);
        let tier = frame.tiers.last().map(|tier| tier.name()).unwrap_or_default();
        grid.text(canvas, "TIER", y, tier, theme.dim);
    }
    grid.finish(canvas, look.state, cursor, methods.len());
    if let Some((_, frame)) = methods.get(cursor.at.min(methods.len() - 1)).filter(|_| footer.height > 0) {
        let tiers: Vec<_> = frame.tiers.iter().map(|tier| tier.name()).collect();
        let parts: Vec<_> = [frame.module.clone(), tiers.join(", ")].into_iter().filter(|part| !part.is_empty()).collect();
        let facts = format!("   {}", parts.join("   "));
        let used = canvas.foreign(footer.x, footer.y, footer.width, &frame.full_name(), theme.accent);
        canvas.foreign(footer.x + used, footer.y, footer.width - used, facts.trim_end(), theme.dim);
    }
}

fn tree(canvas: &mut Canvas<'_>, look: &Look<'_>, counts: &Counts<'_>, area: Rect) {
    let theme = canvas.theme;
    let nodes = look.state.call_tree();
    if nodes.is_empty() {
        return frame_name::none(canvas, look, area);
    }
    let [own, all, bar] = SHARES;
    let grid = Grid::new(canvas, area, &[own, all, bar, text("CALL TREE", 0)]);
    let cursor = look.state.view_cursor(Tab::Methods);
    let lines = grid.lines();
    let wanted = look.state.views.filter(Tab::Methods).value().trim();
    for (node, y) in nodes[grid.window(cursor, nodes.len())].iter().zip(lines.y..lines.bottom()) {
        let CallNode { name: full, depth, own, total } = node;
        shares(canvas, look, counts, &grid, y, *own, *total);
        // Deep stacks go on where there is still room for a name.
        let Some((x, width)) = grid.place("CALL TREE") else { continue };
        let indent = (2 * *depth).min(usize::from(width / 2)) as u16;
        let found = !wanted.is_empty() && look.state.passes([full, ""]);
        frame_name::write(canvas, x + indent, y, width - indent, full, if found { theme.matched } else { theme.text });
    }
    grid.finish(canvas, look.state, cursor, nodes.len());
}

/// Own and total time as shares of what counts, and as a bar: own, then what it calls.
fn shares(canvas: &mut Canvas<'_>, look: &Look<'_>, counts: &Counts<'_>, grid: &Grid, y: u16, own: SampleCount, total: SampleCount) {
    let theme = canvas.theme;
    let counted = |samples| look.state.views.sampling.counted(samples);
    let base = counted(counts.samples()).max(1) as f64;
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
