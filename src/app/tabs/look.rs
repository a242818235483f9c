//! The common input of the tabs of a recording.

use super::{Cell, Chart, Figure, Line, Role};
use crate::analysis::{CountersSnapshot, Counts, KernelSamples, SampleFilter, Timeline};
use crate::app::action::{Action, native_aot};
use crate::app::{State, TrackedRecording};
use crate::diagnosis::{Source, Threshold};
use crate::model::{NativeAotGap, Percent, RecordingAnalysis};

/// Nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;

/// Returns the last five minutes before `last`, second by second.
fn recent(line: &Timeline, last: i64) -> Vec<f64> {
    line.recent(last, usize::try_from(last.max(0) / SECOND + 1).unwrap_or(300).min(300))
}

/// The shown recording and its analysis.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub state: &'a State,
    pub tracked: &'a TrackedRecording,
    pub analysis: &'a RecordingAnalysis,
}

impl<'a> Look<'a> {
    /// Returns the shown recording; `None` if there is none, or no analysis of it yet.
    pub fn new(state: &'a State) -> Option<Self> {
        let tracked = state.shown_recording()?;
        Some(Self { state, tracked, analysis: tracked.value.analysis.as_deref()? })
    }

    pub fn has_ended(&self) -> bool {
        !self.tracked.is_active()
    }

    /// Returns a rate: over the last seconds, or over the whole recording if it has ended.
    pub fn rate(&self, count: u64, recent: f64) -> f64 {
        self.analysis.rate(self.has_ended(), count, recent)
    }

    /// Returns the figure for the share of time paused for GC, highlighted above the threshold of a finding.
    pub fn gc_time(&self) -> Figure {
        let share = self.analysis.snapshot.gc_share(self.has_ended());
        let is_high = share > self.state.options.thresholds.share(Threshold::GcTime);
        Figure::new("in GC", Percent(share), if is_high { Role::Warning } else { Role::Strong })
    }

    /// Charts a sum over the last five minutes, second by second.
    pub(super) fn sum_chart(&self, title: &'static str, role: Role, unit: fn(f64) -> String, line: &Timeline) -> Chart {
        let now = self.analysis.snapshot.now;
        // The current second is incomplete, and would always look low.
        let last = if self.has_ended() { now } else { now.saturating_sub(SECOND) };
        Chart { title, role, unit, values: recent(line, last) }
    }

    /// Returns a quantity over the same time that keeps its value until it changes; NaN before it is known.
    pub(super) fn levels(&self, line: &Timeline) -> Vec<f64> {
        let mut held = f64::NAN;
        let mut values = recent(line, self.analysis.snapshot.now);
        for value in &mut values {
            held = if value.is_finite() { *value } else { held };
            *value = held;
        }
        values
    }

    /// Charts such a quantity. Before it is known, it is drawn as what it will be.
    pub(super) fn level_chart(&self, title: &'static str, unit: fn(f64) -> String, line: &Timeline) -> Chart {
        let mut values = self.levels(line);
        let known = values.iter().position(|value| value.is_finite()).unwrap_or(values.len());
        let first = values.get(known).copied().unwrap_or(0.0);
        values[..known].fill(first);
        Chart { title, role: Role::Bytes, unit, values }
    }

    /// Formats a stack frame, marked if its method is unresolved.
    pub(super) fn frame(&self, frame: &str) -> Line {
        let frame = match frame.starts_with("0x") {
            true => (format!("{frame} {}", self.unresolved()), Role::Dim),
            false => (frame.to_owned(), Role::Text),
        };
        vec![("at ".to_owned(), Role::Dim), frame]
    }

    /// Returns the cell of a method, marked if it is unresolved; empty if no stack was recorded.
    pub(super) fn method(&self, name: &str) -> Cell {
        match name {
            "" => Cell::new("(no stack recorded)", Role::Dim),
            _ if name.starts_with("0x") => Cell::new(format!("{name} {}", self.unresolved()), Role::Dim),
            _ => Cell::new(name, Role::Text),
        }
    }

    /// Returns the mark after the address of an unresolved method.
    pub fn unresolved(&self) -> &'static str {
        if self.has_ended() { "(unresolved)" } else { "(not resolved yet)" }
    }

    /// Returns the shown samples: those of the chosen thread, or all.
    pub(in crate::app) fn counts(&self) -> Counts<'a> {
        self.analysis
            .time_or_waits(self.state.views.sampling.waiting)
            .count(SampleFilter { thread: self.state.shown_thread(), ..SampleFilter::ALL })
    }

    /// Returns the counters of the process while it is both recorded and watched.
    pub(super) fn counters(&self) -> Option<&'a CountersSnapshot> {
        self.state.selected_watch().filter(|_| !self.has_ended())?.counters.as_deref()
    }

    /// Returns the text for an empty list: why the source has no events, or that nothing matches.
    pub(super) fn empty(&self, is_missing: bool, source: Source, unmatched: &str) -> (String, Role) {
        if is_missing { self.missing(source) } else { (unmatched.to_owned(), Role::Dim) }
    }

    /// Returns why there are no events of a source: none occurred, or they were not recorded, and the profile that records them.
    ///
    /// The stream does not contain the enabled keywords, so for files and for manually entered providers the two cases cannot be
    /// distinguished.
    pub fn missing(&self, source: Source) -> (String, Role) {
        if let Some(gap) = self.state.gap(source) {
            let process = self.state.selected().map(|row| &row.process).filter(|_| source == Source::Samples);
            let text = process.map_or_else(|| format!("{gap}."), |process| native_aot(process, NativeAotGap::Samples));
            return (text, Role::Dim);
        }
        if source == Source::Samples
            && let Some(kernel) = KernelSamples::from_counts(self.analysis.events.iter().map(|rate| &rate.event))
        {
            return (format!("No samples of the runtime, but {kernel}."), Role::Dim);
        }
        let (events, profile) = (source.events(), source.profile());
        let so_far = if self.has_ended() { "in this recording" } else { "so far" };
        match source.is_in(&self.tracked.value.what) {
            Some(false) => {
                let key = self.state.key(Action::Profiles);
                (format!("Not in this recording: {key}, then profile {profile}, records it."), Role::Warning)
            }
            Some(true) => (format!("No {events} {so_far}."), Role::Dim),
            None => (format!("No {events} {so_far}: none occurred, or they were not recorded (profile {profile} does)."), Role::Dim),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Msg;
    use crate::app::test_app::{TestApp, recording, sample_processes};
    use crate::ipc::RuntimeVersion;
    use crate::model::{Phase, Recording};
    use crate::ui::tests::analysis::{empty, scripted};

    #[test]
    fn gc_time_is_highlighted_above_the_configured_threshold() {
        let mut app = TestApp::populated(120, 40);
        app.press("t");
        app.report(Recording { analysis: Some(scripted()), ..recording(1, 42, Phase::Recording) });
        let share = scripted().snapshot.gc.pauses.recent_share;
        assert!(share > 0.0);
        for (percent, role) in [(share * 110.0, Role::Strong), (share * 90.0, Role::Warning)] {
            app.state.options.thresholds.set(Threshold::GcTime, percent).unwrap();
            assert_eq!(Look::new(&app.state).unwrap().gc_time().role, role, "{percent}");
        }
    }

    #[test]
    fn native_aot_only_counts_lock_contention_before_9() {
        let counts = "OrderService: NativeAOT before .NET 9 only counts lock contention: counter monitor-lock-contention-count.";
        for (native_aot, version, source, expected) in [
            (false, "8.0.33", Source::Contention, "No lock contention so far."),
            (true, "8.0.33", Source::Contention, counts),
            (true, "9.0.7", Source::Contention, "No lock contention so far."),
            (true, "8.0.33", Source::Exceptions, "No exceptions so far."),
        ] {
            let mut app = TestApp::populated(120, 40);
            let mut processes = sample_processes();
            for process in &mut processes {
                process.native_aot = native_aot;
                process.runtime = Some(RuntimeVersion::new(version));
            }
            app.send(Msg::Processes(processes));
            app.press("t");
            app.report(Recording { analysis: Some(empty()), ..recording(1, 42, Phase::Recording) });
            assert_eq!(Look::new(&app.state).unwrap().missing(source).0, expected);
        }
    }
}
