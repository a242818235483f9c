//! Recording from the command line, for `trace` and `run`: options, the progress line on stderr, the result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::Settings;
use super::exit::{Exit, Failure};
use super::interrupt::interrupted;
use super::print::{self, Value, json};
use super::target::{exchange_error, start_error};
use super::{args, export};
use crate::model::{
    ByteRate, Bytes, Count, CountRate, Counted, CpuTimeUnavailable, FlightBufferUsage, Outcome, OutputName, Phase, ProcessKey, Recording,
    SafeText, Scheduling, StoppedBy, Stopwatch, TraceFormat, TraceOptions,
};
use crate::net::ExchangeError;
use crate::net::client::Client;
use crate::net::interrupts::Interrupts;
use crate::session::{Plan, Recorder};

/// Interval at which the progress line on stderr is rewritten.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// A recording from the command line: its options, and the output of the result.
pub(super) struct RecordCommand {
    options: TraceOptions,
    /// Names of the profiles, and the explicit providers and keywords.
    what: String,
    output_name: OutputName,
    export: Option<TraceFormat>,
    json: bool,
}

impl RecordCommand {
    /// Checks the options, and prints warnings about events that would not be recorded.
    pub(super) fn new(options: &args::Record, settings: &Settings) -> Result<Self, Failure> {
        let given = trace_options(options);
        let selected = given.select().map_err(Failure::usage)?;
        selected.warnings.iter().for_each(print::message);
        if given.block {
            print::message("the target blocks whenever events arrive faster than they are read");
        }
        let output_name = settings.output_name.clone();
        let what = SafeText::new(&selected.what.join(" + ")).to_string();
        Ok(Self { options: given, what, output_name, export: options.export, json: options.output.json })
    }

    /// Prints that a process is recorded, and what is.
    pub(super) fn announce(&self, process: &str) {
        print::message(format_args!("recording {process}: {}; Ctrl-C stops it", self.what));
    }

    /// Starts the recording, unless a signal arrives first.
    pub(super) async fn begin(
        &self,
        client: Client,
        key: ProcessKey,
        name: &str,
        notes: Vec<String>,
        interrupts: &mut Interrupts,
    ) -> Result<Recorder, Failure> {
        let plan = Plan::from_options(&self.options, key, name.into(), Path::new(""), &self.output_name).map_err(anyhow::Error::msg)?;
        let plan = Plan { notes, ..plan };
        let recorder = tokio::select! {
            started = Recorder::start(client, plan) => started.map_err(start_error)?,
            () = interrupts.next() => return Err(interrupted("interrupted before the session was open: nothing was recorded")),
        };
        let progress = recorder.progress();
        let recording = progress.borrow();
        recording.notes.iter().for_each(print::message);
        if let Some(CpuTimeUnavailable { why, .. }) = &recording.cpu_unavailable {
            print::message(no_cpu_time(why));
        }
        drop(recording);
        Ok(recorder)
    }

    /// Shows the progress until the recording is finished, then its result.
    pub(super) async fn follow(&self, recorder: Recorder, interrupts: &mut Interrupts) -> Result<RecordResult, Failure> {
        let session_id = format!("{:#x}", recorder.session().0);
        let interrupted = show_until_finished(&recorder, self.options.duration, interrupts).await;
        let mut recording = recorder.finished().await;
        let notes = recording.notes_on_providers(self.options.specified_providers());
        notes.iter().for_each(print::message);
        recording.notes.extend(notes);
        let (exported, export_failure) = match self.export(&recording, interrupts).await {
            Ok(exported) => (exported, None),
            Err(failure) => (None, Some(failure)),
        };
        let reported = report(&recording, exported, session_id, self.json);
        let Phase::Done(outcome) = recording.phase else {
            return Err(anyhow::anyhow!("the recording did not finish").into());
        };
        // The interrupt may be the closing of the terminal: then nothing can be reported.
        let report_failure = reported.err().filter(|_| !interrupted).map(Failure::from);
        Ok(RecordResult { outcome, interrupted, is_flight: self.options.flight.is_some(), failure: report_failure.or(export_failure) })
    }

    /// Converts the finished file, if requested.
    async fn export(&self, recording: &Recording, interrupts: &mut Interrupts) -> Result<Option<PathBuf>, Failure> {
        let (Some(format), Phase::Done(Outcome { file: Some(file), .. })) = (self.export, &recording.phase) else { return Ok(None) };
        if format == TraceFormat::Nettrace && recording.cpu_samples.is_some() {
            // The file has that format already.
            return Ok(None);
        }
        export::beside(file, format, interrupts).await.map(Some)
    }
}

/// Message for a recording without CPU samples from the kernel.
pub(super) fn no_cpu_time(why: &SafeText) -> String {
    format!("thread time (managed only, includes waiting) is recorded instead of CPU time: {why}")
}

/// Returns the recorder if the target was resumed. Otherwise the recording ends: as long as its thread reads, dn-top cannot exit.
pub(super) async fn resumed(recorder: Recorder, result: Result<(), ExchangeError>) -> Result<Recorder, Failure> {
    match result {
        Ok(()) => Ok(recorder),
        Err(error) => {
            recorder.abandon();
            recorder.finished().await;
            Err(exchange_error(error))
        }
    }
}

/// The result of a recording.
pub(super) struct RecordResult {
    pub(super) outcome: Outcome,
    /// Whether a signal stopped the recording.
    interrupted: bool,
    /// Whether it is a flight recording, of which a write error leaves less than requested.
    is_flight: bool,
    /// Why the result could not be printed or exported.
    failure: Option<Failure>,
}

impl RecordResult {
    /// As [`exit`](Self::exit), unless a signal stopped the recording.
    pub(super) fn exit_or_interrupted(self) -> Result<Exit, Failure> {
        let interrupted = self.interrupted;
        self.exit().map(|exit| if interrupted { Exit::Interrupted } else { exit })
    }

    /// Returns the exit code: whether the file contains all that was requested.
    pub(super) fn exit(self) -> Result<Exit, Failure> {
        let failed = match self.outcome.stopped_by {
            StoppedBy::Error | StoppedBy::DiskSpace => true,
            StoppedBy::TargetExit => false,
            _ => (!self.outcome.complete || self.is_flight) && self.outcome.trouble.is_some(),
        };
        match self.failure {
            Some(failure) => Err(failure),
            None if failed => Ok(Exit::Failed),
            None => Ok(Exit::Done),
        }
    }
}

pub(super) fn trace_options(options: &args::Record) -> TraceOptions {
    let args::Record { output_file, events, max_size, buffer_mb, rundown, no_stacks, .. } = options;
    TraceOptions {
        profiles: events.selection.profile.clone(),
        providers: events.selection.provider.clone(),
        clr_events: events.selection.clr_events.clone(),
        event_ids: options.event_ids.clone(),
        buffer_mb: Some(*buffer_mb),
        rundown: rundown.clone(),
        no_stacks: *no_stacks,
        block: options.block,
        tracepoints: Vec::new(),
        stop_on: options.stop_on.clone(),
        stop_when: options.stop_when.clone(),
        scheduling: options.kernel,
        separate: options.separate,
        flight: options.flight,
        duration: events.duration,
        max_size: *max_size,
        file: output_file.clone(),
        folder: None,
    }
}

/// Shows the progress until the recording is finished. Returns whether a signal stopped it.
async fn show_until_finished(recorder: &Recorder, duration: Option<Duration>, interrupts: &mut Interrupts) -> bool {
    let mut progress = recorder.progress();
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let (mut interrupted, mut kernel) = (false, None);
    // Those from the start have been printed.
    let mut notes = progress.borrow().notes.len();
    loop {
        let now = progress.borrow().scheduling.clone();
        if now != kernel {
            print::rewrite_line("");
            now.iter().for_each(print::message);
            kernel = now;
        }
        let new: Vec<_> = progress.borrow().notes[notes..].to_vec();
        if !new.is_empty() {
            print::rewrite_line("");
            new.iter().for_each(print::message);
            notes += new.len();
        }
        tokio::select! {
            () = interrupts.next() => {
                // A signal while stopping, whatever the reason for the stop, skips the rundown.
                if interrupted || matches!(progress.borrow().phase, Phase::Stopping { .. } | Phase::Joining { .. }) {
                    recorder.abandon();
                } else {
                    recorder.stop();
                    print::rewrite_line("");
                    print::message("stopping; press Ctrl-C again to skip the rundown");
                }
                interrupted = true;
            }
            _ = ticks.tick() => show_progress(&progress.borrow(), duration),
            changed = progress.changed() => {
                if changed.is_err() || matches!(progress.borrow_and_update().phase, Phase::Done(_)) {
                    break;
                }
            }
        }
    }
    // Clear the line for the result.
    print::rewrite_line("");
    interrupted
}

fn show_progress(recording: &Recording, duration: Option<Duration>) {
    let rate = recording.history.last().copied().unwrap_or_default();
    let state = match &recording.phase {
        Phase::Starting => "waiting for the first event".to_owned(),
        Phase::Stopping { since, bytes: 0 } => format!("stopping: {}", Stopwatch(*since)),
        Phase::Stopping { since, bytes } => format!("stopping: {} of rundown in {}", Bytes(*bytes), Stopwatch(*since)),
        Phase::Joining { percent } => format!("writing CPU samples into the file: {percent} %"),
        _ => format!("{}, {}", ByteRate(rate.bytes), CountRate(rate.events)),
    };
    let dropped = if recording.dropped > 0 { format!(", {} DROPPED", Count(recording.dropped)) } else { String::new() };
    let (elapsed, bytes, events) = (recording.elapsed, Bytes(recording.bytes), Counted(recording.events, "event"));
    let elapsed = match duration {
        Some(duration) if duration <= Duration::from_secs(120) => {
            format!("{} s of {} s", elapsed.min(duration).as_secs(), duration.as_secs_f64())
        }
        Some(duration) => format!("{} of {}", Stopwatch(elapsed), Stopwatch(duration)),
        None => Stopwatch(elapsed).to_string(),
    };
    let kept = recording.kept.as_ref().map(|FlightBufferUsage { bytes, span, trouble }| {
        let span = humantime::format_duration(Duration::from_secs(span.as_secs()));
        // The reason is printed at the end: it may be longer than the line.
        let less = if trouble.is_some() { ", LESS THAN REQUESTED" } else { "" };
        format!("  flight recorder: last {span}, {} kept{less}", Bytes(*bytes))
    });
    print::rewrite_line(format_args!("{elapsed}  {bytes}, {events}{dropped}  {state}{}", kept.unwrap_or_default()));
}

/// Prints the document of a command that recorded nothing, with the reason.
pub(super) fn report_nothing(stopped_by: StoppedBy, why: &str) -> anyhow::Result<()> {
    print::json(json!({
        "file": null,
        "bytes": 0,
        "duration_ms": 0,
        "events": 0,
        "dropped": 0,
        "complete": false,
        "session_id": null,
        "stopped_by": stopped_by.word(),
        "notes": [SafeText::new(why)],
    }))
}

fn report(recording: &Recording, exported: Option<PathBuf>, session_id: String, json: bool) -> anyhow::Result<()> {
    let Phase::Done(outcome) = &recording.phase else { return Ok(()) };
    if let Some(trouble) = &outcome.trouble {
        print::message(trouble);
    }
    let shown = |file: &PathBuf| file.to_string_lossy().into_owned();
    let (file, exported) = (outcome.file.as_ref().map(shown), exported.as_ref().map(shown));
    let cpu_file = recording.cpu_file.as_ref().map(shown);
    if json {
        let mut document = json!({
            "file": file,
            "bytes": recording.bytes,
            "duration_ms": recording.elapsed.as_millis() as u64,
            "events": recording.events,
            "dropped": recording.dropped,
            "complete": outcome.complete,
            "session_id": session_id,
            "stopped_by": outcome.stopped_by.word(),
            // Requested features that the runtime does not support, and the result of a stop condition.
            "notes": recording.notes,
        });
        let optional = [
            // With `--kernel`: whether the file contains the kernel's events, and the reason if not.
            ("kernel", recording.scheduling.as_ref().map(kernel)),
            // With profile `cpu` or `slow`: number of kernel samples in the file.
            ("cpu_samples", recording.cpu_samples.map(Value::from)),
            // Also with `--separate`: the file of the kernel samples.
            ("cpu_file", cpu_file.map(Value::from)),
            // With `--export`: the converted file.
            ("exported", exported.map(Value::from)),
        ];
        optional.into_iter().for_each(|(name, value)| value.into_iter().for_each(|value| document[name] = value));
        return print::json(document);
    }
    let whole = if outcome.complete { "complete" } else { "NOT complete" };
    let (elapsed, bytes, events) = (Stopwatch(recording.elapsed), Bytes(recording.bytes), Counted(recording.events, "event"));
    // Other reasons are obvious, or have a message of their own.
    let why = match outcome.stopped_by {
        StoppedBy::Event => "; stop event received",
        StoppedBy::Size => "; size limit reached",
        _ => "",
    };
    print::message(format_args!("{bytes}, {events:#}, {} dropped in {elapsed}; {whole}{why}", recording.dropped));
    if let Some(samples) = recording.cpu_samples {
        print::message(format_args!("{:#} of the kernel as well", Counted(samples, "CPU sample")));
    }
    if let Some(cpu_file) = cpu_file {
        print::message(format_args!("{cpu_file} has the CPU samples; `dn-top report`, `export` and `open` read both files"));
    }
    match file {
        Some(file) => print::text(|out| [Some(file), exported].iter().flatten().try_for_each(|file| writeln!(out, "{file}"))),
        None => {
            print::message("no data received, so no file was kept");
            Ok(())
        }
    }
}

fn kernel(scheduling: &Scheduling) -> Value {
    let missing = match scheduling {
        Scheduling::Missing(why) => Some(why.to_string()),
        Scheduling::Ended { .. } => Some(scheduling.to_string()),
        Scheduling::Waiting | Scheduling::Recording => None,
    };
    json!({ "recorded": matches!(scheduling, Scheduling::Recording | Scheduling::Ended { .. }), "missing": missing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::CommandCode;
    use crate::net::Cause;
    use crate::net::endpoint::Endpoint;
    use crate::net::stream::address_in;
    use crate::sim::{Simulated, Spec};

    fn result(stopped_by: StoppedBy, failure: Option<Failure>) -> Result<Exit, Exit> {
        let outcome = Outcome { stopped_by, complete: true, file: None, trouble: None };
        RecordResult { outcome, interrupted: false, is_flight: false, failure }.exit().map_err(|failure| failure.exit)
    }

    #[test]
    fn failure_to_export_is_the_result() {
        assert_eq!(result(StoppedBy::Duration, None), Ok(Exit::Done));
        assert_eq!(result(StoppedBy::Error, None), Ok(Exit::Failed));
        assert_eq!(result(StoppedBy::DiskSpace, None), Ok(Exit::Failed));
        assert_eq!(result(StoppedBy::TargetExit, Some(Failure::new(Exit::Denied, anyhow::anyhow!("no")))), Err(Exit::Denied));
    }

    /// The file is a complete stream, but without what could not be written.
    #[test]
    fn flight_recording_without_its_segments_has_failed() {
        for (is_flight, trouble, exit) in
            [(true, Some("less was kept"), Exit::Failed), (true, None, Exit::Done), (false, Some("no kernel"), Exit::Done)]
        {
            let outcome = Outcome { stopped_by: StoppedBy::Duration, complete: true, file: None, trouble: trouble.map(SafeText::from) };
            assert_eq!(RecordResult { outcome, interrupted: false, is_flight, failure: None }.exit().ok(), Some(exit));
        }
    }

    #[tokio::test]
    async fn recording_ends_if_the_target_is_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = address_in(folder.path(), "socket");
        let _runtime = Simulated::start(socket.clone(), Spec::new("Web", "9.0.7", 77)).unwrap();
        let endpoint = Endpoint { key: ProcessKey { pid: 77, started: 1 }, socket };
        let config = TraceOptions::default().select().unwrap().config;
        let plan = Plan::new(endpoint.key, "Web".into(), config, folder.path().join("a.nettrace"));
        let recorder = Recorder::start(Client::new(endpoint.clone()), plan).await.unwrap();
        let progress = recorder.progress();
        let error = ExchangeError { command: CommandCode::ResumeRuntime, endpoint, cause: Cause::Ended };
        assert_eq!(resumed(recorder, Err(error)).await.map(drop).unwrap_err().exit, Exit::Failed);
        assert!(matches!(progress.borrow().phase, Phase::Done(_)), "{:?}", progress.borrow().phase);
    }
}
