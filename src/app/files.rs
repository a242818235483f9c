//! Recorded files opened instead of this machine's processes, and the shown range of each.

use std::ops::RangeInclusive;
use std::time::Duration;

use ratatui::layout::{Position, Rect};

use super::layout::padded;
use super::tabs::{Role, Sign};
use super::text::width;
use super::{State, Ticket};
use crate::analysis::Timeline;
use crate::model::{Contact, FileKind, Percent, Process, ProcessKey, RecordingId, SafeText, Span, Stopwatch, TraceFile, Usage};

/// Number of steps in which the cursor moves through a file.
const CURSOR_STEPS: i64 = 50;
/// Minimum height of the details, in lines, at which events over time get lines of their own.
const MIN_TIMELINE_HEIGHT: u16 = 14;
/// Minimum width of the timeline, in columns.
const MIN_TIMELINE_WIDTH: u16 = 10;

#[derive(Debug, Default)]
pub struct OpenFile {
    pub key: ProcessKey,
    /// The number of the recording that stands for the file's contents.
    pub(super) id: RecordingId,
    pub facts: TraceFile,
    /// Bytes read so far, while the file is being read.
    pub progress: Option<u64>,
    /// Whether the file is known to be complete; `None` before that is known.
    pub complete: Option<bool>,
    /// End of the recording, nanoseconds since the start of the session; `None` before that is known.
    pub end: Option<i64>,
    /// One end of the shown range; `None` for the end of the file.
    pub cursor: Option<i64>,
    /// The other end of the shown range; `None` for the start of the file.
    pub mark: Option<i64>,
    /// The range read last; `None` for the whole file.
    pub(super) read: Option<Span>,
    /// `mark` and `cursor` of that range.
    ends_read: (Option<i64>, Option<i64>),
    /// Events over the whole duration, once the file has been read.
    pub(super) events: Option<Timeline>,
    /// The shown range before the file is read again.
    range_before: Option<(Option<i64>, Option<i64>)>,
    /// Its size before it is read again because the user wants to see what was added, bytes.
    pub(super) size_before: Option<u64>,
    /// The read in progress; `None` if the file has to be read again.
    pub(super) ticket: Option<Ticket>,
}

/// Returns whether a row stands for an open file. Several files may be of the same process, which may still run. No real process has such a late
/// start time.
pub(super) fn is_file(key: ProcessKey) -> bool {
    key.started >= u64::MAX - u64::from(u32::MAX)
}

impl OpenFile {
    /// Opens a file under the given recording number.
    pub(super) fn new(id: RecordingId, facts: TraceFile) -> Self {
        // See `is_file`.
        let key = ProcessKey { pid: facts.process_id, started: u64::MAX - u64::from(id.0) };
        Self { key, id, facts, progress: Some(0), ..Self::default() }
    }

    pub(super) fn process(&self) -> Process {
        let path = &self.facts.path;
        Process {
            name: SafeText::new(&self.facts.name()),
            command_line: SafeText::new(&path.to_string_lossy()),
            started_unix_ms: self.facts.start_unix_ms,
            usage: Usage { rss_bytes: self.facts.bytes, ..Usage::default() },
            contact: Contact::Ok,
            ..Process::new(self.key)
        }
    }

    /// Returns the shown range; `None` for the whole file.
    pub fn span(&self) -> Option<Span> {
        let end = self.end?;
        match (self.mark, self.cursor) {
            (None, None) => None,
            (mark, cursor) => {
                // Events before time zero belong to the beginning.
                let (mark, cursor) = (mark.unwrap_or(i64::MIN), cursor.unwrap_or(end));
                match (mark.min(cursor), mark.max(cursor)) {
                    // Just set. At the end of the file, a range up to there is selected next.
                    (from, to) if from == to => (to < end).then_some((from, end)),
                    span => Some(span),
                }
            }
        }
    }

    /// Formats a range of the file; empty before the file's end is known.
    pub fn range(&self, span: Option<Span>) -> String {
        self.end.map_or_else(String::new, |end| range(span, end))
    }

    /// Returns the number of detail lines for the shown range: one of text, and if there is room one of events over time and one of the range.
    pub fn range_lines(&self, height: u16) -> u16 {
        if self.facts.kind == FileKind::Heap {
            return 0;
        }
        if height >= MIN_TIMELINE_HEIGHT && self.events.is_some() { 3 } else { height.min(1) }
    }

    /// Returns the text about the shown range, and the progress of reading it.
    pub fn range_text(&self) -> String {
        let what = self.range(self.span());
        let reading = self.progress.map(|bytes| format!("reading {}", Percent(bytes as f64 / self.facts.bytes.max(1) as f64)));
        [Some(what).filter(|what| !what.is_empty()), reading].into_iter().flatten().collect::<Vec<_>>().join("   ")
    }

    /// Returns the area of events over time and of the shown range, in two lines or on the line of text, within the details.
    pub fn timeline(&self, body: Rect) -> Rect {
        let lines = self.range_lines(body.height);
        let line = Rect { height: lines.min(1), ..padded(body) };
        if lines > 1 {
            return Rect { y: line.y + 1, height: lines - 1, ..line };
        }
        let used = width(&self.range_text()).min(line.width) + 2;
        Rect { x: line.x + used, width: line.width.saturating_sub(used), ..line }
    }

    /// Returns the columns of the timeline within the shown range; `None` if there is too little room, or the end is unknown.
    pub fn columns_shown(&self, timeline: Rect) -> Option<RangeInclusive<u16>> {
        let end = self.end.filter(|_| timeline.width >= MIN_TIMELINE_WIDTH)?;
        let (from, to) = self.span().unwrap_or((0, end));
        let place = |at: i64| (at.clamp(0, end) as f64 / end.max(1) as f64 * f64::from(timeline.width - 1)).round() as u16;
        Some(place(from)..=place(to))
    }

    /// Returns the time at a column of the timeline, or at its nearer end.
    fn time_at(&self, timeline: Rect, x: u16) -> Option<i64> {
        let end = self.end.filter(|end| timeline.width >= MIN_TIMELINE_WIDTH && *end > 0)?;
        let column = x.saturating_sub(timeline.x).min(timeline.width - 1);
        Some((f64::from(column) / f64::from(timeline.width - 1) * end as f64).round() as i64)
    }

    /// Selects the range between two times without reading it.
    pub(super) fn show_range(&mut self, a: i64, b: i64) {
        let end = self.end.unwrap_or(i64::MAX);
        self.mark = Some(a.min(b)).filter(|from| *from > 0);
        self.cursor = Some(a.max(b)).filter(|to| *to < end);
    }

    /// Moves the end of the shown range that is nearer to this time there, without reading it.
    pub(super) fn move_nearer_end(&mut self, at: i64) {
        let (from, to) = self.span().unwrap_or((0, self.end.unwrap_or(0)));
        // Events before time zero belong to the beginning.
        let from = from.max(0);
        if at.abs_diff(from) < at.abs_diff(to) { self.show_range(at, to) } else { self.show_range(from, at) }
    }

    /// Has the whole file read again: it may have grown.
    pub(super) fn read_again(&mut self) {
        self.size_before = Some(self.facts.bytes);
        self.range_before = Some((self.mark, self.cursor));
        (self.mark, self.cursor, self.ticket) = (None, None, None);
    }

    /// Shows the same range as before once the whole file has been read again.
    pub(super) fn restore_range_after_reading_again(&mut self) {
        let before = self.range_before.take();
        // Unless another range was selected since.
        if let Some(before) = before.filter(|_| self.mark.is_none() && self.cursor.is_none()) {
            (self.mark, self.cursor) = before;
            self.read_if_changed(None);
        }
    }

    /// Has the shown range read if it is not this one.
    pub(super) fn read_if_changed(&mut self, before: Option<Span>) {
        if self.span() != before {
            self.ticket = None;
        }
    }

    /// Returns the number of events in each of `parts` equal intervals; empty before the file has been read.
    pub fn events_by_part(&self, parts: usize) -> Vec<f64> {
        let (Some(end), Some(events)) = (self.end.filter(|end| *end > 0), &self.events) else { return Vec::new() };
        let (step_ns, steps) = events.whole();
        // Cumulative sums; within a step, events are assumed to be evenly distributed.
        let mut sums = vec![0.0];
        sums.extend(steps.iter().scan(0.0, |sum, step| {
            *sum += step;
            Some(*sum)
        }));
        let before = |part: usize| {
            let at = end as f64 * part as f64 / parts as f64 / step_ns as f64;
            // The last step may end after the file does.
            let step = if part == parts { steps.len() } else { (at as usize).min(steps.len()) };
            sums[step] + steps.get(step).map_or(0.0, |events| events * at.fract())
        };
        (0..parts).map(|part| before(part + 1) - before(part)).collect()
    }

    /// Returns the sign of the file's status, its role, and a word.
    pub(super) fn condition(&self) -> (Sign, Role, &'static str) {
        match (self.progress, self.complete) {
            (Some(_), _) => (Sign::Waiting, Role::Accent, "reading"),
            (None, Some(true)) => (Sign::Yes, Role::Good, "complete"),
            (None, Some(false)) => (Sign::Trouble, Role::Warning, "incomplete"),
            (None, None) => (Sign::Trouble, Role::Warning, "unreadable"),
        }
    }

    /// Moves the cursor by a number of steps.
    pub(super) fn step(&mut self, steps: i64) {
        let Some(end) = self.end.filter(|end| *end > 0) else { return };
        let at = self.cursor.unwrap_or(end).saturating_add((end / CURSOR_STEPS).max(1) * steps);
        self.cursor = (at < end).then_some(at.max(0));
        self.ticket = None;
    }

    /// Sets the range start at the cursor, or resets it to the start of the file if it is already there.
    pub(super) fn set_mark(&mut self) {
        let (at, before) = (self.cursor.or(self.end), self.span());
        self.mark = if self.mark == at { None } else { at };
        self.read_if_changed(before);
    }

    /// Records that the shown range has been read.
    pub(super) fn range_read(&mut self) {
        (self.read, self.ends_read) = (self.span(), (self.mark, self.cursor));
    }

    /// Returns to the range read last, whose contents are still shown.
    pub(super) fn restore_range(&mut self) {
        (self.mark, self.cursor) = self.ends_read;
    }

    pub(super) fn reset_range(&mut self) {
        if self.mark.is_some() || self.cursor.is_some() {
            (self.mark, self.cursor, self.ticket) = (None, None, None);
        }
    }
}

impl State {
    /// Returns the local date and time at which the recording started or the heap was written; empty if unknown.
    pub(super) fn recorded_at(&self, file: &TraceFile) -> String {
        if file.start_unix_ms == 0 { String::new() } else { self.now.local(file.start_unix_ms, "%Y-%m-%d %H:%M") }
    }

    /// Returns the time in the open file at a column of its timeline; `None` if this line is not of the timeline.
    pub(super) fn time_at(&self, x: u16, y: Option<u16>) -> Option<i64> {
        let file = self.open_file().filter(|file| file.facts.kind == FileKind::Trace && self.context().is_pane())?;
        let timeline = file.timeline(self.layout().detail?.body);
        let is_there = y.is_none_or(|y| timeline.contains(Position::new(x, y)));
        is_there.then(|| file.time_at(timeline, x))?
    }
}

/// Formats a range of a file that ends at `end`; `None` for the whole file.
pub(super) fn range(span: Option<Span>, end: i64) -> String {
    let clock = |at: i64| {
        let at = Duration::from_nanos(u64::try_from(at).unwrap_or(0));
        format!("{}.{}", Stopwatch(at), at.subsec_millis() / 100)
    };
    match span {
        None => format!("whole file, {}", clock(end)),
        Some((from, to)) => format!("{} to {} of {}", clock(from), clock(to), clock(end)),
    }
}
