use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use std::time::Duration;

use crate::app::test_app::{TestApp, published, recording, sample_processes, variables, walked_heap};
use crate::app::{AutoWatch, Clipboard, Effect, JobKind, JobResult, Msg, Ticket};
use crate::model::{
    FileContents, FileKind, KernelTrace, Outcome, Phase, ProcessKey, Recording, RecordingId, SafeText, StoppedBy, TraceFile,
};
use crate::ui::tests::analysis::{empty, scripted};

fn any_key() -> impl Strategy<Value = Msg> {
    let code = prop_oneof![
        // Any key but q, which quits.
        8 => prop_oneof![9 => prop::char::range(' ', '~'), 1 => prop::sample::select(vec!['ü', '日'])]
            .prop_filter("quits", |key| *key != 'q')
            .prop_map(KeyCode::Char),
        4 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right,
            KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::Backspace, KeyCode::Delete, KeyCode::F(5), KeyCode::Null,
        ]),
    ];
    let control = prop_oneof![9 => Just(KeyModifiers::NONE), 1 => Just(KeyModifiers::CONTROL)];
    (code, control).prop_map(|(code, modifiers)| Msg::Key(KeyEvent::new(code, modifiers)))
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Starting),
        Just(Phase::Recording),
        any::<u16>().prop_map(|bytes| Phase::Stopping { since: Duration::from_millis(bytes.into()), bytes: bytes.into() }),
        any::<(bool, bool)>().prop_map(|(complete, file)| {
            let file = file.then(|| "/x".into());
            Phase::Done(Outcome { stopped_by: StoppedBy::Size, complete, file, trouble: Some("\u{1b}".into()) })
        }),
    ]
}

fn any_msg() -> impl Strategy<Value = Msg> {
    let ticket = || (0_u64..6).prop_map(Ticket);
    let mouse = prop::sample::select(vec![
        MouseEventKind::Down(MouseButton::Left),
        MouseEventKind::ScrollUp,
        MouseEventKind::ScrollDown,
        MouseEventKind::Drag(MouseButton::Left),
        MouseEventKind::Up(MouseButton::Left),
        MouseEventKind::Moved,
    ]);
    prop_oneof![
        12 => any_key(),
        2 => (mouse, 0_u16..220, 0_u16..70).prop_map(|(kind, column, row)| Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })),
        1 => any::<String>().prop_map(Msg::Paste),
        1 => (0_u16..210, 0_u16..70).prop_map(|(width, height)| Msg::Resize(width, height)),
        2 => Just(Msg::Tick),
        2 => prop::sample::subsequence(sample_processes(), 0..=8).prop_map(Msg::Processes),
        1 => (ticket(), any::<bool>()).prop_map(|(ticket, good)| Msg::Environment { ticket, result: if good { Ok(variables()) } else { Err("no".into()) } }),
        2 => (0_u32..4, 0_u64..200, any_phase()).prop_map(|(id, seconds, phase)| Msg::Recording(Box::new(recording(id, seconds, phase)))),
        2 => (0_u32..4, any::<bool>(), any_phase()).prop_map(|(id, full, phase)| {
            let analysis = Some(if full { scripted() } else { empty() });
            Msg::Recording(Box::new(Recording { analysis, ..recording(id, 42, phase) }))
        }),
        1 => prop::sample::select(vec![42, 4242]).prop_map(|pid| Msg::TracepointsMissing { key: ProcessKey { pid, started: u64::from(pid) * 10 }, missing: vec!["no".into()] }),
        2 => (0_u32..4, any_phase()).prop_map(|(id, phase)| {
            let kernel = Some(KernelTrace { tracepoints: vec!["all".to_owned()], session: None });
            Msg::Recording(Box::new(Recording { kernel, ..recording(id, 42, phase) }))
        }),
        1 => (ticket(), 0..90_usize).prop_map(|(ticket, n)| Msg::ProgramOutput { ticket, lines: vec![SafeText::new("a line"); n].into() }),
        1 => (ticket(), 0_u32..4).prop_map(|(ticket, id)| Msg::Launched { ticket, recording: Box::new(recording(id, 0, Phase::Starting)) }),
        1 => (0_u32..4).prop_map(|id| Msg::TraceFailed { id: RecordingId(id), reason: "no".into() }),
        1 => (ticket(), any::<bool>()).prop_map(|(ticket, good)| Msg::JobDone { ticket, result: if good { Ok(JobResult::default()) } else { Err("no".into()) } }),
        2 => (ticket(), 0_u32..200).prop_map(|(ticket, figure)| Msg::WatchReport { ticket, counters: published(9.0, 1.0, figure.into(), figure.into(), figure.into()), usage: Default::default() }),
        1 => (ticket(), any::<bool>()).prop_map(|(ticket, good)| Msg::WatchEnded { ticket, trouble: (!good).then(|| "no".into()) }),
        1 => Just(Msg::Copied { label: "pid".into(), to: Clipboard::Desktop }),
        1 => (ticket(), any::<bool>()).prop_map(|(ticket, good)| Msg::HeapWalked { ticket, result: if good { Ok(walked_heap(1)) } else { Err("no".into()) } }),
        1 => ticket().prop_map(|ticket| Msg::FilesFound { ticket, files: [FileKind::Trace, FileKind::Heap].map(|kind| TraceFile { kind, path: format!("/x/{kind:?}").into(), bytes: 1, process_id: 7, start_unix_ms: 1 }).into() }),
        1 => (0..90_usize).prop_map(|n| Msg::OwnLog(vec![SafeText::new("a line"); n].into())),
        1 => prop::sample::select(vec!["", "/", "/tmp/a.dmp"]).prop_map(|path| Msg::FreeName { proposed: path.into(), free: "b\u{1b}[31m".into() }),
        1 => (ticket(), any::<bool>()).prop_map(|(ticket, full)| {
            let analysis = if full { scripted() } else { empty() };
            let contents = FileContents { analysis, bytes: 1, end: 50_000_000_000, duration: Duration::ZERO, complete: full, trouble: None };
            Msg::FileRead { ticket, result: Ok(contents) }
        }),
        1 => any::<String>().prop_map(|text| Msg::Failed(text.into())),
        1 => any::<String>().prop_map(|text| Msg::TaskPanicked(text.into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any messages: no panic, a valid selection, effects only for valid targets, a deadline that advances once reached, and a frame that
    /// renders.
    #[test]
    fn random_messages_keep_the_state_valid(messages in prop::collection::vec((any_msg(), 0_u64..5000), 1..80), readonly: bool, watches: bool) {
        let watch = if watches && !readonly { AutoWatch::Selected } else { AutoWatch::Never };
        let options = crate::app::Options { readonly, watch, ..crate::app::test_app::options() };
        let mut app = TestApp::with(options, 120, 40);
        app.send(Msg::Processes(sample_processes()));
        for (msg, wait) in messages {
            app.send(msg);
            for effect in app.take_effects() {
                let changes = matches!(
                    effect,
                    Effect::StartTrace { .. }
                        | Effect::Watch { .. }
                        | Effect::Begin { kind: JobKind::Dump(_) | JobKind::HeapWalk | JobKind::PerfMap(_) | JobKind::Control(..), .. }
                        | Effect::Begin { kind: JobKind::Launch(..) | JobKind::Port(_) | JobKind::ClosePort(..) | JobKind::CleanUp(_), .. }
                        | Effect::Begin { kind: JobKind::Producer { .. } | JobKind::Resume, .. }
                );
                prop_assert!(!(readonly && changes), "{effect:?}");
                if let Effect::Begin { key, kind: JobKind::Dump(_) | JobKind::HeapWalk | JobKind::PerfMap(_) | JobKind::Control(..), .. } | Effect::StartTrace { key, .. } | Effect::Watch { key, .. } = &effect {
                    let row = app.state.list.find(*key);
                    prop_assert!(row.is_some_and(|row| row.process.contact.is_attachable()), "{effect:?}");
                }
            }
            let list = &app.state.list;
            prop_assert_eq!(list.selected().is_none(), list.is_empty());
            prop_assert!(list.cursor().is_none_or(|cursor| cursor < list.len()));
            if app.state.is_quitting {
                return Ok(());
            }
            let deadline = app.state.next_deadline(app.now).unwrap_or_default();
            prop_assert!(deadline > Duration::ZERO, "it would never sleep");
            app.wait((deadline.as_millis() as u64 + 1).min(wait));
        }
        let theme = crate::ui::Theme::dark();
        let (width, height) = app.state.size;
        let backend = ratatui::backend::TestBackend::new(width.max(1), height.max(1));
        ratatui::Terminal::new(backend).unwrap().draw(|frame| _ = crate::ui::view(&app.state, &theme, frame)).unwrap();
    }
}
