//! Charts over time, in braille: four dots high and two wide per cell. Without Unicode, one star per column.

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::tabs::Mark;
use crate::model::Recording;

use super::canvas::{Canvas, below, width};

/// Width of the axis labels, in columns.
pub(super) const AXIS: u16 = 10;

/// Time span of a chart: one of a few, so that the chart does not shift all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    steps: usize,
    step: Duration,
}

impl Span {
    /// Returns the span that fits `len` steps of [`Recording::STEP`].
    pub(super) fn of(len: usize) -> Self {
        Self::fit(len, Recording::STEP, &[Recording::HISTORY / 4, Recording::HISTORY / 2, Recording::HISTORY])
    }

    /// Returns the span that fits `len` seconds, up to five minutes.
    pub(super) fn of_seconds(len: usize) -> Self {
        Self::fit(len, Duration::from_secs(1), &[30, 60, 120, 300])
    }

    fn fit(len: usize, step: Duration, spans: &[usize]) -> Self {
        let fitting = spans.iter().find(|steps| len <= **steps).or(spans.last());
        Self { steps: fitting.copied().unwrap_or(len), step }
    }

    fn seconds(self) -> u64 {
        (self.step * self.steps as u32).as_secs()
    }
}

pub(super) struct Curve<'a> {
    pub(super) title: &'static str,
    pub(super) style: Style,
    /// Formats a value of the axis.
    pub(super) unit: fn(f64) -> String,
    /// The values, the newest last.
    pub(super) values: &'a [f64],
    /// Whether events were lost at each value; empty if none were.
    pub(super) lost: &'a [bool],
}

/// Returns the next of 1, 2, 5, 10, 20, 50 … at or above the value, so that the axis changes rarely and has round numbers.
fn round_up(value: f64) -> f64 {
    if !value.is_finite() || value <= 1.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|step| step * unit).find(|step| *step >= value).unwrap_or(10.0 * unit)
}

/// Draws a curve with its title and axis, newest on the right.
pub(super) fn curve(canvas: &mut Canvas<'_>, area: Rect, curve: &Curve<'_>, span: Span) {
    let theme = canvas.theme;
    if area.height < 2 || area.width < AXIS + 4 {
        return;
    }
    let peak = plot(canvas, below(area, 1), span, curve.unit, &[(curve.style, curve.values)], curve.lost);
    let (x, width) = (area.x + AXIS, area.width - AXIS);
    let used = canvas.text(x, area.y, width, curve.title, curve.style);
    if !curve.values.is_empty() {
        let room = width.saturating_sub(used + 2);
        canvas.text(x + used + 2, area.y, room, &format!("peak {}", (curve.unit)(peak)), theme.dim);
    }
}

/// Draws a curve like [`curve`], with its time axis below; `end` labels the right end.
pub(super) fn curve_with_axis(canvas: &mut Canvas<'_>, area: Rect, shape: &Curve<'_>, span: Span, end: &str) {
    let plot = Rect { height: area.height.saturating_sub(1), ..area };
    curve(canvas, plot, shape, span);
    time_axis(canvas, below(area, plot.height), span, end);
}

/// Draws stacked layers of values, the first at the bottom, with their axis; `lost` marks the steps with lost events. Returns the highest sum.
pub(super) fn plot(
    canvas: &mut Canvas<'_>,
    area: Rect,
    span: Span,
    unit: fn(f64) -> String,
    layers: &[(Style, &[f64])],
    lost: &[bool],
) -> f64 {
    let theme = canvas.theme;
    let plot = Rect { x: area.x + AXIS, width: area.width.saturating_sub(AXIS), ..area };
    let len = layers.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let shown = len.min(span.steps);
    let value = |layer: usize, step: usize| layers[layer].1.get(step).filter(|value| value.is_finite()).map_or(0.0, |value| value.max(0.0));
    let sum = |step: usize| (0..layers.len()).map(|layer| value(layer, step)).sum::<f64>();
    let peak = (len - shown..len).map(sum).fold(0.0, f64::max);
    let top = round_up(peak);
    // The top of an axis without any value is arbitrary.
    if peak > 0.0 {
        canvas.right(area.x, plot.y, AXIS - 1, &unit(top), theme.dim);
    }
    if plot.height > 1 {
        canvas.right(area.x, plot.bottom() - 1, AXIS - 1, "0", theme.dim);
    }
    for y in plot.y..plot.bottom() {
        canvas.sign(plot.x - 1, y, theme.glyphs.vertical, theme.border);
    }

    // Columns of dots, from the right: each shows the maximum of its steps.
    let (across, down) = if theme.glyphs.ascii { (1, 1) } else { (2, 4) };
    let (columns, rows) = (usize::from(plot.width) * across, usize::from(plot.height) * down);
    let column = |dot: usize| -> Option<(usize, usize)> {
        let from = (columns - 1 - dot) * span.steps / columns;
        let to = ((columns - dot) * span.steps / columns).max(from + 1);
        (from < shown).then(|| (len - to.min(shown), len - from))
    };
    let mut cells = vec![0_u8; usize::from(plot.height)];
    // By cell: number of dots of each layer.
    let mut shares = vec![0_u8; usize::from(plot.height) * layers.len()];
    for x in 0..usize::from(plot.width) {
        cells.fill(0);
        shares.fill(0);
        let mut loss = false;
        for (side, dots) in DOTS.iter().enumerate().take(across) {
            let dot = x * across + side;
            let Some((from, to)) = column(dot) else { continue };
            loss |= lost.get(from..to).is_some_and(|lost| lost.contains(&true));
            let Some(step) = (from..to).max_by(|a, b| sum(*a).total_cmp(&sum(*b))) else { continue };
            let (mut height, mut next) = (0.0, 0);
            for layer in 0..layers.len() {
                height += value(layer, step);
                let end = ((height / top * (rows - 1) as f64).round() as usize).min(rows - 1);
                // The lowest line is drawn even for 0.
                for dot_row in next..=end {
                    let from_top = rows - 1 - dot_row;
                    cells[from_top / down] |= if theme.glyphs.ascii { 1 } else { dots[from_top % down] };
                    shares[from_top / down * layers.len() + layer] += 1;
                }
                next = next.max(end + 1);
            }
        }
        for (cell, y) in cells.iter().zip(plot.y..).filter(|(cell, _)| **cell != 0) {
            let shares = &shares[usize::from(y - plot.y) * layers.len()..][..layers.len()];
            let layer = (0..layers.len()).max_by_key(|layer| shares[*layer]).unwrap_or(0);
            let style = if loss { theme.bad } else { layers[layer].0 };
            let sign =
                if theme.glyphs.ascii { MARKS[layer % MARKS.len()] } else { char::from_u32(0x2800 + u32::from(*cell)).unwrap_or(' ') };
            canvas.char(plot.x + x as u16, y, sign, style);
        }
    }
    peak
}

/// Draws marks for single points in time over a plot with the same area and span, whose highest value is `peak`.
pub(super) fn marks(canvas: &mut Canvas<'_>, area: Rect, span: Span, peak: f64, marks: &[Mark]) {
    let plot = Rect { x: area.x + AXIS, width: area.width.saturating_sub(AXIS), ..area };
    let (top, rows) = (round_up(peak), f64::from(plot.height.saturating_sub(1)));
    for mark in marks {
        let ago = mark.ago / span.seconds() as f64 * f64::from(plot.width);
        if ago < f64::from(plot.width) {
            let row = (mark.value / top * rows).round().min(rows);
            canvas.char(plot.right() - 1 - ago as u16, plot.bottom() - 1 - row as u16, mark.sign, canvas.theme.role(mark.role));
        }
    }
}

/// Characters for the layers of a graph without Unicode.
const MARKS: [char; 6] = ['*', 'o', '+', 'x', '#', '.'];

/// The bits of the dots of a braille cell: left and right column, from the top.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Draws the time axis below a curve.
pub(super) fn time_axis(canvas: &mut Canvas<'_>, area: Rect, span: Span, end: &str) {
    let theme = canvas.theme;
    if area.width < AXIS + 4 || area.height == 0 {
        return;
    }
    let (x, room) = (area.x + AXIS, area.width - AXIS);
    let seconds = span.seconds();
    let label = |seconds: u64| if seconds.is_multiple_of(60) { format!("-{}m", seconds / 60) } else { format!("-{seconds}s") };
    canvas.text(x, area.y, room, &label(seconds), theme.dim);
    canvas.right(x, area.y, room, end, theme.dim);
    let middle = label(seconds / 2);
    if room > 30 {
        canvas.text(x + (room - width(&middle)) / 2, area.y, room / 2, &middle, theme.dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        for (peak, top) in [
            (f64::NAN, 1.0),
            (-1.0, 1.0),
            (0.0, 1.0),
            (1.5, 2.0),
            (2.0, 2.0),
            (4.9, 5.0),
            (5.1, 10.0),
            (120_000.0, 200_000.0),
            (999.0, 1000.0),
            (1000.0, 1000.0),
        ] {
            assert_eq!(round_up(peak), top, "{peak}");
        }
    }

    #[test]
    fn shortest_fitting_time_span_is_selected() {
        for (len, seconds) in [(0, 30), (60, 30), (61, 60), (120, 60), (121, 120), (240, 120), (9999, 120)] {
            assert_eq!(Span::of(len).seconds(), seconds);
        }
        for (len, seconds) in [(0, 30), (30, 30), (31, 60), (121, 300), (9999, 300)] {
            assert_eq!(Span::of_seconds(len).seconds(), seconds);
        }
    }
}
