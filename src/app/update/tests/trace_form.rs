//! The trace form: fields, validation and the resulting options.

use crate::app::test_app::{TestApp, recording};
use crate::app::{Effect, Field, FormLine, Msg, Overlay, Reply};
use crate::clr::Trigger;
use crate::model::{Conditions, Phase, Recording, RecordingId, Scheduling, TraceOptions, parse_keep};

use super::forms::{fill, form, single_process, type_text};

fn requested_options(app: &mut TestApp) -> TraceOptions {
    match app.take_effects().as_slice() {
        [Effect::StartTrace { options, .. }] => (**options).clone(),
        other => panic!("{other:?}"),
    }
}

/// Opens the trace form for process 42, which requests the missing prerequisites of tracepoints.
fn open(app: &mut TestApp) {
    app.press("O");
    let [Effect::CheckTracepoints { key }] = app.take_effects()[..] else { panic!("it was not asked") };
    assert_eq!(key.pid, 42);
}

/// Returns the questions that do not apply.
fn refused(app: &TestApp) -> Vec<usize> {
    (0..form(app).questions.len()).filter(|&at| form(app).questions[at].refused.is_some()).collect()
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

#[test]
fn enter_moves_through_fields_and_ctrl_enter_submits() {
    let mut app = single_process("11.0.0");
    open(&mut app);
    for field in 1..form(&app).questions.len() {
        app.press("⏎");
        assert_eq!(form(&app).focus, Field::Question(field));
    }
    app.press("⏎");
    assert_eq!((form(&app).focus, form(&app).buttons()[1]), (Field::Button(1), "Record"));
    app.press("⏎");
    let by_button = requested_options(&mut app);
    let mut app = single_process("11.0.0");
    open(&mut app);
    app.press("⇥⇥⇥⌃⏎");
    assert_eq!(requested_options(&mut app), by_button);
}

#[test]
fn pasted_text_does_not_displace_the_questions() {
    let mut app = single_process("11.0.0");
    open(&mut app);
    app.send(Msg::Paste("no-such-profile ".repeat(200)));
    let place = form(&app).place(&app.state.layout());
    assert_eq!(place.questions.len(), form(&app).questions.len());
    assert!(place.lines.iter().any(|(line, _)| *line == FormLine::Command("…".to_owned())), "{:?}", place.lines);
}

#[test]
fn trace_form_sets_all_options_and_shows_the_command_line() {
    let mut app = single_process("11.0.0");
    open(&mut app);
    assert_eq!(form(&app).command_line(), Some("dn-top trace 42 --profile dotnet-common --profile cpu"));
    let ids = format!("{RUNTIME}/80");
    let stop_on = format!("{RUNTIME}/ExceptionThrown:Timeout");
    fill(&mut app, &["exceptions, gc-collect", "My-Source:1:verbose", &ids, "64", "none"]);
    // Turn stacks off; blocking stays off.
    app.press("→⇥⇥");
    fill(&mut app, &["1m30s", "", &stop_on, "cpu > 80 for 10s", "5m", "a.nettrace"]);
    let line = format!(
        "dn-top trace 42 --profile exceptions --profile gc-collect --provider My-Source:1:verbose --event-ids {ids} --buffer-mb 64 --rundown none \
         --stop-on exception:Timeout --stop-when 'cpu>80 for 10s' --flight 5m --duration 1m30s -o a.nettrace --no-stacks"
    );
    assert_eq!(form(&app).command_line(), Some(line.as_str()));
    app.press("⌃y");
    assert_eq!(app.take_effects(), [Effect::Copy { text: line, label: "command line".to_owned() }]);
    assert!(app.state.overlay.is_some());
    app.press("⇤⇤⌃⏎");
    let expected = TraceOptions {
        profiles: vec!["exceptions".to_owned(), "gc-collect".to_owned()],
        providers: vec!["My-Source:1:verbose".to_owned()],
        event_ids: vec![ids],
        buffer_mb: Some(64),
        rundown: Some("none".to_owned()),
        no_stacks: true,
        stop_on: Trigger::parse(&stop_on).ok(),
        stop_when: Conditions::parse("cpu>80 for 10s").ok(),
        flight: parse_keep("5m").ok(),
        duration: Some(std::time::Duration::from_secs(90)),
        file: Some("a.nettrace".into()),
        ..TraceOptions::default()
    };
    assert_eq!(requested_options(&mut app), expected);
    // The form keeps its values for the next time, except the file, which already exists.
    open(&mut app);
    assert!(form(&app).command_line().unwrap().contains("--flight 5m --duration 1m30s --no-stacks"));
    // Starting from the profile picker uses only the profiles.
    app.press("⎋");
    app.report(recording(1, 1, Phase::Recording));
    app.press("T␣↓⏎");
    assert_eq!(requested_options(&mut app).flight, None);
}

#[test]
fn invalid_field_is_reported_in_place_and_blocks_the_start() {
    for (question, answer, problem) in [
        (0, "no-such", "there is no profile 'no-such'"),
        (1, "P:zz", "expected keywords"),
        (2, "P/x", "expected PROVIDER/ID"),
        (3, "0", "expected a number of MB above zero"),
        (4, "all", "rundown is full, none"),
        (7, "soon", "expected a time"),
        (8, "big", "is not a unit of size"),
        (9, "nothing", "expected PROVIDER/EVENT"),
        (10, "cpu", "expected NAME>VALUE"),
        (11, "1ms", "a flight recorder keeps at least one second"),
    ] {
        let mut app = single_process("11.0.0");
        open(&mut app);
        (0..question).for_each(|_| app.press("⇥"));
        assert_eq!(form(&app).focus, Field::Question(question));
        app.press("⌃u");
        type_text(&mut app, answer);
        let reported = form(&app).questions[question].problem.clone().unwrap_or_default();
        assert!(reported.contains(problem), "{answer}: {reported:?}");
        app.press("⇥⌃⏎");
        assert_eq!(app.take_effects(), [], "{answer}");
        assert_eq!(form(&app).focus, Field::Question(question), "{answer}");
        app.press("⌃u⌃⏎");
        assert_eq!(app.take_effects().len(), 1, "{answer}");
    }
    // Incompatible fields are an error of the whole form.
    let mut app = single_process("8.0.0");
    open(&mut app);
    app.press("⇥⇥⇥");
    type_text(&mut app, "0x38");
    assert_eq!(form(&app).effects()[0], "Not on 8.0.0: selecting the rundown needs .NET 9.");
    app.press("⌃⏎");
    assert_eq!(app.take_effects(), []);
}

#[test]
fn fields_unsupported_by_the_runtime_are_disabled_and_skipped() {
    for (version, expected) in [("3.1.0", vec![2, 6]), ("9.0.0", vec![2, 6]), ("10.0.0", vec![6]), ("11.0.0", vec![])] {
        let mut app = single_process(version);
        app.press("O");
        assert_eq!(refused(&app), expected, "{version}");
        for _ in 0..14 {
            app.press("⇥");
            assert!(!matches!(form(&app).focus, Field::Question(at) if expected.contains(&at)), "{version}");
        }
    }
}

#[test]
fn expected_downgrades_are_shown_before_recording() {
    for (version, reported) in [("8.0.33", true), ("9.0.0", false)] {
        let mut app = single_process(version);
        open(&mut app);
        app.press("⇥⇥⇥⇥→");
        let warned = form(&app).effects().iter().any(|effect| effect.starts_with("On 8.0.33 events include stacks"));
        assert_eq!(warned, reported, "{version}: {:?}", form(&app).effects());
        app.press("⌃⏎");
        assert!(requested_options(&mut app).no_stacks, "{version}");
    }
}

#[test]
fn recording_into_tracepoints_disables_file_fields() {
    let mut app = single_process("11.0.0");
    open(&mut app);
    // Fields about files are ignored whatever their values are.
    app.press("⇥⇥⇥");
    fill(&mut app, &["64", "none"]);
    app.press("→⇥→⇥");
    fill(&mut app, &["90s", "64MB", "", "", "5m", "a.nettrace", ""]);
    type_text(&mut app, "all gc=1,2");
    assert_eq!(refused(&app), [3, 4, 5, 6, 8, 9, 10, 11, 12, 13]);
    let line = "dn-top trace 42 --profile dotnet-common --profile cpu --user-events all --user-events gc=1,2 --duration 1m30s";
    assert_eq!(form(&app).command_line(), Some(line));
    type_text(&mut app, " more");
    let problem = form(&app).questions[14].problem.clone().unwrap_or_default();
    assert!(problem.starts_with("tracepoint 'more': only one tracepoint can be the default"), "{problem}");
    app.press("⌃⏎");
    assert_eq!((app.take_effects(), form(&app).focus), (Vec::new(), Field::Question(14)));
    // Without tracepoints, the fields apply again.
    app.press("⌃u");
    assert!(refused(&app).is_empty());
    assert!(form(&app).command_line().unwrap().contains("--flight 5m"));
    type_text(&mut app, "all gc=1,2");
    app.press("⌃⏎");
    let tracepoints = vec!["all".to_owned(), "gc=1,2".to_owned()];
    let duration = Some(std::time::Duration::from_secs(90));
    let profiles = crate::clr::DASHBOARD_PROFILES.map(str::to_owned).to_vec();
    assert_eq!(requested_options(&mut app), TraceOptions { profiles, tracepoints, duration, ..TraceOptions::default() });
    assert!(app.state.recordings.all()[0].value.kernel.is_some());
}

/// Kernel data is recorded from the start, into a single file.
#[test]
fn kernel_scheduling_excludes_flight_recorder_and_tracepoints() {
    let mut app = single_process("11.0.0");
    open(&mut app);
    app.press("⇤⇤⇤→");
    assert!(form(&app).help(3)[0].contains("one .perfetto-trace with both"), "{:?}", form(&app).help(3));
    assert_eq!(refused(&app), [11, 14]);
    assert_eq!(form(&app).questions[12].about, "NAME_PID_date_time.perfetto-trace in the current folder if empty");
    assert_eq!(form(&app).command_line(), Some("dn-top trace 42 --profile dotnet-common --profile cpu --kernel"));
    app.press("⌃⏎");
    assert!(requested_options(&mut app).scheduling);
    let begun = &app.state.recordings.all()[0].value;
    assert_eq!(begun.scheduling, Some(Scheduling::Waiting));
    // The recording has no event stream that could be read or exported.
    let missing = Scheduling::Missing("there is no\u{1b} source".into());
    let now = Recording { scheduling: Some(missing), ..recording(1, 5, Phase::Recording) };
    app.report(now);
    let tracked = &app.state.recordings.all()[0];
    assert_eq!(tracked.value.scheduling, Some(Scheduling::Missing("there is no\u{fffd} source".into())));
    assert_eq!(tracked.written(), None);
    // The form keeps the value for the next time, without the excluded fields, and it can be reset.
    open(&mut app);
    assert_eq!(refused(&app), [11, 14]);
    app.press("⇤⇤←");
    assert!(refused(&app).is_empty());
    assert_eq!(form(&app).questions[12].about, "NAME_PID_date_time.nettrace in the current folder if empty");
    assert_eq!(form(&app).command_line(), Some("dn-top trace 42 --profile dotnet-common --profile cpu"));
}

#[test]
fn missing_tracepoint_prerequisites_block_the_start() {
    let mut app = single_process("10.0.0");
    open(&mut app);
    let key = app.state.list.selected().unwrap();
    let missing = ["tracefs is not mounted", "this user may not register events\u{1b}"].map(Into::into).to_vec();
    // A reply for another process, requested earlier.
    app.send(Msg::TracepointsMissing { key: crate::model::ProcessKey { pid: 7, ..key }, missing: vec!["all".into()] });
    app.send(Msg::TracepointsMissing { key, missing });
    assert_eq!(form(&app).effects(), [""; 0], "it does not matter without them");
    app.press("⇤⇤");
    let reported = ["Tracepoints: tracefs is not mounted.", "Tracepoints: this user may not register events\u{fffd}."];
    assert_eq!(form(&app).effects(), reported);
    type_text(&mut app, "all");
    app.press("⇤⌃⏎");
    assert_eq!((form(&app).effects(), form(&app).focus), (reported.map(str::to_owned).to_vec(), Field::Question(14)));
    assert_eq!(form(&app).problem.as_deref(), Some("The prerequisites of tracepoints are missing."));
    assert_eq!(app.take_effects(), []);
    // Once the prerequisites are met, the recording can be started.
    app.send(Msg::TracepointsMissing { key, missing: Vec::new() });
    app.press("⌃⏎");
    assert_eq!(requested_options(&mut app).tracepoints, ["all"]);
}

#[test]
fn blocking_the_target_needs_a_second_confirmation() {
    let mut app = single_process("11.0.0");
    open(&mut app);
    app.press("⇥⇥⇥⇥⇥⇥→");
    assert!(form(&app).effects()[0].contains("is paused"));
    app.press("⌃⏎");
    assert_eq!(app.take_effects(), []);
    assert!(form(&app).pressed_once && form(&app).effects()[0].contains("Press again"));
    app.press("⏎");
    assert!(requested_options(&mut app).block);
    app.press("O");
    assert!(!form(&app).command_line().unwrap().contains("--block"), "it is never the default");
}

#[test]
fn right_arrow_accepts_the_suggested_completion() {
    let mut app = single_process("9.0.0");
    app.press("O⇥");
    for (typed, whole) in [("microsoft-windows-dotnetruntime", RUNTIME), (":gc+exc", ":gc+exception"), (":verb", ":verbose")] {
        type_text(&mut app, typed);
        assert!(!form(&app).help(3).is_empty());
        app.press("→");
        assert!(form(&app).command_line().unwrap().ends_with(whole), "{:?}", form(&app).command_line());
    }
    assert!(form(&app).questions[1].problem.is_none());
    // The picker opens the form with the picked profiles.
    app.press("⎋T␣ O");
    assert!(form(&app).command_line().unwrap().starts_with(&format!("dn-top trace 42 --profile {}", crate::clr::profiles()[3].name)));
}

/// When a flight recorder is saved, another one starts before it ends.
#[test]
fn saving_a_flight_recorder_starts_another() {
    let mut app = TestApp::populated(120, 40);
    app.press("O⇤⇤⇤⇤⇤");
    app.take_effects();
    type_text(&mut app, "64MB");
    app.press("⌃⏎");
    let first = requested_options(&mut app);
    // Not available before the recording is running.
    app.press("S");
    assert_eq!(app.take_effects(), []);
    let kept = Some(crate::model::FlightBufferUsage { bytes: 1, span: std::time::Duration::from_secs(1), trouble: None });
    app.report(crate::model::Recording { kept: kept.clone(), ..recording(1, 5, Phase::Recording) });
    app.press("S");
    let effects = app.take_effects();
    let [Effect::StartTrace { id: RecordingId(2), options, .. }, Effect::StopTrace { id: RecordingId(1) }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(**options, first);
    assert_eq!(app.state.shown_recording().unwrap().value.id, RecordingId(2));
    // Only the first file has the entered name; the others are in the same folder.
    let options = TraceOptions { file: Some("/data/first.nettrace".into()), ..first.clone() };
    let subject = app.state.selected_subject().unwrap();
    crate::app::update::process::start_trace(&mut app.state, subject, options);
    for id in [3, 4] {
        app.report(crate::model::Recording { kept: kept.clone(), ..recording(id, 5, Phase::Recording) });
        app.press("S");
        let effects = app.take_effects();
        let [Effect::StartTrace { options, .. }, Effect::StopTrace { .. }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((options.file.as_deref(), options.folder.as_deref()), (None, Some("/data".as_ref())), "{id}");
    }
    // A recording that keeps everything has nothing to save.
    app.press("⎋⎋");
    app.report(recording(5, 5, Phase::Recording));
    app.press("S");
    assert_eq!(app.take_effects(), []);
}

#[test]
fn a_provider_is_chosen_from_lists() {
    let table = [
        // Keys in the choosers, field number, and resulting text.
        ("⇥⌃p⏎↓␣↓↓␣⏎↑⏎", 1, "Microsoft-Windows-DotNETRuntime:gc+assemblyloader:verbose"),
        ("⇥⌃p⏎↓⏎⏎", 1, "Microsoft-Windows-DotNETRuntime:gc:informational"),
        ("⇥⌃p⏎⏎⏎", 1, "Microsoft-Windows-DotNETRuntime::informational"),
        // First a provider without named keywords, then another one.
        ("⇥⌃p↓↓↓↓⏎↓⏎⌃p⏎↓⏎⏎", 1, "System.Runtime::warning Microsoft-Windows-DotNETRuntime:gc:informational"),
        // Started text is continued, and completed choices are kept when the chooser is canceled.
        ("⇥tpl⌃p⏎⎋", 1, "System.Threading.Tasks.TplEventSource:"),
        ("⇥Microsoft-Windows-DotNETRuntime:gc+exc⌃p↓⏎⏎", 1, "Microsoft-Windows-DotNETRuntime:gc+exception:informational"),
        ("⇥⌃p⎋", 1, ""),
        ("⌃u⌃p↓␣↓↓↓␣⏎", 0, "dotnet-common gc-collect"),
        ("⇥⇥⌃p⏎␣↓␣⏎", 2, "Microsoft-Windows-DotNETRuntime/1,2"),
    ];
    for (keys, at, text) in table {
        let mut app = single_process("10.0.0");
        app.press("O");
        app.press(keys);
        let form = form(&app);
        let Reply::Text(input) = &form.questions[at].reply else { panic!("{keys}") };
        assert_eq!(input.value(), text, "{keys}");
        assert_eq!(form.focus, Field::Question(at), "{keys}");
        let line = form.command_line().unwrap();
        assert!(text.split(' ').all(|word| line.contains(word)), "{keys}: {line}");
        assert!(text.is_empty() || form.questions[at].problem.is_none(), "{keys}: {:?}", form.questions[at].problem);
        app.press("⌃⏎");
        assert!(matches!(app.take_effects().as_slice(), [.., Effect::StartTrace { .. }]), "{keys}");
    }
    // A field without choices is unaffected.
    let mut app = single_process("10.0.0");
    app.press("O⇥⇥⇥⌃p");
    assert!(matches!(app.state.overlay, Some(Overlay::Form(_))));
}
