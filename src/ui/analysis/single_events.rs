//! Events one by one: when, who, what, and what is in them.

use ratatui::layout::Rect;

use crate::analysis::SingleEvent;
use crate::app::{Cursor, Tab};
use crate::model::{Bytes, Count, sanitise};

use super::super::canvas::{Canvas, width};
use super::frame_name::frame_line;
use super::grid::{Grid, number, text, thread_width};
use super::{Look, below, beside, split};

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect, active: bool) {
    let theme = canvas.theme;
    let recent = &look.findings.recent;
    let events = look.state.single_events();
    let filtered = !look.state.views.filter(Tab::Events).value().trim().is_empty();
    if events.is_empty() {
        let text = match (filtered, look.over()) {
            (true, false) => "No event passes the filter so far: it holds for what comes from now on.",
            (true, true) => "No event that was kept passes the filter.",
            (false, _) => "No event so far but samples of threads: / and sample shows them.",
        };
        canvas.wrapped(area, text, theme.dim);
        return;
    }
    let latest = format!("the latest {}", Count(events.len() as u64));
    let mut words = vec![(latest.as_str(), theme.text), (if filtered { "" } else { ", samples of threads left out (/sample)" }, theme.dim)];
    let skipped = Count(recent.skipped).to_string();
    if recent.skipped > 0 {
        words.extend([("   ", theme.dim), (skipped.as_str(), theme.text), (" came too fast to be shown", theme.dim)]);
    }
    canvas.pieces(area.x, area.y, area.width, &words);
    let area = below(area, 1);
    let open = look.state.views.events.open && active;
    let (lines, words) = if open { split(area, (area.height / 3).max(3)) } else { (area, Rect { height: 0, ..area }) };
    let cursor = if active { look.state.view_cursor(Tab::Events) } else { Cursor::default() };
    list(canvas, look, &events.iter().map(|(event, _)| event.as_ref()).collect::<Vec<_>>(), lines, cursor, active);
    if let Some((event, stack)) = events.get(cursor.at.min(events.len() - 1)).filter(|_| words.height > 0) {
        inside(canvas, look, event, stack, words);
    }
}

fn list(canvas: &mut Canvas<'_>, look: &Look<'_>, events: &[&SingleEvent], area: Rect, cursor: Cursor, active: bool) {
    let theme = canvas.theme;
    let grid = Grid::new(
        canvas,
        area,
        &[
            number("AT", 9),
            text("EVENT", name_width(events)),
            text("FIELDS", 0),
            number("THREAD", thread_width(events.iter().map(|event| event.thread))),
        ],
    );
    let lines = grid.lines();
    for (event, y) in events[grid.window(cursor, events.len())].iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "AT", y, moment(event.at), theme.dim);
        grid.value(canvas, "THREAD", y, event.thread, theme.dim);
        let style = if event.kind.name.contains("Exception") { theme.warn } else { theme.text };
        grid.text(canvas, "EVENT", y, &name(event), style);
        let Some((mut x, mut room)) = grid.place("FIELDS") else { continue };
        for (name, value) in &event.payload.fields {
            if room < 4 {
                break;
            }
            let used = canvas.foreign(x, y, room, name, theme.dim);
            let used = used + canvas.text(x + used, y, room - used, "=", theme.dim);
            let used = used + canvas.foreign(x + used, y, room - used, value, theme.text);
            (x, room) = (x + used + 2, room.saturating_sub(used + 2));
        }
    }
    if active {
        grid.finish(canvas, look.state, cursor, events.len());
    }
}

/// As wide as the longest name that is shown, within limits.
fn name_width(events: &[&SingleEvent]) -> u16 {
    events.iter().map(|event| width(&name(event))).max().unwrap_or(0).clamp(12, 28)
}

fn name(event: &SingleEvent) -> String {
    if event.kind.name.is_empty() { format!("event {}", event.kind.event_id) } else { event.kind.name.clone() }
}

/// All that is known of an event.
fn inside(canvas: &mut Canvas<'_>, look: &Look<'_>, event: &SingleEvent, stack: &[String], area: Rect) {
    let theme = canvas.theme;
    for x in area.x..area.right() {
        canvas.sign(x, area.y, theme.glyphs.horizontal, theme.border);
    }
    let area = below(area, 1);
    let (at, thread, number) = (moment(event.at), event.thread.to_string(), format!("  id {}", event.kind.event_id));
    let size = format!("   {}", Bytes(event.bytes as u64));
    let used = canvas.foreign(area.x, area.y, area.width, &name(event), theme.accent);
    let rest = [
        (number.as_str(), theme.dim),
        ("   at ", theme.dim),
        (&at, theme.text),
        ("   thread ", theme.dim),
        (&thread, theme.text),
        (&size, theme.dim),
    ];
    let used = used + canvas.pieces(area.x + used, area.y, area.width.saturating_sub(used), &rest);
    canvas.foreign(area.x + used + 3, area.y, area.width.saturating_sub(used + 3), &event.kind.provider, theme.dim);
    let area = below(area, 1);
    let both = area.width >= 90 && !stack.is_empty();
    let (left, right) = if both { beside(area, area.width / 2) } else { (area, area) };
    let used = fields(canvas, event, left);
    let right = if both { right } else { below(right, used) };
    for (frame, y) in stack.iter().zip(right.y..right.bottom()) {
        frame_line(canvas, look, Rect { y, height: 1, ..right }, frame);
    }
    cut_mark(canvas, right, stack.len());
}

/// Says how much of a list did not fit, in place of its last line.
fn cut_mark(canvas: &mut Canvas<'_>, area: Rect, len: usize) {
    let shown = usize::from(area.height);
    if len > shown && shown > 0 {
        let y = area.bottom() - 1;
        canvas.clear(Rect { y, height: 1, ..area });
        canvas.value(area.x, y, area.width, format_args!("… and {} more", len - shown + 1), canvas.theme.dim);
    }
}

/// Fields with their values, a line each, long ones in more. Says how many lines it took.
fn fields(canvas: &mut Canvas<'_>, event: &SingleEvent, area: Rect) -> u16 {
    let theme = canvas.theme;
    let all = &event.payload.fields;
    let names = all.iter().map(|(name, _)| width(&sanitise(name))).max().unwrap_or(0).min(area.width / 3);
    let mut y = area.y;
    for (index, (name, value)) in all.iter().enumerate() {
        let rest = Rect { x: area.x + names + 2, y, width: area.width.saturating_sub(names + 2), height: area.bottom().saturating_sub(y) };
        if rest.height <= 1 && index + 1 < all.len() {
            canvas.value(area.x, y, area.width, format_args!("… and {} more", all.len() - index), theme.dim);
            return area.height;
        }
        canvas.foreign(area.x, y, names, name, theme.dim);
        let value = sanitise(value);
        y += canvas
            .wrapped(Rect { height: rest.height.min(3), ..rest }, if value.is_empty() { "(empty)" } else { &value }, theme.text)
            .max(1);
    }
    if all.is_empty() {
        canvas.text(area.x, y, area.width, "It has no fields.", theme.dim);
        y += 1;
    }
    if let Some(activity) = event.activity.filter(|_| y < area.bottom()) {
        let hex: String = activity.iter().map(|byte| format!("{byte:02x}")).collect();
        canvas.text(area.x, y, area.width, &format!("activity {hex}"), theme.dim);
        y += 1;
    }
    if event.payload.is_cut && y < area.bottom() {
        canvas.text(area.x, y, area.width, "There is more in it than can be shown.", theme.dim);
        y += 1;
    }
    y - area.y
}

/// Minutes, seconds and milliseconds since the session began.
fn moment(at: i64) -> String {
    let ms = u64::try_from(at).unwrap_or(0) / 1_000_000;
    format!("{}:{:02}.{:03}", ms / 60_000, ms / 1000 % 60, ms % 1000)
}
