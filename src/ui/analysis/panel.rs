//! Lines of figures, and charts over time.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::Timeline;
use crate::app::tabs::Look;

use super::super::canvas::{Canvas, width};
use super::super::chart::{Curve, Span, curve_with_axis};
use super::beside;

/// Draws figures (label, value, and the style of the value) one after the other, on as many lines as needed and possible. Returns the number of
/// lines. The first figures matter most.
pub(in crate::ui) fn figures<'a>(canvas: &mut Canvas<'_>, area: Rect, figures: impl IntoIterator<Item = (&'a str, &'a str, Style)>) -> u16 {
    let label_style = canvas.theme.dim;
    let (mut x, mut y, mut lines) = (area.x, area.y, 0);
    for (label, value, style) in figures {
        let wanted = width(label).saturating_add(1).saturating_add(width(value));
        if x > area.x && x.saturating_add(wanted) > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() {
            break;
        }
        lines = y - area.y + 1;
        let room = area.right().saturating_sub(x);
        x += canvas.pieces(x, y, room, &[(label, label_style), (" ", label_style), (value, style)]) + 3;
    }
    lines
}

/// A figure over time, with its appearance.
pub(super) struct History<'a> {
    pub(super) title: &'static str,
    pub(super) style: Style,
    pub(super) unit: fn(f64) -> String,
    pub(super) line: &'a Timeline,
    /// Whether the figure keeps its value until it changes; otherwise it is a sum per second, and 0 without a value.
    pub(super) keeps_value: bool,
}

/// Nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;

impl History<'_> {
    /// Returns the last five minutes, second by second.
    fn seconds(&self, now: i64, over: bool) -> Vec<f64> {
        // The current second is incomplete, and would always look low.
        let last = if over || self.keeps_value { now } else { now.saturating_sub(SECOND) };
        let count = usize::try_from(last.max(0) / SECOND + 1).unwrap_or(300).min(300);
        let mut values = self.line.recent(last, count);
        if self.keeps_value {
            let mut held = values.iter().copied().find(|value| value.is_finite()).unwrap_or(0.0);
            for value in &mut values {
                if value.is_finite() {
                    held = *value;
                }
                *value = held;
            }
        }
        values
    }
}

/// Draws charts with a time axis below: two side by side, or only the first if there is no room for both.
pub(super) fn histories(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect, histories: &[History<'_>]) {
    let now = look.analysis.snapshot.now;
    let half = area.width.saturating_sub(3) / 2;
    let (left, right) = if area.width >= 70 && histories.len() > 1 { beside(area, half) } else { (area, Rect { width: 0, ..area }) };
    for (history, area) in histories.iter().zip([left, right]) {
        if area.height < 3 || area.width == 0 {
            continue;
        }
        let values = history.seconds(now, look.has_ended());
        let span = Span::of_seconds(values.len());
        let shape = Curve { title: history.title, style: history.style, unit: history.unit, len: values.len() };
        let end = if look.has_ended() { "end" } else { "now" };
        curve_with_axis(canvas, area, &shape, span, end, |index| values.get(index).copied().unwrap_or(0.0), |_| false);
    }
}
