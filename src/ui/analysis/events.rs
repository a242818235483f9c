//! Which events come, how often, and how much of the recording they take.

use ratatui::layout::Rect;

use crate::app::{Cursor, Tab};
use crate::model::{Bytes, Count, CountRate, EventRate, Percent};

use super::super::canvas::Canvas;
use super::grid::{Grid, number, text};
use super::panel::figures;
use super::{Look, below, beside, filter, single_events};

/// Draws events. Says where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let (findings, totals) = (look.findings, look.findings.snapshot.totals);
    let rate = look.rate(totals.events, findings.snapshot.rates.rate);
    let lost = findings.snapshot.rates.total_lost;
    let mut top = vec![
        ("events", Count(totals.events).to_string(), theme.strong),
        ("rate", CountRate(rate).to_string(), theme.events),
        ("payload", Bytes(totals.payload_bytes).to_string(), theme.text),
        ("lost", Count(lost).to_string(), if lost > 0 { theme.bad } else { theme.text }),
    ];
    if let Some(hole) = findings.snapshot.rates.holes.first() {
        let at = crate::model::Stopwatch(std::time::Duration::from_nanos(u64::try_from(hole.at).unwrap_or(0)));
        top.push(("last before", at.to_string(), theme.bad));
    }
    top.push(("kinds", findings.events.len().to_string(), theme.text));
    top.push(("threads", Count(totals.threads).to_string(), theme.text));
    if findings.snapshot.unreadable > 0 {
        top.push(("not understood", Count(findings.snapshot.unreadable).to_string(), theme.warn));
    }
    let (head, cursor) = filter(canvas, look.state, area);
    // One by one, events need the lines more than the figures do.
    let lines = if look.state.views.events.single { head.height.min(6) } else { head.height };
    let used = figures(canvas, Rect { height: lines, ..head }, &top);
    let area = below(area, used);
    let single = look.state.views.events.single;
    // Where there is room for both, the one that has the keys is the one that was chosen.
    if area.width >= BOTH {
        let (left, right) = beside(area, area.width / 2);
        kinds(canvas, look, left, !single);
        single_events::draw(canvas, look, right, single);
    } else if single {
        single_events::draw(canvas, look, area, true);
    } else {
        kinds(canvas, look, area, true);
    }
    cursor
}

/// Columns from which on there is room for kinds and single events.
const BOTH: u16 = 150;

/// The kinds of events, most frequent first.
fn kinds(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect, active: bool) {
    let (theme, totals) = (canvas.theme, look.findings.snapshot.totals);
    let events = look.state.events();
    let grid = Grid::new(
        canvas,
        area,
        &[number("COUNT", 6), number("RATE", 8), text("EVENT", 0), text("PROVIDER", 36), number("SHARE", 6), number("PAYLOAD", 7)],
    );
    let selected = if active { look.state.view_cursor(Tab::Events) } else { Cursor::default() };
    let lines = grid.lines();
    for (EventRate { event, rate }, y) in events[grid.window(selected, events.len())].iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "COUNT", y, Count(event.count), theme.strong);
        let rate = look.rate(event.count, *rate);
        grid.value(canvas, "RATE", y, CountRate(rate), if rate > 0.0 { theme.events } else { theme.dim });
        grid.text(canvas, "EVENT", y, &name(event), theme.text);
        grid.text(canvas, "PROVIDER", y, &event.provider, theme.dim);
        grid.value(canvas, "SHARE", y, Percent(event.count as f64 / totals.events.max(1) as f64), theme.text);
        grid.value(canvas, "PAYLOAD", y, Bytes(event.bytes), theme.bytes);
    }
    if events.is_empty() {
        canvas.text(lines.x, lines.y, lines.width, "No event matches the filter.", theme.dim);
    }
    if active {
        grid.finish(canvas, look.state, selected, events.len());
    }
}

/// What an event is called, or its number.
pub(in crate::ui) fn name(event: &crate::analysis::EventCount) -> String {
    if event.name.is_empty() { format!("event {}", event.event_id) } else { event.name.clone() }
}
