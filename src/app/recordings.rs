//! The recordings of this run.

use std::path::PathBuf;
use std::time::Duration;

use super::{Answer, Finding, Tab, Ticket, findings};
use crate::diagnosis::Thresholds;
use crate::model::{FileContents, Phase, ProcessKey, Recording, RecordingId, SafeText, partial_path};

/// Number of ended recordings kept.
const MAX_ENDED: usize = 100;

/// A recording as last reported.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackedRecording {
    pub value: Recording,
    /// Time limit of the recording, if any.
    pub limit: Option<Duration>,
    pub began: Duration,
    pub updated: Duration,
    /// When each current finding was first seen.
    findings: Vec<((Tab, &'static str), Duration)>,
    /// State of rereading the file, which is requested after the analysis was released, see `Recordings::release`.
    pub reading: Answer<()>,
}

/// All recordings, oldest first.
#[derive(Debug, Default)]
pub struct Recordings {
    all: Vec<TrackedRecording>,
    frozen: Option<(Duration, Vec<TrackedRecording>)>,
    last: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RecordingChange {
    Nothing,
    Numbers,
    Phase,
    Ended,
}

impl TrackedRecording {
    fn new(value: Recording, limit: Option<Duration>, now: Duration) -> Self {
        Self { value, limit, began: now, updated: now, findings: Vec::new(), reading: Answer::Received(()) }
    }

    /// Returns when a finding was first seen.
    pub(super) fn first_seen(&self, finding: &Finding) -> Option<Duration> {
        self.findings.iter().find(|(kind, _)| *kind == finding.kind()).map(|(_, since)| *since)
    }

    /// Returns the file from which the analysis can be read; `None` while the recording is active or if it has none.
    fn readable(&self) -> Option<&PathBuf> {
        match &self.value.phase {
            Phase::Done(outcome) if self.value.kernel.is_none() && self.value.scheduling.is_none() => outcome.file.as_ref(),
            _ => None,
        }
    }

    /// Whether the recording has not ended yet.
    pub fn is_active(&self) -> bool {
        !matches!(self.value.phase, Phase::Done(_))
    }

    /// Whether the recording can be stopped.
    pub fn is_stoppable(&self) -> bool {
        matches!(self.value.phase, Phase::Starting | Phase::Recording)
    }

    /// Whether this is a running flight recorder. It keeps its data in segments, and its file stays empty until it is saved.
    pub fn is_unsaved(&self) -> bool {
        self.is_active() && self.value.kept.is_some()
    }

    /// Returns the file with the event stream, and whether it is still growing. `None` without a file, before the first byte, for an unsaved
    /// flight recorder, and for a Perfetto trace, which has no event stream.
    pub fn written(&self) -> Option<(PathBuf, bool)> {
        let Recording { file, phase, bytes, scheduling, .. } = &self.value;
        if scheduling.is_some() || self.is_unsaved() {
            return None;
        }
        if let Phase::Done(outcome) = phase {
            return outcome.file.clone().map(|file| (file, false));
        }
        (*bytes > 0 && !file.as_os_str().is_empty()).then(|| (partial_path(file), true))
    }

    /// Whether the recording is waiting for its remaining data.
    pub fn is_stopping(&self) -> bool {
        matches!(self.value.phase, Phase::Stopping { .. } | Phase::Joining { .. })
    }

    /// Returns the running time, extrapolated from the last report.
    pub fn elapsed(&self, now: Duration) -> Duration {
        if self.is_active() { self.value.elapsed + now.saturating_sub(self.updated) } else { self.value.elapsed }
    }
}

fn phase_order(phase: &Phase) -> u8 {
    match phase {
        Phase::Starting => 0,
        Phase::Recording => 1,
        Phase::Stopping { .. } => 2,
        Phase::Joining { .. } => 3,
        Phase::Done(_) => 4,
    }
}

impl Recordings {
    /// Returns all recordings as shown: while the display is frozen, with their figures at that time.
    pub fn shown(&self) -> &[TrackedRecording] {
        self.frozen.as_ref().map_or(&self.all, |(_, frozen)| frozen)
    }

    /// Returns the time up to which running times are shown.
    pub fn shown_at(&self, now: Duration) -> Duration {
        self.frozen.as_ref().map_or(now, |(at, _)| *at)
    }

    pub fn all(&self) -> &[TrackedRecording] {
        &self.all
    }

    /// Returns the recordings of a process, newest first.
    pub fn of(&self, key: ProcessKey) -> impl Iterator<Item = &TrackedRecording> {
        self.shown().iter().rev().filter(move |tracked| tracked.value.key == key)
    }

    pub fn is_recording(&self, key: ProcessKey) -> bool {
        self.all.iter().any(|tracked| tracked.value.key == key && tracked.is_active())
    }

    /// Returns the number of active recordings.
    pub fn active(&self) -> usize {
        self.all.iter().filter(|tracked| tracked.is_active()).count()
    }

    pub(super) fn next_id(&mut self) -> RecordingId {
        self.last += 1;
        RecordingId(self.last)
    }

    pub(super) fn begin(&mut self, value: Recording, limit: Option<Duration>, now: Duration) {
        let over = self.all.iter().filter(|tracked| !tracked.is_active()).count();
        if over >= MAX_ENDED
            && let Some(oldest) = self.all.iter().position(|tracked| !tracked.is_active())
        {
            self.all.remove(oldest);
        }
        self.all.push(TrackedRecording::new(value, limit, now));
        self.update_frozen(self.all.len() - 1);
    }

    /// Replaces the contents previously read from a file.
    pub(super) fn put(&mut self, value: Recording, now: Duration) {
        self.all.retain(|tracked| tracked.value.id != value.id);
        self.all.push(TrackedRecording::new(value, None, now));
        self.update_frozen(self.all.len() - 1);
    }

    /// Removes the contents of a closed file.
    pub(super) fn forget(&mut self, id: RecordingId) {
        let frozen = self.frozen.as_mut().map(|(_, frozen)| frozen);
        for all in std::iter::once(&mut self.all).chain(frozen) {
            all.retain(|tracked| tracked.value.id != id);
        }
    }

    /// Applies a reported snapshot. Phases only move forward: an earlier phase than the current one is ignored.
    pub(super) fn apply(&mut self, mut value: Recording, thresholds: &Thresholds, now: Duration) -> RecordingChange {
        let Some(at) = self.all.iter().position(|tracked| tracked.value.id == value.id) else { return RecordingChange::Nothing };
        let tracked = &mut self.all[at];
        if !tracked.is_active() {
            return RecordingChange::Nothing;
        }
        value.history.truncate(Recording::HISTORY);
        let change = match (phase_order(&value.phase), phase_order(&tracked.value.phase)) {
            (new, old) if new < old => {
                value.phase = tracked.value.phase.clone();
                RecordingChange::Numbers
            }
            (new, old) if new == old => RecordingChange::Numbers,
            _ if matches!(value.phase, Phase::Done(_)) => RecordingChange::Ended,
            _ => RecordingChange::Phase,
        };
        let found = value.analysis.as_ref().map(|analysis| findings(&analysis.snapshot, false, thresholds)).unwrap_or_default();
        tracked.findings = found.iter().map(|finding| (finding.kind(), tracked.first_seen(finding).unwrap_or(now))).collect();
        tracked.value = value;
        tracked.updated = now;
        if !matches!(change, RecordingChange::Numbers) {
            self.update_frozen(at);
        }
        change
    }

    /// Marks a recording as stopping, before the next report.
    pub(super) fn stop(&mut self, id: RecordingId) {
        if let Some(at) = self.all.iter().position(|tracked| tracked.value.id == id && tracked.is_stoppable()) {
            self.all[at].value.phase = Phase::Stopping { since: Duration::ZERO, bytes: 0 };
            self.update_frozen(at);
        }
    }

    /// Releases the analyses of ended recordings, which may take a megabyte each, except that of the shown one. They are read from the file again
    /// when shown.
    pub(super) fn release(&mut self, shown: Option<RecordingId>) {
        let others = self.all.iter_mut().filter(|tracked| Some(tracked.value.id) != shown && tracked.readable().is_some());
        for tracked in others {
            if tracked.value.analysis.take().is_some() || tracked.reading != Answer::Received(()) {
                tracked.reading = Answer::NotRequested;
            }
        }
    }

    /// Returns process and file of a recording whose analysis was released and has not been requested since.
    pub(super) fn released(&self, id: RecordingId) -> Option<(ProcessKey, &PathBuf)> {
        let tracked = self.all.iter().find(|tracked| tracked.value.id == id && tracked.reading == Answer::NotRequested)?;
        Some((tracked.value.key, tracked.readable()?))
    }

    /// Marks the file of a recording as being read.
    pub(super) fn requested(&mut self, id: RecordingId, ticket: Ticket) {
        if let Some(at) = self.all.iter().position(|tracked| tracked.value.id == id) {
            self.all[at].reading = Answer::Requested(ticket);
            self.update_frozen(at);
        }
    }

    /// Stores the contents of a file, or the reason for the failure. Returns false if no recording awaits them.
    pub(super) fn answer(&mut self, ticket: Ticket, result: Result<FileContents, SafeText>) -> bool {
        let Some(at) = self.all.iter().position(|tracked| tracked.reading.awaits(ticket)) else { return false };
        let tracked = &mut self.all[at];
        let read = result.map(|contents| {
            tracked.value.analysis = Some(contents.analysis);
            tracked.value.unanalyzed = 0;
        });
        tracked.reading.take(ticket, read);
        self.update_frozen(at);
        true
    }

    /// Freezes the shown recordings at a time, or unfreezes them.
    pub(super) fn freeze(&mut self, at: Option<Duration>) {
        self.frozen = at.map(|at| (at, self.all.clone()));
    }

    /// Updates a frozen recording, because its phase is always shown live.
    fn update_frozen(&mut self, at: usize) {
        let Some((_, frozen)) = &mut self.frozen else { return };
        let current = &self.all[at];
        match frozen.iter_mut().find(|tracked| tracked.value.id == current.value.id) {
            Some(shown) => shown.clone_from(current),
            None => frozen.push(current.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::recording;
    use crate::model::{Outcome, Scheduling, StoppedBy};

    const SECOND: Duration = Duration::from_secs(1);

    fn done() -> Phase {
        Phase::Done(Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some("/x".into()), trouble: None })
    }

    #[test]
    fn oldest_ended_recordings_are_forgotten() {
        let mut recordings = Recordings::default();
        for id in 1..=MAX_ENDED as u32 + 9 {
            recordings.begin(recording(id, 0, Phase::Recording), None, SECOND);
            // The first goes on.
            if id > 1 {
                recordings.apply(recording(id, 1, done()), &Thresholds::default(), SECOND);
            }
        }
        let ids: Vec<_> = recordings.all().iter().map(|tracked| tracked.value.id.0).collect();
        assert_eq!((ids.len(), &ids[..2]), (MAX_ENDED + 1, &[1, 10][..]));
    }

    #[test]
    fn time_of_an_active_recording_goes_on_between_reports() {
        let elapsed = |phase| TrackedRecording::new(recording(1, 5, phase), None, 10 * SECOND).elapsed(12 * SECOND);
        assert_eq!([Phase::Recording, done()].map(elapsed), [7 * SECOND, 5 * SECOND]);
    }

    /// The file of the tracing service has another format.
    #[test]
    fn file_with_kernel_scheduling_is_not_read() {
        let readable = |scheduling| {
            let value = Recording { scheduling, ..recording(1, 5, done()) };
            TrackedRecording::new(value, None, SECOND).readable().is_some()
        };
        assert_eq!([None, Some(Scheduling::Recording)].map(readable), [true, false]);
    }
}
