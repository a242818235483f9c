//! The trace form: all options of `dn-top trace`.

use crate::clr::{Trigger, parse_event_ids, parse_provider, parse_tracepoints, profile};
use crate::ipc::{Capabilities, CommandCode};
use crate::model::{Conditions, Process, SafeText, TraceOptions, format_keep, format_size, format_time, parse_keep, parse_size};

use super::words::words;
use super::{Field, Form, Purpose, Question, Subject};

/// The state of the trace form, derived from its fields.
#[derive(Debug)]
pub struct Trace {
    capabilities: Capabilities,
    runtime: String,
    pid: u32,
    /// The equivalent command line.
    pub(super) command_line: String,
    /// Missing prerequisites for tracepoints on this system, as far as known; one sentence each.
    missing: Vec<SafeText>,
    /// Why the options cannot be combined.
    conflict: Option<String>,
    warnings: Vec<String>,
}

/// Question indices.
pub(super) const PROFILES: usize = 0;
pub(super) const PROVIDERS: usize = 1;
pub(super) const EVENT_IDS: usize = 2;
const BUFFER: usize = 3;
const RUNDOWN: usize = 4;
const STACKS: usize = 5;
const FULL: usize = 6;
const DURATION: usize = 7;
const SIZE: usize = 8;
pub(super) const STOP_ON: usize = 9;
const STOP_WHEN: usize = 10;
const KEEP: usize = 11;
const FILE: usize = 12;
const SCHEDULING: usize = 13;
const TRACEPOINTS: usize = 14;

/// Questions about the event stream received by dn-top and its file.
const OF_STREAMS: [usize; 10] = [BUFFER, RUNDOWN, STACKS, FULL, SIZE, STOP_ON, STOP_WHEN, KEEP, FILE, SCHEDULING];
/// Why they do not apply to tracepoints.
const NO_STREAM: &str = "not with tracepoints: dn-top receives no events";
/// Questions that do not apply to a trace that includes kernel scheduling.
const NOT_WITH_SCHEDULING: [usize; 2] = [KEEP, TRACEPOINTS];
const WITH_SCHEDULING: &str = "not with the kernel's scheduling: that is recorded from the beginning, into one file";

const STACK_OPTIONS: &[(&str, &str)] = &[("with", "stacks of all events"), ("without", "smaller and cheaper; no method times")];
const SCHEDULING_OPTIONS: &[(&str, &str)] = &[
    ("do not record", "events of .NET alone, in a .nettrace file"),
    ("record", "which threads ran when, by Perfetto's tracing service; one .perfetto-trace with both"),
];
/// Names of the file if none is given, without and with kernel scheduling.
const FILE_NAMES: [&str; 2] =
    ["NAME_PID_date_time.nettrace in the current folder if empty", "NAME_PID_date_time.perfetto-trace in the current folder if empty"];
const FULL_OPTIONS: &[(&str, &str)] =
    &[("drop events", "losses are counted"), ("stall the target", "no loss; a slow reader blocks the process")];

impl Form {
    /// Creates the form for recording a process, filled in with the previous options.
    pub(in crate::app) fn trace(process: &Process, options: &TraceOptions) -> Self {
        let capabilities = process.capabilities();
        let needs = |code: CommandCode| capabilities.unsupported_reason(code).map(str::to_owned);
        let missing_ids = needs(CommandCode::CollectTracing5);
        let event_ids = if missing_ids.is_some() { String::new() } else { options.event_ids.join(" ") };
        let questions = vec![
            Question::text("Profiles", options.profiles.join(" "), "names of profiles"),
            Question::text(
                "Providers",
                options.providers.join(" "),
                "NAME or NAME:KEYWORDS:LEVEL:ARGUMENTS, such as My-Source:0x1:verbose:key=value",
            ),
            Question::text("Event ids", event_ids, "PROVIDER/80,81 for only these, PROVIDER/^80 for all but these").refused(missing_ids),
            Question::text(
                "Buffer MB",
                options.buffer_mb.map(|mb| mb.to_string()).unwrap_or_default(),
                "buffer size in the runtime, MB; 256 if empty",
            ),
            Question::text(
                "Rundown",
                options.rundown.clone().unwrap_or_default(),
                "full, none, or a keyword such as 0x38 (.NET 9); what the profiles need if empty",
            ),
            Question::choice("Stacks", STACK_OPTIONS, usize::from(options.no_stacks)),
            Question::choice("Buffer full", FULL_OPTIONS, 0).refused(needs(CommandCode::CollectTracing6)),
            Question::text("Stop after", options.duration.map(format_time).unwrap_or_default(), "a time such as 30s"),
            Question::text("Stop at", options.max_size.map(format_size).unwrap_or_default(), "a size of the file such as 64MB"),
            Question::text(
                "Stop on",
                options.stop_on.as_ref().map(Trigger::to_string).unwrap_or_default(),
                "PROVIDER/EVENT, with :TEXT in it, or with [FIELD=VALUE]",
            ),
            Question::text(
                "Stop when",
                options.stop_when.as_ref().map(Conditions::to_string).unwrap_or_default(),
                "cpu>80 for 10s, memory>2GB, exception:Timeout, or a counter",
            ),
            Question::text(
                "Keep last",
                options.flight.as_ref().map(format_keep).unwrap_or_default(),
                "flight recorder: keep the last 64MB or 5m; everything if empty",
            ),
            Question::text("File", "", FILE_NAMES[0]),
            Question::choice("Scheduling", SCHEDULING_OPTIONS, usize::from(options.scheduling)),
            Question::text(
                "Tracepoints",
                options.tracepoints.join(" "),
                "user_events tracepoints instead of a file, for perf: NAME, or NAME=ID,ID",
            ),
        ];
        let runtime = process.runtime.as_ref().map_or_else(|| "3.x".to_owned(), |version| version.as_str().to_owned());
        let trace = Trace {
            capabilities,
            runtime,
            pid: process.key.pid,
            command_line: String::new(),
            missing: Vec::new(),
            conflict: None,
            warnings: Vec::new(),
        };
        let subject = Some(Subject::of(process));
        let mut form = Self::new(Purpose::Trace(trace), subject, "Record", &["Cancel", "Record"], Vec::new(), questions);
        form.check();
        form
    }

    /// Parses the fields: the valid options, and the invalid fields with reasons.
    fn read(&self) -> (TraceOptions, Vec<(usize, String)>) {
        let mut wrong = Vec::new();
        fn optional<T>(form: &Form, at: usize, wrong: &mut Vec<(usize, String)>, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
            parse(form.answer(at)?).map_err(|problem| wrong.push((at, problem))).ok()
        }
        let list = |at: usize| self.answer(at).map(words).unwrap_or_default();
        let (providers, event_ids, tracepoints) = (list(PROVIDERS), list(EVENT_IDS), list(TRACEPOINTS));
        let profiles = self.typed_profiles(PROFILES);
        wrong.extend(profiles.iter().find_map(|name| profile(name).err()).map(|error| (PROFILES, error.to_string())));
        wrong.extend(providers.iter().find_map(|spec| parse_provider(spec).err()).map(|error| (PROVIDERS, error.problem.to_string())));
        wrong.extend(event_ids.iter().find_map(|ids| parse_event_ids(ids).err()).map(|error| (EVENT_IDS, error)));
        if !tracepoints.is_empty() {
            wrong.extend(parse_tracepoints(&tracepoints).err().map(|error| (TRACEPOINTS, error)));
        }
        let megabytes = |text: &str| match text.parse() {
            Ok(megabytes @ 1u32..) => Ok(megabytes),
            _ => Err("expected a number of MB above zero".to_owned()),
        };
        let options = TraceOptions {
            profiles,
            providers,
            event_ids,
            clr_events: None,
            buffer_mb: optional(self, BUFFER, &mut wrong, megabytes),
            rundown: optional(self, RUNDOWN, &mut wrong, |text| {
                let rundown = TraceOptions { rundown: Some(text.to_owned()), ..TraceOptions::default() };
                rundown.select().map(|_| text.to_owned())
            }),
            no_stacks: self.chooses_second(STACKS),
            block: self.chooses_second(FULL),
            scheduling: self.chooses_second(SCHEDULING),
            separate: false,
            tracepoints,
            stop_on: optional(self, STOP_ON, &mut wrong, |text| Trigger::parse(text).map_err(|error| error.to_string())),
            stop_when: optional(self, STOP_WHEN, &mut wrong, Conditions::parse),
            flight: optional(self, KEEP, &mut wrong, parse_keep),
            duration: optional(self, DURATION, &mut wrong, |text| {
                humantime::parse_duration(text).map_err(|_| "expected a time such as 30s or 1h5m".to_owned())
            }),
            max_size: optional(self, SIZE, &mut wrong, parse_size),
            file: optional(self, FILE, &mut wrong, |text| Ok(text.into())),
            folder: None,
        };
        wrong.extend(options.check_file().err().map(|problem| (FILE, problem)));
        (options, wrong)
    }

    /// Returns the options, or the invalid field and the reason.
    pub(in crate::app) fn trace_options(&self) -> Result<TraceOptions, (usize, String)> {
        let (options, wrong) = self.read();
        if let Some(wrong) = wrong.into_iter().next() {
            return Err(wrong);
        }
        match &self.purpose {
            Purpose::Trace(Trace { conflict: Some(conflict), .. }) => Err((PROVIDERS, conflict.clone())),
            Purpose::Trace(Trace { missing, .. }) if !options.tracepoints.is_empty() && !missing.is_empty() => {
                Err((TRACEPOINTS, "The prerequisites of tracepoints are missing.".to_owned()))
            }
            _ => Ok(options),
        }
    }

    /// Returns whether the target is blocked while the buffer is full.
    pub(in crate::app) fn stalls(&self) -> bool {
        matches!(self.purpose, Purpose::Trace(_)) && self.chooses_second(FULL)
    }

    /// Returns the text typed for a question that applies, unless it is empty.
    fn answer(&self, question: usize) -> Option<&str> {
        Some(self.typed(question)).filter(|text| !text.is_empty() && self.questions[question].refused.is_none())
    }

    fn chooses_second(&self, question: usize) -> bool {
        self.chosen(question) == 1 && self.questions[question].refused.is_none()
    }

    pub(in crate::app) fn take_missing(&mut self, missing: Vec<SafeText>) {
        if let Purpose::Trace(trace) = &mut self.purpose {
            trace.missing = missing;
        }
    }

    /// Disables or re-enables questions for this reason.
    fn refuse(&mut self, questions: &[usize], why: &'static str, is_so: bool) {
        for at in questions {
            let refused = &mut self.questions[*at].refused;
            match refused.as_deref() {
                None if is_so => *refused = Some(why.to_owned()),
                Some(reason) if reason == why && !is_so => *refused = None,
                _ => {}
            }
        }
    }

    pub(in crate::app) fn check(&mut self) {
        match self.purpose {
            Purpose::Trace(_) => {}
            Purpose::Export(_) => return self.propose_path(),
            _ => return,
        }
        self.refuse(&OF_STREAMS, NO_STREAM, self.answer(TRACEPOINTS).is_some());
        let with_scheduling = self.chooses_second(SCHEDULING);
        self.refuse(&NOT_WITH_SCHEDULING, WITH_SCHEDULING, with_scheduling);
        self.questions[FILE].about = FILE_NAMES[usize::from(with_scheduling)];
        let (options, wrong) = self.read();
        for (at, question) in self.questions.iter_mut().enumerate() {
            question.problem = wrong.iter().find(|(other, _)| *other == at).map(|(_, problem)| problem.clone());
        }
        let Purpose::Trace(trace) = &mut self.purpose else { return };
        trace.command_line = options.command_line(&trace.pid.to_string());
        (trace.conflict, trace.warnings) = match options.select() {
            _ if !wrong.is_empty() => (None, Vec::new()),
            Err(conflict) => (Some(conflict), Vec::new()),
            Ok(selected) => match options.expected_downgrades(&trace.capabilities) {
                Err(missing) => (Some(format!("Not on {}: {missing}.", trace.runtime)), selected.warnings),
                Ok(losses) => {
                    let expected = losses.iter().map(|loss| format!("On {} {loss}.", trace.runtime));
                    (None, expected.chain(selected.warnings).collect())
                }
            },
        };
    }
}

impl Trace {
    pub(super) fn effects(&self, form: &Form) -> Vec<String> {
        let stalls = form.stalls().then(|| {
            let again = if form.pressed_once { " Press again to continue." } else { "" };
            format!("The process is paused whenever its events are not read fast enough: a slow disk stalls it.{again}")
        });
        let about_tracepoints = form.focus == Field::Question(TRACEPOINTS) || !form.typed(TRACEPOINTS).is_empty();
        let missing = self.missing.iter().filter(|_| about_tracepoints).map(|missing| format!("Tracepoints: {missing}."));
        self.conflict.clone().into_iter().chain(missing).chain(stalls).chain(self.warnings.iter().take(1).cloned()).collect()
    }
}
