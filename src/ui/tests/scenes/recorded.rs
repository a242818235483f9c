//! Processes with a running or finished recording.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::app::Msg;
use crate::app::test_app::{TestApp, recording, sample_processes};
use crate::model::{
    CpuTimeUnavailable, FlightBufferUsage, KernelTrace, Outcome, Phase, Recording, RecordingAnalysis, StoppedBy, ThreadUse,
};
use crate::ui::tests::analysis::{cpu_time, empty, scripted};

use super::keyed;

pub(super) fn tracing(width: u16, height: u16, seconds: u64, phase: Phase) -> TestApp {
    let mut app = keyed(width, height, "⏎t");
    app.wait(1000);
    app.report(recording(1, seconds, phase));
    app
}

/// Shows the status of a recording that has run for a while, and presses keys.
fn reported(width: u16, height: u16, recording: Recording, keys: &str) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    app.report(recording);
    app.press(keys);
    app
}

/// Events of the selected process go to tracepoints.
pub(super) fn into_kernel(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "⏎t");
    let kernel = Some(KernelTrace { tracepoints: vec!["all".to_owned(), "gc".to_owned()], session: Some("0x7f12c0a5e010".to_owned()) });
    let begun = Recording { kernel, file: PathBuf::new(), ..recording(1, 42, Phase::Recording) };
    app.report(Recording { bytes: 0, events: 0, dropped: 0, history: Vec::new(), ..begun });
    app.press(keys);
    app
}

pub(super) fn flight(width: u16, height: u16) -> TestApp {
    let kept = Some(FlightBufferUsage { bytes: 38_000_000, span: Duration::from_secs(130), trouble: None });
    reported(width, height, Recording { kept, ..recording(1, 432, Phase::Recording) }, "")
}

pub(super) fn analyzed(width: u16, height: u16, keys: &str) -> TestApp {
    let what = ["dotnet-common", "dotnet-sampled-thread-time", "gc-verbose", "contention"].map(str::to_owned).to_vec();
    let recording = Recording { analysis: Some(scripted()), what, threads: threads(), ..recording(1, 42, Phase::Recording) };
    reported(width, height, recording, keys)
}

/// The kernel samples the process.
pub(super) fn on_cpu(width: u16, height: u16, keys: &str) -> TestApp {
    let what = ["dotnet-common", "cpu"].map(str::to_owned).to_vec();
    let analysis = Some(Arc::new(RecordingAnalysis { cpu: Some(cpu_time()), ..empty().as_ref().clone() }));
    reported(width, height, Recording { analysis, what, ..recording(1, 42, Phase::Recording) }, keys)
}

/// Kernel samples were requested, but are not permitted.
pub(super) fn thread_time(width: u16, height: u16) -> TestApp {
    let what = ["dotnet-common", "cpu"].map(str::to_owned).to_vec();
    let cpu_unavailable = "process 4242 cannot be sampled: the kernel denies perf events to users without CAP_PERFMON (kernel.perf_event_paranoid is 3); run dn-top \
                  with sudo, or `sudo sysctl kernel.perf_event_paranoid=2`";
    let remedy = "`sudo sysctl kernel.perf_event_paranoid=2`, or run dn-top with sudo".into();
    let cpu_unavailable = Some(CpuTimeUnavailable { why: cpu_unavailable.into(), remedy });
    let recording = Recording { analysis: Some(scripted()), what, cpu_unavailable, ..recording(1, 42, Phase::Recording) };
    reported(width, height, recording, "7")
}

/// Threads were sampled, without any lock contention.
pub(super) fn quiet(width: u16, height: u16) -> TestApp {
    let mut analysis = (*scripted()).clone();
    analysis.snapshot.contention.count = 0;
    analysis.snapshot.thread_pool.recent.clear();
    let analysis = Some(Arc::new(analysis));
    reported(width, height, Recording { analysis, threads: threads(), ..recording(1, 42, Phase::Recording) }, "6↓")
}

/// The threads of the made-up session, as in /proc.
pub(super) fn threads() -> Arc<[ThreadUse]> {
    let thread = |thread, name: &str, cpu| ThreadUse {
        thread,
        name: name.into(),
        cpu: Duration::from_millis(cpu),
        runnable: Some(Duration::from_millis(cpu / 20)),
        state: 'S',
    };
    [
        thread(11, ".NET TP Worker", 38_120),
        thread(12, ".NET TP Worker", 140),
        thread(13, "pricing", 40_900),
        thread(77, ".NET Finalizer", 3),
    ]
    .into()
}

pub(super) fn not_recorded(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 5, Phase::Recording);
    app.report(Recording { analysis: Some(empty()), ..recording(1, 5, Phase::Recording) });
    app.press("6");
    app
}

pub(super) fn nothing_yet(width: u16, height: u16) -> TestApp {
    keyed(width, height, "⏎t4")
}

fn ended() -> Phase {
    let file = Some(PathBuf::from("/srv/app/OrderService_4242_20261121_083021.nettrace"));
    Phase::Done(Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file, trouble: None })
}

/// A finished recording remains visible.
pub(super) fn finished(width: u16, height: u16) -> TestApp {
    reported(width, height, Recording { analysis: Some(scripted()), ..recording(1, 43, ended()) }, "4")
}

pub(super) fn done(width: u16, height: u16) -> TestApp {
    reported(width, height, recording(1, 43, ended()), "")
}

pub(super) fn quit(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    app.press("⌃c");
    app
}

pub(super) fn finishing(width: u16, height: u16) -> TestApp {
    let mut app = quit(width, height);
    app.press("→⏎");
    app.report(recording(1, 44, Phase::Stopping { since: Duration::from_secs(2), bytes: 1_310_000 }));
    app.wait(1000);
    app.send(Msg::Processes(sample_processes()));
    app
}
