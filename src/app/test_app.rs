//! A test harness for the app: sample processes, a state, and simulated key presses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::analysis::{
    CounterKind, CounterSnapshot, CounterSource, CountersSnapshot, HeapSnapshot, HeapType, HistogramReading, Live, MeterNotice, PathStep,
    RetainedType, Retention, RootPath, RuntimeStats,
};
use crate::app::{AutoWatch, Effect, Msg, Now, Options, Overlay, Pick, State, Ticket, WalkedHeap, update};
use crate::ipc::RuntimeVersion;
use crate::model::{
    Contact, Environment, EnvironmentSource, FileContents, FileKind, Phase, Process, ProcessKey, Rate, Recording, RecordingAnalysis,
    RecordingId, RunState, TraceFile, Trouble, Usage, Variable,
};

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

/// Counters published by a process's runtime, as shown by a watch after some seconds.
pub(crate) fn published(heap_mb: f64, allocated: f64, gc_percent: f64, exceptions: f64, queue: f64) -> Arc<CountersSnapshot> {
    use CounterKind::{Counter, Gauge};
    let runtime = |kind, name: &str, display_name: &str, unit: &str, value: f64| CounterSnapshot {
        source: CounterSource::EventCounter,
        kind,
        group: "System.Runtime".to_owned(),
        name: name.to_owned(),
        display_name: display_name.to_owned(),
        unit: unit.to_owned(),
        tags: String::new(),
        value: Some(if kind == Counter { value * 42.0 } else { value }),
        delta: (kind == Counter).then_some(value),
        rate: (kind == Counter).then_some(value),
        scaled_rate: (kind == Counter).then_some((value, 1.0)),
        spread: None,
        histogram: None,
        interval_s: Some(1.0),
        at: 42_000_000_000,
        history: (1..=42).map(|second| (second * 1_000_000_000, value * (1.0 + (second as f64 / 5.0).sin() / 4.0))).collect(),
    };
    let counters = vec![
        runtime(Counter, "alloc-rate", "Allocation Rate", "B", allocated),
        runtime(Gauge, "cpu-usage", "CPU Usage", "%", 12.5),
        runtime(Counter, "exception-count", "Exception Count", "", exceptions),
        runtime(Gauge, "gc-heap-size", "GC Heap Size", "MB", heap_mb),
        runtime(Gauge, "threadpool-queue-length", "ThreadPool Queue Length", "", queue),
        runtime(Gauge, "time-in-gc", "% Time in GC since last GC", "%", gc_percent),
    ];
    let stats = RuntimeStats {
        heap: Some(heap_mb * 1e6),
        allocation_rate: Some(allocated),
        gc_time_percent: Some(gc_percent),
        exceptions: Some(exceptions),
        queue_length: Some(queue),
        ..RuntimeStats::default()
    };
    Arc::new(CountersSnapshot { counters, stats, ..Live::default().snapshot(0).counters })
}

/// The same, plus counters of a meter.
pub(crate) fn metered() -> Arc<CountersSnapshot> {
    let mut snapshot = (*published(61.4, 4.2e6, 1.3, 3.0, 0.0)).clone();
    let meter = |kind, name: &str, unit: &str, tags: &str, value: f64| CounterSnapshot {
        source: CounterSource::Meter,
        kind,
        group: "Shop.Meter".to_owned(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        unit: unit.to_owned(),
        tags: tags.to_owned(),
        value: Some(value),
        ..snapshot.counters[1].clone()
    };
    let histogram = |tags: &str, value: f64, count: u64| CounterSnapshot {
        histogram: Some(HistogramReading {
            quantiles: vec![(0.5, value), (0.95, value * 4.0), (0.99, value * 9.5)],
            count: Some(count),
            sum: Some(value * 1.4 * count as f64),
            total_count: count * 42,
            total_sum: value * 1.4 * 42.0 * count as f64,
            history: snapshot.counters[1]
                .history
                .iter()
                .enumerate()
                .map(|(second, (at, _))| {
                    let value = value * (1.0 + (second % 7) as f64 / 4.0);
                    (*at, [value, value * 4.0, value * 9.5])
                })
                .collect(),
        }),
        ..meter(CounterKind::Histogram, "checkout.duration", "ms", tags, value)
    };
    let shop =
        [meter(CounterKind::Gauge, "basket.items", "{item}", "", 7.25), histogram("pay=card", 19.0, 57), histogram("pay=invoice", 48.0, 3)];
    snapshot.counters.splice(0..0, shop);
    snapshot.notices.push(MeterNotice::TimeSeriesLimit);
    Arc::new(snapshot)
}

/// The result of the nth heap walk, with a growing cache.
pub(crate) fn walked_heap(walk: u64) -> Arc<WalkedHeap> {
    let named = |name: &str, module: &str, objects: u64, bytes: u64| HeapType { name: name.into(), module: module.into(), objects, bytes };
    let types = vec![
        named("Shop.Pricing.Quote", "Shop.Pricing", 20_000 * walk, 3_200_000 * walk),
        named("System.String", "System.Private.CoreLib", 41_210, 2_900_400),
        named(
            "System.Collections.Generic.Dictionary<System.String,Shop.Pricing.Quote>+Entry[]",
            "System.Private.CoreLib",
            3,
            500_000 * walk,
        ),
        named("System.Byte[]", "System.Private.CoreLib", 900 / walk, 410_000 / walk),
        named("", "", 12, 960),
    ];
    let (objects, bytes) = types.iter().fold((40, 1600), |(objects, bytes), named| (objects + named.objects, bytes + named.bytes));
    let step = |name: &str, count| PathStep::Objects { name: name.to_owned(), count };
    let cache = [step("Shop.Pricing.QuoteCache", 1), step(&types[2].name, 1), step(&types[0].name, 1)];
    let worker = [step("Shop.Pricing.Worker", 1), step("Shop.Pricing.Node", 640), PathStep::Omitted(3000), step(&types[0].name, 1)];
    let path = |root: &str, steps: &[PathStep]| RootPath { root: root.to_owned(), steps: steps.to_vec() };
    let of = |named: &HeapType, paths| Some(RetainedType { bytes: named.bytes * 3 / 2, paths });
    let paths = vec![path("static variable s_shared", &cache), path("local variable", &worker)];
    let retained = vec![of(&types[0], paths), of(&types[1], Vec::new()), of(&types[2], Vec::new()), of(&types[3], Vec::new()), None];
    let heap =
        HeapSnapshot { objects, bytes, references: objects * 2, types, others: (2, 40, 1600), is_finished: true, problems: Vec::new() };
    let retention = Some(Retention { types: retained, unreached: 7 });
    Arc::new(WalkedHeap { heap, retention, took: Duration::from_millis(1240), trouble: None })
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
            Effect::Dump { ticket, .. }
            | Effect::PerfMap { ticket, .. }
            | Effect::Export { ticket, .. }
            | Effect::Control { ticket, .. }
            | Effect::Launch { ticket, .. }
            | Effect::ServePort { ticket, .. }
            | Effect::ClosePort { ticket, .. }
            | Effect::CleanUp { ticket, .. }
            | Effect::ServeProducer { ticket, .. }
            | Effect::WalkHeap { ticket, .. }
            | Effect::WriteHeap { ticket, .. }
            | Effect::ReadHeap { ticket, .. }
            | Effect::Resume { ticket, .. } => Some(*ticket),
            _ => None,
        })
    }
}
