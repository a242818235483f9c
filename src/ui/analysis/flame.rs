//! The flame graph: the root at the top, the width of each frame proportional to its share, and a description of the selected frame below.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::Origin;
use crate::app::action::Action;
use crate::app::tabs::Look;
use crate::app::{FlameBox, FlameGraph, ScrollBar, Tab};
use crate::diagnosis::is_own;
use crate::model::{Count, Percent};

use super::super::canvas::{Canvas, below, width};
use super::super::names::short_name;
use super::super::theme::Flames;

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, graph: &FlameGraph<'_>, area: Rect) {
    let (picture, words) = FlameGraph::split(area);
    let first = graph.first_line(picture.height);
    for place in graph.boxes.iter().filter(|place| (first..first + picture.height).contains(&place.depth)) {
        frame(canvas, look, graph, *place, Rect { y: picture.y + place.depth - first, ..picture });
    }
    canvas.scroll_mark(&ScrollBar::of_rows(picture, first.into(), graph.depth().into()));
    describe(canvas, look, graph, words);
}

/// Draws a frame: its background, and as much of its name as fits.
fn frame(canvas: &mut Canvas<'_>, look: &Look<'_>, graph: &FlameGraph<'_>, place: FlameBox, line: Rect) {
    let profile = graph.counts.profile();
    let style = style(canvas, look, graph, place);
    let x = line.x + place.x;
    // A gap separates adjacent frames.
    let columns = if place.width > 2 { place.width - 1 } else { place.width };
    let columns = columns.min(line.right().saturating_sub(x));
    for column in 0..columns {
        canvas.sign(x + column, line.y, " ", style);
    }
    let Some(found) = profile.frame_of(place.node) else {
        let all = if look.state.shown_thread().is_some() { "this thread" } else { "all threads" };
        canvas.text(x + 1, line.y, columns.saturating_sub(1), all, style);
        return;
    };
    if columns >= 4 {
        let room = columns - 1;
        let sign = found.origin.label("");
        let used = canvas.text(x + 1, line.y, room, &sign, style);
        let room = room.saturating_sub(used);
        canvas.text(x + 1 + used, line.y, room, short_name(&found.name, room), style);
    } else if canvas.theme.glyphs.ascii || style.bg.is_none() {
        // There may be no colors to tell a frame without a name from its neighbors.
        canvas.sign(x, line.y, canvas.theme.glyphs.vertical, style);
    }
}

fn style(canvas: &Canvas<'_>, look: &Look<'_>, graph: &FlameGraph<'_>, place: FlameBox) -> Style {
    let flames = &canvas.theme.flames;
    let line = usize::from(place.depth % 2);
    let total = graph.counts.total_of(place.node);
    let Some(frame) = graph.counts.profile().frame_of(place.node) else {
        return if place.node == graph.selected { flames.chosen } else { flames.library[line] };
    };
    let is_found = look.state.flame_matches().is_some_and(|matches| matches.contains(&graph.counts, place.node));
    if place.node == graph.selected {
        flames.chosen
    } else if is_found {
        flames.found
    } else if total.waiting_ns > total.running_ns && look.state.views.sampling.waiting {
        flames.waits
    } else if let Some(style) = native(flames, frame.origin) {
        style
    } else if !is_own(&frame.name) || !frame.is_known() {
        flames.library[line]
    } else {
        flames.own[line]
    }
}

/// Returns the style of code that is not a .NET method.
fn native(flames: &Flames, origin: Origin) -> Option<Style> {
    match origin {
        Origin::Native | Origin::Allocation | Origin::Exception => Some(flames.native),
        Origin::Gc => Some(flames.gc),
        Origin::Jit => Some(flames.jit),
        Origin::Kernel => Some(flames.kernel),
        Origin::Managed | Origin::Stub | Origin::Unknown => None,
    }
}

/// Describes the selected frame, and draws the color legend.
fn describe(canvas: &mut Canvas<'_>, look: &Look<'_>, graph: &FlameGraph<'_>, area: Rect) {
    let theme = canvas.theme;
    let sampling = &look.state.views.sampling;
    let counted = |samples| sampling.counted_ns(samples);
    let all = counted(graph.counts.samples()).max(1) as f64;
    let (own, total) = (graph.counts.own_of(graph.selected), graph.counts.total_of(graph.selected));
    let (name, module) = match graph.selected_frame() {
        Some(frame) if !frame.is_unresolved() => (frame.full_name(), frame.module.as_str()),
        Some(frame) => (format!("{} {}", frame.name, look.unresolved()), ""),
        None => ("all".to_owned(), ""),
    };
    let (share, of) = (Percent(counted(total) as f64 / all).to_string(), Percent(counted(own) as f64 / all).to_string());
    let used = canvas.pieces(area.x, area.y, area.width, &[(&share, theme.strong), ("  ", theme.dim)]);
    let used = used + canvas.text(area.x + used, area.y, area.width.saturating_sub(used), &name, theme.accent);
    if !module.is_empty() {
        canvas.text(area.x + used + 2, area.y, area.width.saturating_sub(used + 2), module, theme.dim);
    }
    let line = below(area, 1);
    if line.height == 0 {
        return;
    }
    let samples = Count(sampling.counted_samples(total)).to_string();
    let tiers =
        graph.selected_frame().map_or(String::new(), |frame| frame.tiers.iter().map(|tier| tier.name()).collect::<Vec<_>>().join(", "));
    let mut facts = vec![("self ", theme.dim), (of.as_str(), theme.strong), ("   samples ", theme.dim), (samples.as_str(), theme.text)];
    if total.waiting > 0 && sampling.waiting {
        facts.push(("   mostly ", theme.dim));
        facts.push((if total.waiting_ns > total.running_ns { "waits" } else { "runs" }, theme.text));
    }
    if !tiers.is_empty() {
        facts.extend([("   ", theme.dim), (tiers.as_str(), theme.dim)]);
    }
    let found = look.state.flame_matches().map(|matches| format!("{} in matches", Percent(matches.share)));
    if let Some(found) = &found {
        facts.extend([("   ", theme.dim), (found.as_str(), theme.warn)]);
    }
    canvas.pieces(line.x, line.y, line.width, &facts);
    let line = below(line, 1);
    if line.height > 0 {
        legend(canvas, look, line);
    }
}

fn legend(canvas: &mut Canvas<'_>, look: &Look<'_>, line: Rect) {
    let theme = canvas.theme;
    let flames = &theme.flames;
    let mut signs = vec![(" program ", flames.own[0]), (" framework ", flames.library[0])];
    let waiting = look.state.views.sampling.waiting;
    // If the kernel reports waits, the graph contains nothing else.
    let is_of_waits = waiting && look.analysis.waits().is_some();
    if look.analysis.cpu_time(waiting).is_some() && !is_of_waits {
        signs.extend([(" native ", flames.native), (" GC ", flames.gc), (" JIT ", flames.jit), (" kernel ", flames.kernel)]);
    } else if waiting && !is_of_waits {
        signs.push((" waits ", flames.waits));
    }
    if !look.state.views.filter(Tab::Methods).is_empty() {
        signs.push((" found ", flames.found));
    }
    let mut used = 0;
    for (text, style) in signs {
        used += canvas.text(line.x + used, line.y, line.width.saturating_sub(used), text, style) + 1;
    }
    let keys = format!("arrows: move   Enter: zoom in   Backspace: zoom out   {}: find", look.state.key(Action::Search));
    if used + 2 + width(&keys) <= line.width {
        canvas.text(line.x + used + 2, line.y, line.width - used - 2, &keys, theme.dim);
    }
}
