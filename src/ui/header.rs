//! The header line: summary and modes.

use crate::app::layout::Layout;
use crate::app::{FrameStats, State};
use crate::model::{Age, Bytes, Count, Counted};

use super::canvas::{Canvas, plural, width};

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let theme = canvas.theme;
    let area = layout.header;
    let mut right = area.right().saturating_sub(1);
    let clock = state.now.clock();
    let paused = state.pause.as_ref().map(|pause| format!("PAUSED {}", Age(state.now.elapsed.saturating_sub(pause.since.elapsed))));
    let cost = state.frame_stats.as_ref().map(|FrameStats { last, slowest, bytes, queue, .. }| {
        let bytes = bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes as u64).to_string());
        format!("frame {} µs, slowest {} µs, {bytes}, queue {queue}", last.as_micros(), slowest.as_micros())
    });
    let marks = [
        (area.width >= 60).then_some((clock.get(..5).unwrap_or_default(), theme.dim, 0)),
        state.options.demo.then_some(("DEMO", theme.chip, 1)),
        state.options.readonly.then_some(("READ-ONLY", theme.chip, 1)),
        cost.as_deref().map(|text| (text, theme.dim, 0)),
        paused.as_deref().map(|text| (text, theme.alert, 1)),
    ];
    for (text, style, pad) in marks.into_iter().flatten() {
        let columns = width(text) + 2 * pad;
        if right < columns + 12 {
            break;
        }
        right -= columns;
        canvas.style(ratatui::layout::Rect::new(right, area.y, columns, 1), style);
        canvas.text(right + pad, area.y, columns, text, style);
        right -= 1;
    }
    let (mut processes, mut attachable, recording) = (0_usize, 0_usize, state.recordings.active());
    for row in state.list.rows().iter().filter(|row| row.exited_at.is_none()) {
        processes += 1;
        attachable += usize::from(row.process.contact.is_attachable());
    }
    let dot = format!(" {} ", theme.glyphs.dot);
    let counts = [processes.to_string(), attachable.to_string(), recording.to_string()];
    let mut pieces = vec![("dn-top", theme.key), ("   ", theme.text)];
    let files = state.shows_files();
    let noun = plural(processes as u64, if files { [" file", " files"] } else { [" process", " processes"] });
    if state.list.is_loaded() {
        pieces.extend([(counts[0].as_str(), theme.strong), (noun, theme.dim)]);
    }
    if state.list.is_loaded() && !files && (area.width >= 60 || recording == 0) {
        pieces.extend([(dot.as_str(), theme.dim), (counts[1].as_str(), theme.strong), (" attachable", theme.dim)]);
    }
    let watched = state.watches.all().len();
    let watching = watched.to_string();
    if watched > 0 && area.width >= 100 {
        pieces.extend([(dot.as_str(), theme.dim), (watching.as_str(), theme.strong), (" watched", theme.dim)]);
    }
    let producer = state.producer.as_ref().map(|producer| (format!("Perfetto: {}", producer.summary()), producer.packets()));
    let packets = producer
        .as_ref()
        .map(|(_, counts)| (format!(", {}", Counted(counts.packets, "packet")), format!(", {} DROPPED", Count(counts.dropped))));
    if let (Some((summary, counts)), Some((sent, dropped))) = (&producer, &packets) {
        pieces.extend([(dot.as_str(), theme.dim), (summary.as_str(), theme.text)]);
        if area.width >= 100 && counts.packets > 0 {
            pieces.push((sent, theme.dim));
        }
        if counts.dropped > 0 {
            pieces.push((dropped, theme.alert));
        }
    }
    if recording > 0 {
        pieces.extend([(dot.as_str(), theme.dim), (counts[2].as_str(), theme.recording), (" recording", theme.recording)]);
    }
    canvas.pieces(area.x + 1, area.y, right.saturating_sub(area.x + 1), &pieces);
}
