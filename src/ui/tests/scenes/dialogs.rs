//! Dialogs, and states without a recording.

use crate::app::test_app::{TestApp, options, recording, sample_processes};
use crate::app::{Msg, Options};
use crate::model::{Phase, SafeText};

use super::keyed;

pub(super) fn none(width: u16, height: u16) -> TestApp {
    let mut app = TestApp::with(Options { readonly: true, demo: true, ..options() }, width, height);
    app.send(Msg::Processes(Vec::new()));
    app
}

pub(super) fn environment(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "e");
    app.answer();
    app.press("↓↓↓↓↓v↑");
    app
}

pub(super) fn own_log(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "l");
    let line = |(second, words): (u64, &str)| SafeText::new(&format!("2026-11-21T07:30:{second:02}.125Z {words}"));
    let lines = [
        (1, "ProcessInfo3 to process 4242, 1.2 ms: answered"),
        (2, "session 7 of process 4242 has begun"),
        (9, "ProcessInfo to process 733, 0.1 ms: Permission denied"),
    ];
    app.send(Msg::OwnLog(lines.map(line).into()));
    app
}

/// Keywords are suggested while a provider is being typed.
pub(super) fn providers(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O⇥");
    app.send(Msg::Paste("Microsoft-Windows-DotNETRuntime:g".to_owned()));
    app
}

/// The requirements of user_events tracepoints are missing.
pub(super) fn tracepoints_missing(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O⇤⇤");
    let missing = [
        "not supported by this kernel: needs Linux 6.4 or newer, built with CONFIG_USER_EVENTS",
        "tracefs is not mounted: run `mount -t tracefs tracefs /sys/kernel/tracing` as root",
        "this user may not register events: run dn-top with sudo",
        "the runtime is too old: it needs .NET 10",
    ];
    let key = recording(1, 0, Phase::Starting).key;
    app.send(Msg::TracepointsMissing { key, missing: missing.map(Into::into).to_vec() });
    app
}

pub(super) fn wrong_answers(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O");
    for answer in ["gc-verbos", "", "", "lots", "0xzz", "soon"] {
        app.press("⌃u");
        app.send(Msg::Paste(answer.to_owned()));
        app.press("⇥");
    }
    app.press("⇤⇤⇤");
    app
}

/// A port is served, and about to be closed.
pub(super) fn close_port(width: u16, height: u16) -> TestApp {
    let mut app = TestApp::with(Options { port: Some("/tmp/dn-top.port".into()), ..options() }, width, height);
    let mut processes = sample_processes();
    processes.iter_mut().for_each(|process| process.on_port = process.contact.is_attachable());
    app.send(Msg::Processes(processes));
    app.press("P");
    app
}
