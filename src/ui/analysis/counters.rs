//! Counters and meters: what the process and its libraries publish.

use std::borrow::Cow;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::{CounterKind, CounterSnapshot, HistogramReading, Spread};
use crate::app::{CounterLine, CounterOrder, CounterOrigin, State, Tab, Watch, ailment, change};
use crate::model::{Bytes, Count, sanitise};

use super::super::canvas::{Canvas, width};
use super::super::chart::{Curve, Span, curve, time_axis};
use super::grid::{Grid, number, text};
use super::{below, filter, heading, warnings};

/// Lines of the chart of the selected counter, where there is room for it.
const CHART: u16 = 6;

/// Draws counters. Says where the terminal's cursor belongs, while a filter is being typed.
pub(in crate::ui) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) -> Option<(u16, u16)> {
    let area = Rect { x: body.x + 1, width: body.width.saturating_sub(2), ..body };
    let theme = canvas.theme;
    let (used, cursor) = match state.counter_origin() {
        Some(CounterOrigin::Watch(watch)) => watched(canvas, state, watch, area),
        Some(CounterOrigin::Recording(tracked)) if state.counters().is_some_and(|snapshot| !snapshot.counters.is_empty()) => {
            let used = heading(canvas, state, tracked, area);
            let (_, cursor) = filter(canvas, state, below(area, used));
            (used + u16::from(cursor.is_some() || !state.views.filter(Tab::Counters).value().is_empty()), cursor)
        }
        _ => {
            invite(canvas, state, area);
            return None;
        }
    };
    let area = below(area, used);
    let lines = state.counter_lines();
    if lines.is_empty() {
        let text = if state.views.filter(Tab::Counters).value().is_empty() {
            "Waiting for the first values …"
        } else {
            "No counter matches the filter."
        };
        canvas.text(area.x, area.y, area.width, text, theme.dim);
        return cursor;
    }
    let about = about(state, area.height);
    let list = Rect { height: area.height - about, ..area };
    draw_list(canvas, state, &lines, list);
    if let Some(CounterLine::Counter(counter)) = state.counter_line().filter(|_| about > 0) {
        details(canvas, counter, below(area, list.height));
    }
    cursor
}

/// How many lines what is known of the selected counter takes.
fn about(state: &State, height: u16) -> u16 {
    match (state.counter_line(), height) {
        (Some(CounterLine::Counter(_)), 18..) => CHART + 3,
        (Some(CounterLine::Counter(_)), 7..) => 2,
        _ => 0,
    }
}

/// What to press where there are no counters.
fn invite(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let theme = canvas.theme;
    let text = if state.shown_recording().is_some() { "No counters are in this recording." } else { "This process is not watched." };
    canvas.text(area.x, area.y, area.width, text, theme.text);
    if state.shows_files() {
        return;
    }
    let lines = [("w", "watch it: the runtime's own counters, every second"), ("m", "and the meters of its libraries (.NET 9)")];
    for ((key, what), y) in lines.into_iter().zip((area.y + 2)..area.bottom()) {
        canvas.pieces(area.x, y, area.width, &[(key, theme.key), ("  ", theme.text), (what, theme.dim)]);
    }
}

/// What is asked of a watched process, what went wrong, and what is wrong with it. Says how many lines it took.
fn watched(canvas: &mut Canvas<'_>, state: &State, watch: &Watch, area: Rect) -> (u16, Option<(u16, u16)>) {
    let theme = canvas.theme;
    let (head, cursor) = filter(canvas, state, area);
    let order = match state.views.counters.order {
        CounterOrder::Name => "by name",
        CounterOrder::Value => "by value",
        CounterOrder::Change => "by change",
    };
    let what = if watch.meters { "counters and meters" } else { "counters of the runtime" };
    let count = watch.counters.as_ref().map_or(0, |snapshot| snapshot.counters.len()).to_string();
    let gap = ("   ", theme.dim);
    let pieces =
        [(theme.glyphs.watched, theme.good), (" ", theme.text), (what, theme.text), gap, (&count, theme.strong), gap, (order, theme.dim)];
    canvas.pieces(head.x, head.y, head.width, &pieces);
    let Some(counters) = &watch.counters else { return (1, cursor) };
    let mut used = 1;
    let found: Vec<_> = ailment(counters).map(|ailment| ailment.lint(counters)).into_iter().collect();
    used += warnings(canvas, state, &found.iter().collect::<Vec<_>>(), below(area, used), 1);
    for notice in counters.notices.iter().take(usize::from(area.height / 5)) {
        canvas.foreign(area.x, area.y + used, area.width, &format!("! {notice}"), theme.warn);
        used += 1;
    }
    if counters.dropped > 0 {
        let text = format!("! {} values had no room: there are too many counters", Count(counters.dropped));
        canvas.text(area.x, area.y + used, area.width, &text, theme.warn);
        used += 1;
    }
    (used, cursor)
}

fn draw_list(canvas: &mut Canvas<'_>, state: &State, lines: &[CounterLine<'_>], area: Rect) {
    let theme = canvas.theme;
    let history = (area.width / 5).clamp(10, 40);
    let columns = [text("COUNTER", 0), number("VALUE", 9), text("UNIT", 6), number("CHANGE", 10), text("HISTORY", history)];
    let grid = Grid::new(canvas, area, &columns);
    let (cursor, rows) = (state.view_cursor(Tab::Counters), grid.lines());
    for (line, y) in lines[grid.window(cursor, lines.len())].iter().zip(rows.y..rows.bottom()) {
        match line {
            CounterLine::Group { name, count, folded } => {
                let sign = if *folded { "+" } else { "-" };
                grid.text(canvas, "COUNTER", y, &format!("{sign} {name} ({count})"), theme.accent);
            }
            CounterLine::Counter(counter) => row(canvas, &grid, counter, y),
        }
    }
    grid.finish(canvas, state, cursor, lines.len());
}

fn row(canvas: &mut Canvas<'_>, grid: &Grid, counter: &CounterSnapshot, y: u16) {
    let theme = canvas.theme;
    let CounterSnapshot { name, tags, unit, value, .. } = counter;
    if let Some((x, room)) = grid.place("COUNTER") {
        let (x, room) = (x + 2, room.saturating_sub(2));
        let tags = tags_that_fit(tags, room.saturating_sub(width(name) + 1));
        let used = super::frame_name::write(canvas, x, y, room.saturating_sub((width(&tags) + 1).min(room / 2)), name, theme.text) + 1;
        canvas.foreign(x + used, y, room.saturating_sub(used), &tags, theme.dim);
    }
    match value {
        Some(value) => grid.value(canvas, "VALUE", y, quantity(*value, unit), theme.strong),
        None => grid.value(canvas, "VALUE", y, theme.glyphs.none, theme.dim),
    }
    if !is_bytes(unit) {
        // What is counted is in braces, by the rules for units.
        grid.text(canvas, "UNIT", y, unit.trim_matches(['{', '}']), theme.dim);
    }
    if let Some(change) = change(counter) {
        grid.value(canvas, "CHANGE", y, told(counter, change), if change == 0.0 { theme.dim } else { theme.events });
    }
    if let Some((x, room)) = grid.place("HISTORY") {
        sparkline(canvas, counter, Rect::new(x, y, room, 1), theme.bytes);
    }
}

/// Tags of a counter; their values alone where there is no room for more: these tell the lines apart.
fn tags_that_fit(tags: &str, room: u16) -> Cow<'_, str> {
    if width(tags) <= room {
        return tags.into();
    }
    let values = tags.split(',').map(|tag| tag.split_once('=').map_or(tag, |(_, value)| value));
    values.collect::<Vec<_>>().join(",").into()
}

/// The latest values as bars, newest at the right. None is as high as the line: it would touch the one above.
fn sparkline(canvas: &mut Canvas<'_>, counter: &CounterSnapshot, area: Rect, style: Style) {
    let bars = canvas.theme.glyphs.bars;
    let history = &counter.history;
    let shown = &history[history.len().saturating_sub(usize::from(area.width))..];
    let values = || shown.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let start = area.right() - shown.len() as u16;
    for ((_, value), x) in shown.iter().zip(start..) {
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        canvas.sign(
            x,
            area.y,
            bars[(share * (bars.len() - 2) as f64).round() as usize],
            if share == 0.0 { canvas.theme.border } else { style },
        );
    }
}

/// What else is known of the selected counter, and its history as a curve.
fn details(canvas: &mut Canvas<'_>, counter: &CounterSnapshot, area: Rect) {
    let theme = canvas.theme;
    let CounterSnapshot { name, display_name, tags, unit, .. } = counter;
    let display = if display_name == name { "" } else { display_name.as_str() };
    let head: Vec<_> = [name.as_str(), display, tags].into_iter().filter(|text| !text.is_empty()).map(sanitise).collect();
    let used = canvas.text(area.x, area.y, area.width, &head.join("   "), theme.strong);
    let rest = Rect { x: area.x + used + 3, width: area.width.saturating_sub(used + 3), ..area };
    let line = spread(counter);
    // Beside the name where there is room, else below it.
    let below_name = width(&line) > rest.width;
    let place = if below_name { below(area, 1) } else { rest };
    canvas.text(place.x, place.y, place.width, &line, theme.text);
    let rest = below(area, 1 + u16::from(below_name && !line.is_empty()));
    if rest.height < 4 {
        return;
    }
    let values: Vec<f64> = counter.history.iter().map(|(_, value)| *value).collect();
    let unit = if is_bytes(unit) { bytes } else { plain };
    let title = match counter.kind {
        CounterKind::Counter => "a second",
        CounterKind::Histogram => "highest quantile",
        CounterKind::Gauge | CounterKind::UpDownCounter => "value",
    };
    let shape = Curve { title, style: theme.bytes, unit, len: values.len() };
    let span = Span::of_seconds(values.len());
    curve(canvas, Rect { height: rest.height - 1, ..rest }, &shape, span, |index| values.get(index).copied().unwrap_or(0.0), |_| false);
    time_axis(canvas, Rect { y: rest.bottom() - 1, height: 1, ..rest }, span, "now");
}

/// How values spread, in words.
fn spread(counter: &CounterSnapshot) -> String {
    let unit = &counter.unit;
    if let Some(HistogramReading { quantiles, count, sum, total_count, total_sum }) = &counter.histogram {
        let mut parts: Vec<_> =
            quantiles.iter().map(|(share, value)| format!("p{} {}", plain(share * 100.0), quantity(*value, unit))).collect();
        parts.extend(count.map(|count| format!("count {} ({} in all)", Count(count), Count(*total_count))));
        parts.extend(sum.map(|sum| format!("sum {} ({} in all)", quantity(sum, unit), quantity(*total_sum, unit))));
        return parts.join("   ");
    }
    counter.spread.map_or_else(String::new, |Spread { min, max, standard_deviation, count }| {
        let [min, max, deviation] = [min, max, standard_deviation].map(|value| quantity(value, unit));
        format!("from {min} to {max}   deviation {deviation}   of {} values", Count(count))
    })
}

fn is_bytes(unit: &str) -> bool {
    matches!(unit, "B" | "By" | "bytes")
}

/// A value with its unit where that has steps.
fn quantity(value: f64, unit: &str) -> String {
    if is_bytes(unit) { bytes(value) } else { plain(value) }
}

fn bytes(value: f64) -> String {
    match value.abs() {
        // No unit is as large.
        ..HUGE => format!("{}{}", sign(value), Bytes(value.abs() as u64)),
        _ => format!("{} B", plain(value)),
    }
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "-" } else { "" }
}

/// More than any step of units goes to.
const HUGE: f64 = 1e18;

/// A number in some seven columns.
fn plain(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "?".to_owned(),
        HUGE.. => format!("{value:.1e}"),
        1000.0.. => format!("{}{}", sign(value), Count(value.abs() as u64)),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        0.0001.. => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// How much it changes, as its kind tells it.
fn told(counter: &CounterSnapshot, change: f64) -> String {
    match (counter.kind, counter.scaled_rate) {
        (CounterKind::Histogram, _) => format!("n={}", plain(change)),
        (CounterKind::Gauge, _) => format!("{}{}", if change > 0.0 { "+" } else { "" }, quantity(change, &counter.unit)),
        (_, Some((value, 60.0))) => format!("{}/min", quantity(value, &counter.unit)),
        _ => format!("{}/s", quantity(change, &counter.unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short() {
        for (value, text) in [
            (0.0, "0"),
            (-3.0, "-3"),
            (999.0, "999"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (12_345.6, "12.3k"),
            (-12_345.6, "-12.3k"),
            (0.0123, "0.0123"),
            (0.000_001_2, "1.2e-6"),
            (f64::NAN, "?"),
            (f64::INFINITY, "?"),
            (1e300, "1.0e300"),
            (-2e300, "-2.0e300"),
            (9e17, "900P"),
        ] {
            assert_eq!(plain(value), text);
        }
        for (value, text) in [(1_500.0, "1.5 kB"), (-1_500.0, "-1.5 kB"), (-912.0, "-912 B"), (0.0, "0 B"), (-2e300, "-2.0e300 B")] {
            assert_eq!(quantity(value, "By"), text);
        }
    }
}
