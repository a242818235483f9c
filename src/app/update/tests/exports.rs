use super::forms::form;
use crate::app::action::Context;
use crate::app::test_app::{TestApp, recording};
use crate::app::{Effect, ExportRequest, Field, JobKind, JobResult, Msg};
use crate::model::{Phase, Recording, TraceFormat};
use crate::ui::tests::scenes::opened;

/// Returns source, destination and format of the last requested export.
fn requested_export(app: &mut TestApp) -> (String, String, TraceFormat) {
    let effects = app.take_effects();
    let Some(Effect::Begin { kind: JobKind::Export(ExportRequest { source, destination, format, .. }), .. }) = effects.last() else {
        panic!("{effects:?}")
    };
    (source.to_string_lossy().into_owned(), destination.to_string_lossy().into_owned(), *format)
}

#[test]
fn running_recording_can_be_exported() {
    let mut app = TestApp::populated(120, 40);
    app.press("E");
    assert!(app.state.overlay.is_none() && app.last_toast().contains("No recording to export"), "{:?}", app.toast_texts());
    app.press("⏎t");
    app.wait(1000);
    // No data yet.
    app.press("E");
    assert!(app.state.overlay.is_none());
    let live = recording(1, 42, Phase::Recording);
    let (file, key) = (live.file.clone(), live.key);
    app.report(live);
    app.press("E");
    assert_eq!((app.state.context(), form(&app).focus), (Context::Form, Field::Question(0)));
    assert!(form(&app).effects()[0].contains("recorded so far"), "{:?}", form(&app).effects());
    app.press("⌃⏎");
    let ticket = app.last_ticket().unwrap();
    let (source, destination, format) = requested_export(&mut app);
    assert_eq!((source, format), (format!("{}.partial", file.display()), TraceFormat::Perfetto));
    let stem = file.to_string_lossy().strip_suffix(".nettrace").unwrap().to_owned();
    assert!(destination.starts_with(&format!("{stem}_")) && destination.ends_with(".perfetto-trace"), "{destination}");
    // The export is listed as a job, but does not keep the process busy.
    app.send(Msg::JobProgress { ticket, percent: 45 });
    let answers = |app: &TestApp| app.state.activity().iter().map(|activity| activity.answer()).collect::<Vec<_>>();
    assert!(answers(&app).contains(&"in progress: 45 %".to_owned()), "{:?}", answers(&app));
    assert!(app.state.jobs.running(key).is_none() && app.state.jobs.active() == 0);
    let done = JobResult { files: vec![destination.clone().into()], bytes: Some(1_000_000), note: None };
    let begun = |app: &TestApp| app.state.toasts.shown(app.state.now.elapsed).any(|toast| toast.text.as_str().ends_with(" …"));
    assert!(begun(&app));
    app.send(Msg::JobDone { ticket, result: Ok(done) });
    assert!(!begun(&app), "it is over");
    assert!(app.last_toast().contains("export done: ") && app.last_toast().contains(&destination), "{:?}", app.toast_texts());
    app.send(Msg::JobProgress { ticket, percent: 50 });
    assert!(answers(&app).iter().any(|answer| answer.starts_with("done, ")), "what is over stays over");
}

#[test]
fn export_path_follows_the_format_until_edited() {
    let mut app = opened(120, 40);
    let source = app.state.open_file().unwrap().facts.path.to_string_lossy().into_owned();
    let stem = source.strip_suffix(".nettrace.partial").unwrap_or(source.strip_suffix(".nettrace").unwrap_or(&source)).to_owned();
    for (keys, extension, format) in [("E⌃⏎", "perfetto-trace", TraceFormat::Perfetto), ("E→→→→→⌃⏎", "pb", TraceFormat::Pprof)]
    {
        app.press(keys);
        assert_eq!(requested_export(&mut app), (source.clone(), format!("{stem}.{extension}"), format));
    }
    app.press("E⇥⌃u/tmp/mine⇤←←⌃⏎");
    assert_eq!(requested_export(&mut app), (source.clone(), "/tmp/mine".to_owned(), TraceFormat::Csv));
    app.press("E⇥⌃u/tmp/mine.folded⇤←←⌃⏎");
    assert!(form(&app).problem.as_ref().unwrap().contains("use the extension .csv"));
    app.press("⎋E⇥⌃u⌃⏎");
    assert!(form(&app).problem.as_ref().unwrap().contains("file name"));
    app.press("⎋");
    // With a selected range; one format does not support ranges.
    app.press("[E←⌃⏎");
    assert!(form(&app).problem.as_ref().unwrap().contains("a whole file"));
    app.press("→");
    assert!(form(&app).effects()[0].contains("selected range"), "{:?}", form(&app).effects());
    app.press("⌃⏎");
    let effects = app.take_effects();
    assert!(
        matches!(
            effects.last(),
            Some(Effect::Begin { kind: JobKind::Export(ExportRequest { span: Some((i64::MIN, 49_000_000_000)), .. }), .. })
        ),
        "{effects:?}"
    );
}

#[test]
fn recording_without_a_file_is_not_exported() {
    let mut app = TestApp::populated(120, 40);
    app.press("⏎t");
    let outcome = crate::model::Outcome { stopped_by: crate::model::StoppedBy::Interrupt, complete: false, file: None, trouble: None };
    let over = Recording { bytes: 0, ..recording(1, 1, Phase::Done(outcome)) };
    app.report(over);
    app.press("E");
    assert!(app.state.overlay.is_none() && app.last_toast().contains("No recording to export"), "{:?}", app.toast_texts());
}

/// Until it is saved, a flight recorder's file is empty.
#[test]
fn running_flight_recorder_must_be_saved_before_export() {
    let mut app = TestApp::populated(120, 40);
    app.press("⏎t");
    let kept = Some(crate::model::FlightBufferUsage { bytes: 1, span: std::time::Duration::from_secs(1), trouble: None });
    app.take_effects();
    for phase in [Phase::Recording, Phase::Stopping { since: std::time::Duration::ZERO, bytes: 0 }] {
        app.report(Recording { kept: kept.clone(), ..recording(1, 42, phase) });
        app.press("E");
        assert!(app.state.overlay.is_none() && app.last_toast().contains("save it first (S)"), "{:?}", app.toast_texts());
        assert_eq!(app.take_effects(), []);
    }
    let outcome = crate::model::Outcome {
        stopped_by: crate::model::StoppedBy::Interrupt,
        complete: true,
        file: Some("a.nettrace".into()),
        trouble: None,
    };
    app.report(Recording { kept, ..recording(1, 42, Phase::Done(outcome)) });
    app.press("E⌃⏎");
    assert_eq!(requested_export(&mut app).0, "a.nettrace");
}
