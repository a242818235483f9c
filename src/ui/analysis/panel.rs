//! Lines of figures, and charts over time.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::Timeline;
use crate::app::tabs::Look;

use super::super::canvas::{Canvas, width};
use super::super::chart::{Curve, Span, curve, time_axis};
use super::beside;

/// A figure: label, value, and the style of the value.
pub(in crate::ui) type Figure = (&'static str, String, Style);

/// Draws figures one after the other, in as many lines as needed, but at most a sixth of the area. Returns the number of lines. The first figures
/// matter most.
pub(in crate::ui) fn figures(canvas: &mut Canvas<'_>, area: Rect, figures: &[Figure]) -> u16 {
    let theme = canvas.theme;
    let area = Rect { height: area.height.div_ceil(6), ..area };
    let (mut x, mut y) = (area.x, area.y);
    for (label, value, style) in figures {
        let wanted = width(label) + 1 + width(value);
        if x > area.x && x + wanted > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() {
            return area.height;
        }
        let room = area.right().saturating_sub(x);
        x += canvas.pieces(x, y, room, &[(label, theme.dim), (" ", theme.dim), (value, *style)]) + 3;
    }
    if figures.is_empty() { 0 } else { (y - area.y + 1).min(area.height) }
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
        let lines = Curve { title: history.title, style: history.style, unit: history.unit, len: values.len() };
        let plot = Rect { height: area.height - 1, ..area };
        curve(canvas, plot, &lines, span, |index| values.get(index).copied().unwrap_or(0.0), |_| false);
        time_axis(canvas, Rect { y: plot.bottom(), height: 1, ..area }, span, if look.has_ended() { "end" } else { "now" });
    }
}
