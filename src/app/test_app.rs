//! A test harness for the app: sample processes, a state, and simulated key presses.

mod figures;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::analysis::CountersSnapshot;
use crate::app::{AutoWatch, Effect, Msg, Now, Options, Overlay, Pick, State, Ticket, update};
use crate::ipc::RuntimeVersion;
use crate::model::{
    Contact, Environment, EnvironmentSource, FileContents, FileKind, Phase, Process, ProcessKey, Rate, Recording, RecordingAnalysis,
    RecordingId, RunState, TraceFile, Trouble, Usage, Variable,
};

pub(crate) use figures::{add_counter, healthy, metered, published, walked_heap};

/// 2026-11-21, 08:30:21 UTC.
pub(crate) const START_UNIX_MS: u64 = 1_795_249_821_000;

/// A state, the time, and pending effects.
pub(crate) struct TestApp {
    pub(crate) state: State,
    pub(crate) now: Now,
    pub(crate) effects: Vec<Effect>,
}

pub(crate) fn options() -> Options {
    Options {
        searched: vec!["/tmp".to_owned(), "/run/user/1000".to_owned()],
        user: "app".to_owned(),
        elevate: Some("with sudo"),
        watch: AutoWatch::Never,
        ..Options::default()
    }
}

pub(crate) fn process(pid: u32, name: &str) -> Process {
    Process {
        name: name.into(),
        runtime: Some(RuntimeVersion::new("9.0.7")),
        os: Some("Linux".into()),
        arch: Some("x64".into()),
        rid: Some("linux-x64".into()),
        command_line: format!("/usr/bin/dotnet /srv/{name}/{name}.dll --urls http://*:8080").into(),
        uid: 1000,
        user: Some("app".into()),
        socket: Some(PathBuf::from(format!("/tmp/dotnet-diagnostic-{pid}-{}-socket", u64::from(pid) * 10))),
        started_unix_ms: START_UNIX_MS - 11_520_000,
        usage: Usage { cpu_percent: Some(1.5), rss_bytes: 187_000_000, threads: 23, ..Usage::default() },
        contact: Contact::Ok,
        ..Process::new(ProcessKey { pid, started: u64::from(pid) * 10 })
    }
}

/// Processes in various states.
pub(crate) fn sample_processes() -> Vec<Process> {
    let trouble = |kind, reason: &str| Contact::Trouble { kind, reason: reason.into() };
    let mut all = vec![
        Process {
            usage: Usage { cpu_percent: Some(87.4), rss_bytes: 1_240_000_000, threads: 64, ..Usage::default() },
            ..process(4242, "OrderService")
        },
        Process { started_unix_ms: START_UNIX_MS - 187_200_000, ..process(901, "WebGateway") },
        Process { runtime: Some(RuntimeVersion::new("10.0.0-preview.3")), ..process(17_311, "InventoryApi") },
        Process { runtime: None, os: None, arch: None, rid: None, ..process(660, "LegacyBilling") },
        Process {
            run_state: RunState::Suspended,
            started_unix_ms: START_UNIX_MS - 12_000,
            usage: Usage { cpu_percent: Some(0.0), rss_bytes: 21_000_000, threads: 4, ..Usage::default() },
            ..process(20_002, "ReportWorker")
        },
        Process {
            user: Some("root".into()),
            uid: 0,
            contact: trouble(Trouble::Denied, "it belongs to root: run dn-top as root, or with sudo"),
            runtime: None,
            ..process(733, "NodeAgent")
        },
        Process {
            contact: trouble(Trouble::Slow, "it answers late: a long command may be under way"),
            usage: Usage { cpu_percent: Some(12.3), rss_bytes: 422_000_000, threads: 310, ..Usage::default() },
            ..process(5150, "Search.Indexer")
        },
        Process {
            contact: trouble(Trouble::Disabled, "diagnostics are switched off in it (DOTNET_EnableDiagnostics=0)"),
            runtime: None,
            usage: Usage { cpu_percent: Some(0.3), rss_bytes: 64_000_000, threads: 17, ..Usage::default() },
            ..process(1201, "pwsh")
        },
    ];
    all[1].container = Some("3f9a1c77be02".into());
    all[1].ns_pid = 1;
    all[1].socket = Some("/proc/901/root/tmp/dotnet-diagnostic-1-9010-socket".into());
    all
}

/// Environment variables, including secrets.
pub(crate) fn variables() -> Environment {
    let variables = [
        ("ASPNETCORE_ENVIRONMENT", "Production"),
        ("ConnectionStrings__Main", "Server=db;User=app;Password=hunter2"),
        ("DOTNET_gcServer", "1"),
        ("HOME", "/srv/app"),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("PAYMENT_API_KEY", "sk-live-0123456789"),
        ("TMPDIR", "/var/tmp/app"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4317"),
    ]
    .map(|(name, value)| {
        Variable::new(&crate::ipc::Variable { name: name.to_owned(), value: value.to_owned() }, &crate::model::SecretPatterns::default())
    })
    .to_vec();
    Environment { variables, source: EnvironmentSource::Runtime }
}

/// A recording of the process `OrderService` (4242) after some seconds.
pub(crate) fn recording(id: u32, seconds: u64, phase: Phase) -> Recording {
    let steps = (seconds * 1000 / Recording::STEP.as_millis() as u64).min(Recording::HISTORY as u64);
    let history = (0..steps)
        .map(|step| {
            let wave = (step as f64 / 9.0).sin() + (step as f64 / 2.3).sin() / 4.0;
            Rate { bytes: 260_000.0 + 150_000.0 * wave, events: 9_000.0 + 4_000.0 * wave, dropped: step % 97 == 60 }
        })
        .collect::<Vec<_>>();
    let key = ProcessKey { pid: 4242, started: 42_420 };
    let what = ["dotnet-common", "dotnet-sampled-thread-time"].map(str::to_owned).to_vec();
    let file = PathBuf::from("/srv/app/OrderService_4242_20261121_083021.nettrace");
    Recording {
        phase,
        elapsed: Duration::from_secs(seconds),
        bytes: seconds * 262_144,
        events: seconds * 9_113,
        dropped: seconds / 24 * 318,
        history,
        ..Recording::starting(RecordingId(id), key, "OrderService".into(), what, file)
    }
}

pub(crate) fn trace_file(path: &str) -> TraceFile {
    TraceFile { kind: FileKind::Trace, path: path.into(), bytes: 1000, process_id: 7, start_unix_ms: 1 }
}

/// The contents of a complete file.
pub(crate) fn contents(analysis: Arc<RecordingAnalysis>) -> FileContents {
    FileContents { analysis, bytes: 1, end: 5, duration: Duration::from_secs(10), complete: true, trouble: None }
}

impl TestApp {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        Self::with(options(), width, height)
    }

    pub(crate) fn with(options: Options, width: u16, height: u16) -> Self {
        let now = Now { elapsed: Duration::ZERO, unix_ms: START_UNIX_MS, utc_offset: 0 };
        Self { state: State::new(options, (width, height), now), now, effects: Vec::new() }
    }

    /// Returns an app with some processes and all requests about the selected one answered.
    pub(crate) fn populated(width: u16, height: u16) -> Self {
        let mut app = Self::new(width, height);
        // Several scans, for a history.
        for factor in [0.2, 0.9, 0.4, 0.6, 1.1, 1.0] {
            let mut processes = sample_processes();
            for process in &mut processes {
                process.usage.cpu_percent = process.usage.cpu_percent.map(|percent| percent * factor);
            }
            app.send(Msg::Processes(processes));
        }
        app.wait(500);
        app.answer();
        app
    }

    pub(crate) fn send(&mut self, msg: Msg) {
        self.effects.extend(update(&mut self.state, msg, self.now));
    }

    /// Returns a populated app that watches the selected process, and the ticket of the watch.
    pub(crate) fn watching() -> (Self, Ticket) {
        let mut app = Self::populated(120, 40);
        app.press("w");
        match app.take_effects()[..] {
            [Effect::Watch { ticket, .. }] => (app, ticket),
            ref other => panic!("{other:?}"),
        }
    }

    /// Sends counters of a watched process.
    pub(crate) fn count(&mut self, ticket: Ticket, counters: impl Into<Arc<CountersSnapshot>>) {
        self.send(Msg::WatchReport { ticket, counters: counters.into(), usage: Box::default() });
    }

    /// Returns the labels and texts of the copy menu.
    pub(crate) fn copy_menu(&self) -> Vec<(&'static str, String)> {
        match &self.state.overlay {
            Some(Overlay::List(_, Pick::Copy(items))) => items.iter().map(|item| (item.label, item.text.clone())).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Sends the status of a recording.
    pub(crate) fn report(&mut self, recording: Recording) {
        self.send(Msg::Recording(Box::new(recording)));
    }

    /// Answers the last effect, which must be a search for recorded files.
    pub(crate) fn found(&mut self, files: Vec<TraceFile>) {
        match self.take_effects().pop() {
            Some(Effect::FindFiles { ticket, .. }) => self.send(Msg::FilesFound { ticket, files }),
            other => panic!("{other:?}"),
        }
    }

    /// Clicks a screen position.
    pub(crate) fn click(&mut self, column: u16, row: u16) {
        let (kind, modifiers) = (MouseEventKind::Down(MouseButton::Left), KeyModifiers::NONE);
        self.send(Msg::Mouse(MouseEvent { kind, column, row, modifiers }));
    }

    /// Presses the left mouse button at the first position, moves the pointer through the others, and releases it there.
    pub(crate) fn drag(&mut self, places: &[(u16, u16)]) {
        let mut kind = MouseEventKind::Down(MouseButton::Left);
        for &(column, row) in places {
            self.send(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
            kind = MouseEventKind::Drag(MouseButton::Left);
        }
        if let Some(&(column, row)) = places.last() {
            let kind = MouseEventKind::Up(MouseButton::Left);
            self.send(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        }
    }

    /// Advances the time.
    pub(crate) fn wait(&mut self, milliseconds: u64) {
        self.now.elapsed += Duration::from_millis(milliseconds);
        self.now.unix_ms += milliseconds;
        self.send(Msg::Tick);
    }

    /// Answers all pending environment requests.
    pub(crate) fn answer(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::ReadEnvironment { ticket, .. } => self.send(Msg::Environment { ticket, result: Ok(variables()) }),
                other => self.effects.push(other),
            }
        }
    }

    /// Sends published counters for the watched processes, in the order in which the watches were started.
    pub(crate) fn publish(&mut self, published: &[Arc<CountersSnapshot>]) {
        let asked: Vec<_> = self
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Watch { ticket, .. } => Some(*ticket),
                _ => None,
            })
            .collect();
        for (ticket, counters) in asked.into_iter().zip(published) {
            self.count(ticket, counters.clone());
        }
    }

    /// Presses keys: characters as they are, `⏎ ⌫ ⎋ ⇥ ⇤ ↑ ↓ ← → ␣`, and `⌃` before a letter for Ctrl. Spaces are ignored.
    pub(crate) fn press(&mut self, keys: &str) {
        let mut modifiers = KeyModifiers::NONE;
        for c in keys.chars() {
            let code = match c {
                ' ' => continue,
                '⌃' => {
                    modifiers = KeyModifiers::CONTROL;
                    continue;
                }
                '⏎' => KeyCode::Enter,
                '⌫' => KeyCode::Backspace,
                '⎋' => KeyCode::Esc,
                '⇥' => KeyCode::Tab,
                '⇤' => KeyCode::BackTab,
                '↑' => KeyCode::Up,
                '↓' => KeyCode::Down,
                '←' => KeyCode::Left,
                '→' => KeyCode::Right,
                '␣' => KeyCode::Char(' '),
                c => KeyCode::Char(c),
            };
            self.send(Msg::Key(KeyEvent::new(code, std::mem::replace(&mut modifiers, KeyModifiers::NONE))));
        }
    }

    /// Takes the effects since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Returns the pending effects other than the look-up of the free space for a dump.
    pub(crate) fn take_commands(&mut self) -> Vec<Effect> {
        let mut effects = self.take_effects();
        effects.retain(|effect| !matches!(effect, Effect::FindFreeSpace { .. }));
        effects
    }

    /// Returns the ticket of the last command.
    pub(crate) fn last_ticket(&self) -> Option<Ticket> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Begin { ticket, .. } | Effect::ReadHeap { ticket, .. } => Some(*ticket),
            _ => None,
        })
    }
}
