//! Garbage collection: how long the program stood, how large the heap is, and who allocates.

use ratatui::layout::Rect;

use crate::analysis::{GcSnapshot, Heap, SampleFilter};
use crate::app::{Source, Tab};
use crate::model::{ByteRate, Bytes, Count, CountRate, Nanoseconds, Percent, Stopwatch};

use super::super::canvas::Canvas;
use super::grid::{Grid, number, text};
use super::panel::{Figure, History, figures, histories};
use super::{Look, below, beside, nothing, split};

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let gc = &look.findings.snapshot.gc;
    if gc.collections.iter().sum::<u64>() == 0 && gc.pauses.count == 0 && gc.allocations.is_none() {
        nothing(canvas, look, Source::Collections, area);
        return;
    }
    let used = figures(canvas, area, &pauses(canvas, look, gc));
    let area = below(area, used);
    let used = if area.height >= PARTS { parts(canvas, look, gc, area) } else { figures(canvas, area, &heap(canvas, gc.heap.as_ref())) };
    let area = below(area, used);
    let (charts, lists) = split(area, chart_height(area.height));
    let theme = canvas.theme;
    let heap = History {
        title: "heap after collections",
        style: theme.bytes,
        unit: |value| Bytes(value as u64).to_string(),
        line: &gc.heap_size,
        stays: true,
    };
    let pause = History {
        title: "longest pause",
        style: theme.events,
        unit: |value| Nanoseconds(value as u64).to_string(),
        line: &gc.pauses.longest,
        stays: false,
    };
    // A heap is known only after a collection.
    let curves = if gc.heap.is_some() { vec![heap, pause] } else { vec![pause] };
    histories(canvas, look, charts, &curves);
    let (left, right) = if lists.width >= 90 { beside(lists, lists.width * 13 / 20) } else { (lists, Rect { width: 0, ..lists }) };
    collections(canvas, look, gc, left);
    if right.width > 0 {
        allocations(canvas, look, gc, right);
    }
}

/// How high curves are above a list, in a pane of this height.
pub(super) fn chart_height(height: u16) -> u16 {
    match height {
        0..=6 => 0,
        7..=9 => 4,
        _ => (height * 2 / 5).clamp(5, 9),
    }
}

fn pauses(canvas: &Canvas<'_>, look: &Look<'_>, gc: &GcSnapshot) -> Vec<Figure> {
    let theme = canvas.theme;
    let pauses = &gc.pauses;
    let duration = look.findings.snapshot.recorded_ns.max(1) as f64;
    let share = if look.over() { pauses.total_ns as f64 / duration } else { pauses.recent_share };
    let share_style = if share > 0.1 { theme.warn } else { theme.strong };
    let [gen0, gen1, gen2] = gc.collections.map(Count);
    let mut all = vec![
        ("in GC", Percent(share).to_string(), share_style),
        ("pauses", Count(pauses.count).to_string(), theme.strong),
        ("gen0/1/2", format!("{gen0}/{gen1}/{gen2}"), theme.text),
    ];
    if let Some([half, most, _]) = pauses.quantiles_ns {
        all.extend([
            ("max", Nanoseconds(pauses.longest_ns).to_string(), theme.strong),
            ("p95", Nanoseconds(most).to_string(), theme.text),
            ("p50", Nanoseconds(half).to_string(), theme.text),
        ]);
    }
    if gc.induced > 0 {
        all.push(("asked for by the program", Count(gc.induced).to_string(), theme.warn));
    }
    all
}

fn heap(canvas: &Canvas<'_>, heap: Option<&Heap>) -> Vec<Figure> {
    let theme = canvas.theme;
    let Some(heap) = heap else { return Vec::new() };
    let [gen0, gen1, gen2] = heap.generations;
    let mut parts = vec![("gen0", gen0), ("gen1", gen1), ("gen2", gen2), ("large", heap.large)];
    parts.extend(heap.pinned.map(|size| ("pinned", size)));
    let mut all: Vec<Figure> = vec![("heap", Bytes(heap.size()).to_string(), theme.strong)];
    all.extend(parts.into_iter().map(|(name, size)| (name, Bytes(size).to_string(), theme.text)));
    all
}

/// Lines from which on there is room for the parts of the heap over time.
const PARTS: u16 = 26;

/// The parts of the heap, each with its size over the last minutes. Says how many lines it took.
fn parts(canvas: &mut Canvas<'_>, look: &Look<'_>, gc: &GcSnapshot, area: Rect) -> u16 {
    let theme = canvas.theme;
    let Some(heap) = &gc.heap else { return 0 };
    let used = canvas.pieces(area.x, area.y, area.width, &[("heap ", theme.dim), (&Bytes(heap.size()).to_string(), theme.strong)]);
    let facts = [
        ("survived the last collection", Bytes(heap.promoted).to_string()),
        ("handles", Count(heap.handles.into()).to_string()),
        ("pinned objects", Count(heap.pinned_objects.into()).to_string()),
        ("wait for finalizers", Count(heap.finalization).to_string()),
    ];
    let facts: Vec<Figure> = facts.into_iter().map(|(name, value)| (name, value, theme.text)).collect();
    figures(canvas, Rect { x: area.x + used + 3, width: area.width.saturating_sub(used + 3), height: 1, ..area }, &facts);
    let known = if heap.pinned.is_some() { 5 } else { 4 };
    let names = ["gen0", "gen1", "gen2", "large", "pinned"];
    let now = look.findings.snapshot.now;
    let room = usize::from(area.width.saturating_sub(20)).min(300).min(usize::try_from(now / 1_000_000_000 + 1).unwrap_or(1));
    for (index, y) in (0..known).zip(area.y + 1..area.bottom()) {
        canvas.text(area.x, y, 7, names[index], theme.dim);
        canvas.number(area.x + 7, y, 8, Bytes(heap.parts()[index]), theme.text);
        // Every sign is a second; a size stays until the next collection.
        let mut values = gc.parts_over_time[index].recent(now, room);
        let mut held = f64::NAN;
        for value in &mut values {
            held = if value.is_finite() { *value } else { held };
            *value = held;
        }
        let most = values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max).max(1.0);
        for (x, value) in (area.x + 17..).zip(values) {
            if value.is_finite() {
                // The highest bar would touch the line above.
                let level = (value / most * (theme.glyphs.bars.len() - 2) as f64).round() as usize;
                canvas.sign(x, y, theme.glyphs.bars[level.min(theme.glyphs.bars.len() - 2)], theme.bytes);
            }
        }
    }
    known as u16 + 1
}

/// The latest collections.
fn collections(canvas: &mut Canvas<'_>, look: &Look<'_>, gc: &GcSnapshot, area: Rect) {
    let theme = canvas.theme;
    // What is not told has no column.
    let (before, survived) = (gc.recent.iter().any(|gc| gc.heap_before.is_some()), gc.recent.iter().any(|gc| gc.promoted.is_some()));
    let columns = [
        Some(number("AT", 7)),
        Some(number("GEN", 3)),
        Some(number("PAUSE", 7)),
        before.then_some(number("BEFORE", 7)),
        Some(number("AFTER", 7)),
        Some(text("WHY", 0)),
        survived.then_some(number("SURVIVED", 8)),
        Some(text("HOW", 10)),
    ];
    let columns: Vec<_> = columns.into_iter().flatten().collect();
    let grid = Grid::new(canvas, area, &columns);
    let cursor = look.state.view_cursor(Tab::Gc);
    let lines = grid.lines();
    for (collection, y) in gc.recent[grid.window(cursor, gc.recent.len())].iter().zip(lines.y..lines.bottom()) {
        let at = Stopwatch(std::time::Duration::from_nanos(u64::try_from(collection.start).unwrap_or(0)));
        grid.value(canvas, "AT", y, at, theme.dim);
        grid.value(canvas, "GEN", y, collection.generation, if collection.generation >= 2 { theme.strong } else { theme.text });
        if let Some(pause) = collection.pause_ns {
            grid.value(canvas, "PAUSE", y, Nanoseconds(pause), theme.events);
        }
        if let Some(size) = collection.heap_after {
            grid.value(canvas, "AFTER", y, Bytes(size), theme.bytes);
        }
        if let Some(size) = collection.heap_before {
            grid.value(canvas, "BEFORE", y, Bytes(size), theme.text);
        }
        if let Some(size) = collection.promoted {
            grid.value(canvas, "SURVIVED", y, Bytes(size), theme.text);
        }
        grid.text(canvas, "WHY", y, collection.reason.name(), if collection.reason.is_induced() { theme.warn } else { theme.text });
        grid.text(canvas, "HOW", y, collection.kind.name(), theme.dim);
    }
    grid.finish(canvas, look.state, cursor, gc.recent.len());
}

/// What is allocated, or why that is not known, and then why collections happen.
fn allocations(canvas: &mut Canvas<'_>, look: &Look<'_>, gc: &GcSnapshot, area: Rect) {
    let theme = canvas.theme;
    let Some(allocations) = &gc.allocations else {
        let grid = Grid::new(canvas, area, &[number("COUNT", 6), number("GEN", 3), text("WHY", 0), text("HOW", 10)]);
        let lines = grid.lines();
        let room = lines.height.saturating_sub(2);
        for (cause, y) in gc.causes.iter().zip(lines.y..lines.y + room) {
            grid.value(canvas, "COUNT", y, Count(cause.count), theme.strong);
            grid.value(canvas, "GEN", y, cause.generation, theme.text);
            grid.text(canvas, "WHY", y, cause.reason.name(), theme.text);
            grid.text(canvas, "HOW", y, cause.kind.name(), theme.dim);
        }
        let text = Rect { y: lines.y + (gc.causes.len() as u16 + 1).min(room), height: lines.height.min(2), ..lines };
        let profile = Source::Allocations.profile();
        canvas.wrapped(text, &format!("Who allocates is told by profile {profile} (T)."), theme.dim);
        return;
    };
    let rate = look.rate(allocations.bytes, allocations.rate);
    let top = [("allocated", ByteRate(rate).to_string(), theme.strong), ("all", Bytes(allocations.bytes).to_string(), theme.text)];
    let used = figures(canvas, area, &top);
    let grid = Grid::new(canvas, below(area, used), &[number("BYTES", 7), number("SHARE", 6), text("TYPE", 0)]);
    let lines = grid.lines();
    let all = allocations.others.saturating_add(allocations.top.iter().fold(0_u64, |sum, kind| sum.saturating_add(kind.bytes)));
    for (kind, y) in allocations.top.iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "BYTES", y, Bytes(kind.bytes), theme.strong);
        grid.value(canvas, "SHARE", y, Percent(kind.bytes as f64 / all.max(1) as f64), theme.bytes);
        grid.text(canvas, "TYPE", y, &kind.name, theme.text);
    }
}

/// The figures that the overview shows.
pub(in crate::ui) fn summary(canvas: &Canvas<'_>, findings: &crate::model::Findings, over: bool) -> Vec<Figure> {
    let theme = canvas.theme;
    let snapshot = &findings.snapshot;
    let rate = |count, recent| CountRate(findings.rate(over, count, recent)).to_string();
    let mut all = Vec::new();
    let gc = &snapshot.gc;
    if gc.pauses.count > 0 {
        let duration = snapshot.recorded_ns.max(1) as f64;
        let share = if over { gc.pauses.total_ns as f64 / duration } else { gc.pauses.recent_share };
        all.push(("in GC", Percent(share).to_string(), if share > 0.1 { theme.warn } else { theme.strong }));
    }
    if let Some(heap) = &gc.heap {
        all.push(("heap", Bytes(heap.size()).to_string(), theme.strong));
    }
    if let Some(allocations) = &gc.allocations {
        all.push(("allocated", ByteRate(findings.rate(over, allocations.bytes, allocations.rate)).to_string(), theme.strong));
    }
    if snapshot.exceptions.thrown > 0 {
        all.push(("exceptions", rate(snapshot.exceptions.thrown, snapshot.exceptions.rate), theme.strong));
    }
    if snapshot.contention.count > 0 {
        all.push(("lock waits", rate(snapshot.contention.count, snapshot.contention.rate), theme.strong));
    }
    if let Some(workers) = snapshot.thread_pool.workers {
        all.push(("workers", workers.to_string(), theme.strong));
    }
    if snapshot.jit.bodies > 0 {
        all.push(("new methods", rate(snapshot.jit.bodies, snapshot.jit.rate), theme.strong));
    }
    let counts = findings.profile.count(SampleFilter::ALL);
    let samples = counts.samples();
    if samples.all() > 0 && super::methods::are_told_apart(&counts) {
        all.push(("threads run", Percent(samples.running_ns as f64 / samples.all_ns().max(1) as f64).to_string(), theme.strong));
    }
    all
}
