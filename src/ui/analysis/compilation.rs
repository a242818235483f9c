//! Methods that are compiled while the program runs: how many, into which tier, for how long.

use ratatui::layout::Rect;

use crate::app::{Source, Tab};
use crate::model::{Bytes, Count, CountRate, Nanoseconds};

use super::super::canvas::Canvas;
use super::gc::chart_height;
use super::grid::{Grid, number, text};
use super::logs::at;
use super::panel::{Figure, History, figures, histories};
use super::{Look, below, beside, frame_name, split, tells};

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let jit = &look.findings.snapshot.jit;
    let mut top: Vec<Figure> = vec![
        ("methods", Count(jit.bodies).to_string(), theme.strong),
        ("rate", CountRate(look.rate(jit.bodies, jit.rate)).to_string(), theme.strong),
        ("compiled here", Count(jit.jitted).to_string(), theme.text),
    ];
    if let Some(time) = &jit.time {
        top.push(("took", Nanoseconds(time.total_ns).to_string(), theme.strong));
        if let Some([half, most, _]) = time.quantiles_ns {
            top.extend([("p95", Nanoseconds(most).to_string(), theme.text), ("p50", Nanoseconds(half).to_string(), theme.text)]);
        }
        top.push(("of IL", Bytes(time.il_bytes).to_string(), theme.text));
    }
    if let Some((time, pending)) = jit.background {
        top.push(("beside the program", Nanoseconds(time).to_string(), theme.text));
        top.push(("waiting", pending.to_string(), theme.text));
    }
    if jit.unloaded > 0 {
        top.push(("gone", Count(jit.unloaded).to_string(), theme.text));
    }
    let used = figures(canvas, area, &top);
    let (charts, lists) = split(below(area, used), chart_height(below(area, used).height));
    let methods = History {
        title: "methods compiled",
        style: theme.events,
        unit: |value| CountRate(value).to_string(),
        line: &jit.over_time,
        stays: false,
    };
    let time = jit.time.as_ref().map(|time| History {
        title: "time spent compiling",
        style: theme.bytes,
        unit: |value| Nanoseconds(value as u64).to_string(),
        line: &time.over_time,
        stays: false,
    });
    histories(canvas, look, charts, &[Some(methods), time].into_iter().flatten().collect::<Vec<_>>());
    let (left, right) = beside(lists, 42);
    tiers(canvas, look, left);
    slowest(canvas, look, right);
}

fn tiers(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let grid = Grid::new(canvas, area, &[number("COUNT", 6), number("CODE", 7), text("TIER", 0)]);
    let lines = grid.lines();
    for ((tier, compiled), y) in look.findings.snapshot.jit.by_tier.iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "COUNT", y, Count(compiled.bodies), theme.strong);
        grid.value(canvas, "CODE", y, Bytes(compiled.code_bytes), theme.bytes);
        grid.text(canvas, "TIER", y, tier.name(), theme.text);
    }
}

fn slowest(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let slow = look.state.slow_methods();
    if look.findings.snapshot.jit.time.is_none() {
        return tells(canvas, Source::CompileTime, "How long it takes", area);
    }
    let grid = Grid::new(canvas, area, &[number("TOOK", 7), text("SLOWEST METHOD", 0), number("IL", 7), text("TIER", 8), number("AT", 7)]);
    let cursor = look.state.view_cursor(Tab::More);
    let lines = grid.lines();
    for (method, y) in slow[grid.window(cursor, slow.len())].iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "TOOK", y, Nanoseconds(method.time_ns), theme.strong);
        if let Some((x, room)) = grid.place("SLOWEST METHOD") {
            frame_name::write(canvas, x, y, room, &method.name, theme.text);
        }
        grid.value(canvas, "IL", y, Bytes(method.il_size.into()), theme.text);
        grid.text(canvas, "TIER", y, method.tier.name(), theme.dim);
        grid.value(canvas, "AT", y, at(method.at), theme.dim);
    }
    grid.finish(canvas, look.state, cursor, slow.len());
}
