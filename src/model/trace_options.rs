//! Options of a recording, shared by the command line and the form of the dashboard.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::{Conditions, KernelTrace, TraceFormat, check_extension, check_not_stdout, format_size, parse_size};
use crate::clr::{DEFAULT_PROFILES, Selection, Trigger, parse_event_ids, parse_tracepoints, provider_name, select};
use crate::ipc::{Attempt, BufferMb, BufferMode, Capabilities, Downgrade, Rundown, SessionConfig, UserEvents};
use crate::nettrace::RetentionLimits;

/// Options of a recording, as given by the user. The default is the same as without any options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceOptions {
    /// Names of profiles.
    pub profiles: Vec<String>,
    /// Providers, as `NAME:KEYWORDS:LEVEL:ARGUMENTS`.
    pub providers: Vec<String>,
    /// Keywords of the runtime's own provider, as `gc+exception`.
    pub clr_events: Option<String>,
    /// Filters by event id, as `PROVIDER/80,81` or `PROVIDER/^80`.
    pub event_ids: Vec<String>,
    /// Event buffer in the runtime, in MB.
    pub buffer_mb: Option<u32>,
    /// `full`, `none` or `0xHEX`; `None` for what the profiles need.
    pub rundown: Option<String>,
    /// Record events without stacks.
    pub no_stacks: bool,
    /// Block the target when the buffer is full instead of dropping events.
    pub block: bool,
    /// Stop at this event.
    pub stop_on: Option<Trigger>,
    /// Stop once this is true.
    pub stop_when: Option<Conditions>,
    /// Kernel tracepoints that receive the events instead of a file, as `NAME` or `NAME=ID,ID`.
    pub tracepoints: Vec<String>,
    /// Record the kernel's scheduling as well.
    pub scheduling: bool,
    /// Keep only the newest part.
    pub flight: Option<RetentionLimits>,
    /// Keep CPU samples in a separate file.
    pub separate: bool,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Stop once the file has this many bytes.
    pub max_size: Option<u64>,
    /// Output file; `None` for a name with the process and the time.
    pub file: Option<PathBuf>,
    /// Folder of a file whose name is not given; `None` for the default one.
    pub folder: Option<PathBuf>,
}

impl TraceOptions {
    /// Creates options with profiles and no others.
    pub fn of_profiles(profiles: &[String]) -> Self {
        Self { profiles: profiles.to_vec(), ..Self::default() }
    }

    /// Returns the session to request, with warnings about it.
    ///
    /// # Errors
    /// An option cannot be parsed, or options cannot be combined: a sentence about it.
    pub fn select(&self) -> Result<Selection, String> {
        let mut selected = select(&self.profiles, &self.providers, self.clr_events.as_deref()).map_err(|error| error.to_string())?;
        for config in [Some(&mut selected.config), selected.fallback.as_mut()].into_iter().flatten() {
            self.apply(config)?;
        }
        if self.flight.is_some() && self.max_size.is_some() {
            return Err("a flight recorder has its own size limit: omit the maximum file size".to_owned());
        }
        if self.scheduling && self.flight.is_some() {
            return Err("kernel scheduling is recorded from the start, but a flight recorder keeps only the newest part".to_owned());
        }
        self.check_file()?;
        Ok(selected)
    }

    /// Returns the names of the providers that are specified one by one.
    pub fn specified_providers(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|spec| provider_name(spec))
    }

    /// Checks the name of the file.
    ///
    /// # Errors
    /// A sentence about it.
    pub fn check_file(&self) -> Result<(), String> {
        let Some(file) = self.file.as_deref().filter(|_| self.tracepoints.is_empty()) else { return Ok(()) };
        check_not_stdout(file)?;
        check_extension(file, self.extension()).map_err(|wrong| match self.scheduling {
            true => format!("{wrong}: kernel scheduling is recorded into a Perfetto trace"),
            false => format!("{wrong}: the recording can be exported to other formats"),
        })
    }

    /// Applies the options to the session configuration of the profiles and providers.
    fn apply(&self, config: &mut SessionConfig) -> Result<(), String> {
        let on = |config: &SessionConfig, name: &str| {
            config.providers.iter().position(|filtered| filtered.provider.name().eq_ignore_ascii_case(name))
        };
        for text in &self.event_ids {
            let (provider, filter) = parse_event_ids(text)?;
            let at =
                on(config, &provider).ok_or_else(|| format!("event ids of {}: this provider is not enabled", provider.escape_debug()))?;
            if !config.providers[at].filter.is_all() {
                return Err(format!("event ids of {}: given twice", provider.escape_debug()));
            }
            config.providers[at].filter = filter;
        }
        if let Some(trigger) = &self.stop_on
            && on(config, trigger.provider()).is_none()
        {
            return Err(format!("stop on {}: its provider is not enabled, so it would never occur", trigger.to_string().escape_debug()));
        }
        if let Some(megabytes) = self.buffer_mb {
            config.buffer = BufferMb::new(megabytes).map_err(|error| error.to_string())?;
        }
        if let Some(rundown) = &self.rundown {
            config.rundown = parse_rundown(rundown)?;
        }
        config.stacks = !self.no_stacks;
        config.mode = if self.block { BufferMode::Block } else { BufferMode::Drop };
        Ok(())
    }

    /// Returns the conventional extension of the output file.
    pub fn extension(&self) -> &'static str {
        if self.scheduling { TraceFormat::Perfetto.extension() } else { "nettrace" }
    }

    /// Returns the session whose events go to tracepoints, and the names of these; `None` if there are none.
    ///
    /// # Errors
    /// The same as for [`Self::select`], or a sentence about a tracepoint.
    pub fn user_events(&self) -> Result<Option<(UserEvents, KernelTrace)>, String> {
        if self.tracepoints.is_empty() {
            return Ok(None);
        }
        let (tracepoints, names) = parse_tracepoints(&self.tracepoints)?;
        let events = UserEvents::new(self.select()?.config, &tracepoints);
        Ok(Some((events, KernelTrace { tracepoints: names, session: None })))
    }

    /// Returns which of these options a runtime is expected not to support, to warn the user in advance.
    ///
    /// # Errors
    /// The runtime is expected not to record at all: the reason, such as
    /// `filtering by event id, or recording into user_events, needs .NET 10`.
    pub fn expected_downgrades(&self, capabilities: &Capabilities) -> Result<Vec<Downgrade>, String> {
        let attempts = self.select()?.config.attempts();
        let mut missing = String::new();
        for Attempt { command, downgrades } in attempts {
            match capabilities.unsupported_reason(command.code()) {
                None => return Ok(downgrades),
                Some(needs) => missing = format!("{} {needs}", command.code().purpose()),
            }
        }
        Err(missing)
    }

    /// Formats the options as command line arguments.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
        // The command line adds the default profiles itself if nothing else is given.
        if self.profiles != DEFAULT_PROFILES || !self.providers.is_empty() || self.clr_events.is_some() {
            self.profiles.iter().for_each(|profile| add("--profile", profile));
        }
        self.providers.iter().for_each(|provider| add("--provider", provider));
        self.clr_events.iter().for_each(|events| add("--clr-events", events));
        self.event_ids.iter().for_each(|ids| add("--event-ids", ids));
        self.tracepoints.iter().for_each(|tracepoint| add("--user-events", tracepoint));
        self.buffer_mb.iter().for_each(|megabytes| add("--buffer-mb", &megabytes.to_string()));
        self.rundown.iter().for_each(|rundown| add("--rundown", rundown));
        self.stop_on.iter().for_each(|trigger| add("--stop-on", &trigger.to_string()));
        self.stop_when.iter().for_each(|condition| add("--stop-when", &condition.to_string()));
        self.flight.iter().for_each(|keep| add("--flight", &format_keep(keep)));
        self.duration.iter().for_each(|duration| add("--duration", &format_time(*duration)));
        self.max_size.iter().for_each(|size| add("--max-size", &format_size(*size)));
        self.file.iter().for_each(|file| add("-o", &file.to_string_lossy()));
        words.extend(
            [(self.no_stacks, "--no-stacks"), (self.block, "--block"), (self.scheduling, "--kernel"), (self.separate, "--separate")]
                .into_iter()
                .filter(|(on, _)| *on)
                .map(|(_, word)| word.to_owned()),
        );
        words
    }

    /// Formats the complete command line that records a target, for a shell.
    pub fn command_line(&self, target: &str) -> String {
        let mut line = "dn-top trace".to_owned();
        for word in [target.to_owned()].into_iter().chain(self.words()) {
            // Writing to a string cannot fail.
            let _ = write!(line, " {}", shell_word(&word));
        }
        line
    }
}

/// Parses `full`, `none` or `0xHEX`.
fn parse_rundown(text: &str) -> Result<Rundown, String> {
    match text {
        "full" => Ok(Rundown::Default),
        "none" => Ok(Rundown::None),
        _ => {
            let keyword = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            keyword
                .map(Rundown::Keyword)
                .ok_or_else(|| format!("rundown is full, none or a keyword such as 0x38, not '{}'", text.escape_debug()))
        }
    }
}

/// Parses the limit of a flight recorder: a size such as `64MB`, or a time such as `5m`.
///
/// # Errors
/// The text is neither: a sentence with what was expected.
pub fn parse_keep(text: &str) -> Result<RetentionLimits, String> {
    // A time in `M` is in months.
    if !text.ends_with('M')
        && let Ok(span) = humantime::parse_duration(text)
    {
        let enough = span >= Duration::from_secs(1);
        return enough
            .then_some(RetentionLimits { bytes: RetentionLimits::MAX_BYTES, span: Some(span) })
            .ok_or_else(|| "a flight recorder keeps at least one second".to_owned());
    }
    let bytes = parse_size(text).map_err(|_| "expected a size such as 64MB or a time such as 5m".to_owned())?;
    if (RetentionLimits::MIN_BYTES..=RetentionLimits::MAX_BYTES).contains(&bytes) {
        return Ok(RetentionLimits { bytes, span: None });
    }
    Err("a flight recorder keeps 1MB to 1GiB".to_owned())
}

/// Formats what a flight recorder keeps, as [`parse_keep`] parses it.
pub fn format_keep(keep: &RetentionLimits) -> String {
    keep.span.map_or_else(|| format_size(keep.bytes), format_time)
}

/// Formats a time in one word, such as `1h5m`.
pub fn format_time(time: Duration) -> String {
    humantime::format_duration(time).to_string().replace(' ', "")
}

/// Quotes a word for a shell, if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{EventFilter, RuntimeVersion};

    fn trigger(text: &str) -> Option<Trigger> {
        Trigger::parse(text).ok()
    }

    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

    #[test]
    fn rundown_options_are_parsed() {
        assert_eq!(parse_rundown("full"), Ok(Rundown::Default));
        assert_eq!(parse_rundown("none"), Ok(Rundown::None));
        assert_eq!(parse_rundown("0x38"), Ok(Rundown::Keyword(0x38)));
        for wrong in ["", "38", "0x", "0xg", "all"] {
            assert!(parse_rundown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flight_recorder_retention_is_parsed_and_formatted() {
        let span = |seconds| Some(Duration::from_secs(seconds));
        let table = [
            ("1MB", 1_000_000, None),
            ("64MB", 64_000_000, None),
            ("1GiB", 1 << 30, None),
            ("5m", 1 << 30, span(300)),
            ("1m30s", 1 << 30, span(90)),
        ];
        for (text, bytes, span) in table {
            let keep = parse_keep(text).unwrap();
            assert_eq!(keep, RetentionLimits { bytes, span }, "{text}");
            assert_eq!(format_keep(&keep), text);
        }
        assert_eq!(parse_keep("64M"), parse_keep("64MB"), "not 64 months");
        for wrong in ["", "64", "1kB", "999kB", "2GiB", "1ms", "x"] {
            assert!(parse_keep(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn session_config_contains_all_options() {
        let options = TraceOptions {
            profiles: vec!["gc-verbose".to_owned()],
            event_ids: vec![format!("{RUNTIME}/1,2")],
            buffer_mb: Some(16),
            rundown: Some("none".to_owned()),
            no_stacks: true,
            block: true,
            ..TraceOptions::default()
        };
        let config = options.select().unwrap().config;
        assert_eq!(config.providers[0].filter, EventFilter::only(vec![1, 2]));
        assert_eq!((config.buffer.get(), config.rundown, config.stacks, config.mode), (16, Rundown::None, false, BufferMode::Block));
    }

    #[test]
    fn user_events_session_has_the_same_providers() {
        let options = TraceOptions {
            profiles: vec!["gc-verbose".to_owned()],
            event_ids: vec![format!("{RUNTIME}/^1")],
            rundown: Some("0x38".to_owned()),
            tracepoints: vec!["all".to_owned(), "gc=2,3".to_owned()],
            ..TraceOptions::default()
        };
        let (events, kernel) = options.user_events().unwrap().unwrap();
        assert_eq!((events.rundown_keyword, events.providers[0].filter.clone()), (0, EventFilter::except(vec![1])));
        assert_eq!(events.providers[0].provider, options.select().unwrap().config.providers[0].provider);
        assert_eq!(kernel.to_string(), "user_events:all,user_events:gc");
        let invalid = TraceOptions { tracepoints: vec!["a".to_owned(), "b".to_owned()], ..options };
        assert!(invalid.user_events().unwrap_err().contains("tracepoint 'b'"));
        assert_eq!(TraceOptions::default().user_events(), Ok(None));
    }

    #[test]
    fn conflicting_options_are_errors() {
        let provider = |ids: &str| TraceOptions { event_ids: vec![ids.to_owned(), ids.to_owned()], ..TraceOptions::default() };
        let table = [
            (TraceOptions::of_profiles(&["nothing".to_owned()]), "there is no profile 'nothing'"),
            (provider("Other/1"), "event ids of Other: this provider is not enabled"),
            (provider(&format!("{RUNTIME}/1")), "given twice"),
            (TraceOptions { stop_on: trigger("Other/1"), ..TraceOptions::default() }, "stop on Other/1: its provider is not enabled"),
            (TraceOptions { buffer_mb: Some(0), ..TraceOptions::default() }, "buffer"),
            (
                TraceOptions { flight: parse_keep("5m").ok(), max_size: Some(1), ..TraceOptions::default() },
                "a flight recorder has its own size limit",
            ),
            (
                TraceOptions { scheduling: true, file: Some("a.nettrace".into()), ..TraceOptions::default() },
                "use the extension .perfetto-trace: kernel scheduling is recorded into a Perfetto trace",
            ),
            (TraceOptions { scheduling: true, flight: parse_keep("5m").ok(), ..TraceOptions::default() }, "a flight recorder keeps only"),
            (TraceOptions { file: Some("a.perfetto-trace".into()), ..TraceOptions::default() }, "use the extension .nettrace: "),
        ];
        for (options, reason) in table {
            let error = options.select().unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn unsupported_options_are_errors_or_downgrades() {
        let on = |version: &str, options: TraceOptions| options.expected_downgrades(&Capabilities::of(Some(&RuntimeVersion::new(version))));
        let too_old = |what: &str| Err(what.to_owned());
        let ids = || TraceOptions { event_ids: vec![format!("{RUNTIME}/^1")], ..TraceOptions::default() };
        let own = || TraceOptions { rundown: Some("0x38".to_owned()), ..TraceOptions::default() };
        let bare = || TraceOptions { no_stacks: true, ..TraceOptions::default() };
        let block = || TraceOptions { block: true, ..TraceOptions::default() };
        assert_eq!(on("3.1.0", TraceOptions::default()), Ok(vec![]));
        assert_eq!(
            on("3.1.0", TraceOptions::of_profiles(&["gc-collect".to_owned()])),
            Ok(vec![Downgrade::RundownOmitted]),
            "it is only preferred"
        );
        assert_eq!(on("8.0.33", bare()), Ok(vec![Downgrade::StacksIncluded]));
        assert_eq!(on("8.0.0", own()), too_old("selecting the rundown needs .NET 9"));
        assert_eq!(on("9.0.0", ids()), too_old("filtering by event id, or recording into user_events, needs .NET 10"));
        assert_eq!(on("10.0.0", block()), too_old("blocking the target instead of dropping events needs .NET 11"));
        for options in [bare(), own(), ids(), block()] {
            assert_eq!(on("11.0.0", options), Ok(vec![]));
        }
    }

    #[test]
    fn the_command_line_has_the_same_options() {
        assert_eq!(TraceOptions::of_profiles(&DEFAULT_PROFILES.map(str::to_owned)).command_line("42"), "dn-top trace 42");
        assert_eq!(shell_word(""), "''");
        let options = TraceOptions {
            profiles: vec!["exceptions".to_owned()],
            providers: vec!["My Co:1:verbose:a=\"b;c\"".to_owned()],
            clr_events: Some("gc+jit".to_owned()),
            event_ids: vec![format!("{RUNTIME}/^80,81")],
            buffer_mb: Some(64),
            rundown: Some("0x38".to_owned()),
            no_stacks: true,
            block: true,
            scheduling: true,
            separate: true,
            tracepoints: vec!["all".to_owned(), "gc=1,2".to_owned()],
            stop_on: trigger("P/Boom:it's"),
            stop_when: Conditions::parse("cpu>80 for 10s").ok(),
            flight: parse_keep("5m").ok(),
            duration: Some(Duration::from_secs(90)),
            max_size: Some(64_000_000),
            file: Some("/tmp/a b.nettrace".into()),
            folder: None,
        };
        assert_eq!(
            options.command_line("Web App"),
            "dn-top trace 'Web App' --profile exceptions --provider 'My Co:1:verbose:a=\"b;c\"' --clr-events gc+jit \
             --event-ids Microsoft-Windows-DotNETRuntime/^80,81 --user-events all --user-events gc=1,2 --buffer-mb 64 --rundown 0x38 --stop-on 'P/Boom:it'\\''s' \
             --stop-when 'cpu>80 for 10s' --flight 5m \
             --duration 1m30s --max-size 64MB -o '/tmp/a b.nettrace' --no-stacks --block --kernel --separate"
        );
    }
}
