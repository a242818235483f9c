//! Capabilities of a runtime: known from its replies, or else expected of its version.

use serde::Serialize;

use super::{CommandCode, CommandSupport, RuntimeVersion, Support};

/// Capabilities of a runtime: the `capabilities` of the command-line contract. A number is the newest supported version of a command, 0 for
/// none. Based on the runtime's replies where available, otherwise on the documentation of its .NET version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Newest `ProcessInfo` version.
    pub process_info: u8,
    /// Whether the environment can be read.
    pub environment: bool,
    /// Whether environment variables can be set.
    pub set_environment: bool,
    /// Newest `GenerateCoreDump` version.
    pub dump: u8,
    /// Newest `CollectTracing` version.
    pub collect_tracing: u8,
    /// Whether a session can omit stacks.
    pub trace_without_stacks: bool,
    /// Whether a session can select its rundown keywords.
    pub trace_rundown: bool,
    /// Whether a session can filter events by ID.
    pub trace_event_filter: bool,
    /// Whether a failed dump has an error message.
    pub dump_errors: bool,
    /// Whether perf maps can be enabled.
    pub perf_map: bool,
    /// Whether a startup hook can be applied.
    pub startup_hook: bool,
    /// Whether a profiler can be attached.
    pub profiler: bool,
    #[serde(skip)]
    facts: Facts,
}

/// Known facts about a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    /// Major version; `None` if unknown.
    major: Option<u32>,
    native_aot: bool,
    support: CommandSupport,
}

impl Facts {
    /// Replaces an unknown version with the oldest one.
    fn or_oldest(self) -> Self {
        Self { major: self.major.or(Some(OLDEST)), ..self }
    }

    /// Returns why the runtime does not support a command, as the end of a sentence.
    fn unsupported_reason(&self, command: CommandCode) -> Option<&'static str> {
        let too_old = self.major.is_some_and(|major| command.since() > major);
        match self.support.get(command) {
            Some(Support::Yes) => None,
            _ if self.native_aot && !command.is_for_native_aot() => Some("not with NativeAOT"),
            Some(Support::Unsupported) => Some("is not supported by this kind of runtime"),
            Some(Support::UnknownCommand) if self.major.is_some() && !too_old => Some("is not supported by this runtime"),
            Some(Support::UnknownCommand) => Some(command.needs()),
            None => too_old.then(|| command.needs()),
        }
    }
}

/// Oldest major version with a diagnostic server.
const OLDEST: u32 = 3;

/// Versions of one command, oldest first.
const PROCESS_INFO: [CommandCode; 3] = [CommandCode::ProcessInfo, CommandCode::ProcessInfo2, CommandCode::ProcessInfo3];
const DUMP: [CommandCode; 3] = [CommandCode::GenerateCoreDump, CommandCode::GenerateCoreDump2, CommandCode::GenerateCoreDump3];
const COLLECT_TRACING: [CommandCode; 6] = [
    CommandCode::CollectTracing,
    CommandCode::CollectTracing2,
    CommandCode::CollectTracing3,
    CommandCode::CollectTracing4,
    CommandCode::CollectTracing5,
    CommandCode::CollectTracing6,
];

impl Capabilities {
    /// Returns the capabilities given what the replies have shown. An unknown version is treated as the oldest, 3.x, which does not report its
    /// version.
    pub fn new(version: Option<&RuntimeVersion>, native_aot: bool, support: CommandSupport) -> Self {
        let facts = Facts { major: version.map(|version| version.major().max(OLDEST)), native_aot, support };
        let has = |code: CommandCode| facts.or_oldest().unsupported_reason(code).is_none();
        let newest = |family: &[CommandCode]| family.iter().rposition(|code| has(*code)).map_or(0, |at| at as u8 + 1);
        Self {
            process_info: newest(&PROCESS_INFO),
            environment: has(CommandCode::ProcessEnvironment),
            set_environment: has(CommandCode::SetEnvironmentVariable),
            dump: newest(&DUMP),
            collect_tracing: newest(&COLLECT_TRACING),
            trace_without_stacks: has(CommandCode::CollectTracing3),
            trace_rundown: has(CommandCode::CollectTracing4),
            trace_event_filter: has(CommandCode::CollectTracing5),
            dump_errors: has(CommandCode::GenerateCoreDump3),
            perf_map: has(CommandCode::EnablePerfMap),
            startup_hook: has(CommandCode::ApplyStartupHook),
            profiler: has(CommandCode::AttachProfiler),
            facts,
        }
    }

    /// Returns the capabilities expected of a version, before any reply.
    pub fn of(version: Option<&RuntimeVersion>) -> Self {
        Self::new(version, false, CommandSupport::default())
    }

    /// Returns why a command is not supported, as the end of a sentence: `needs .NET 8`. `None` if it is, or if only a reply can show that.
    pub fn unsupported_reason(&self, command: CommandCode) -> Option<&'static str> {
        self.facts.unsupported_reason(command)
    }

    /// Returns whether a command is expected to be supported; an unknown version is treated as the oldest.
    ///
    /// # Errors
    /// The reason why not, as the end of a sentence.
    pub fn expected(&self, command: CommandCode) -> Result<(), &'static str> {
        self.facts.or_oldest().unsupported_reason(command).map_or(Ok(()), Err)
    }

    /// Returns whether support for the command is known from a reply, not merely expected.
    pub fn is_known(&self, command: CommandCode) -> bool {
        self.facts.support.get(command).is_some()
    }

    /// Returns the names of the fields that are known from a reply.
    pub fn known(&self) -> Vec<&'static str> {
        let generation = |family: &[CommandCode], newest: u8| family[usize::from(newest.saturating_sub(1))];
        [
            ("process_info", generation(&PROCESS_INFO, self.process_info)),
            ("environment", CommandCode::ProcessEnvironment),
            ("set_environment", CommandCode::SetEnvironmentVariable),
            ("dump", generation(&DUMP, self.dump)),
            ("collect_tracing", generation(&COLLECT_TRACING, self.collect_tracing)),
            ("trace_without_stacks", CommandCode::CollectTracing3),
            ("trace_rundown", CommandCode::CollectTracing4),
            ("trace_event_filter", CommandCode::CollectTracing5),
            ("dump_errors", CommandCode::GenerateCoreDump3),
            ("perf_map", CommandCode::EnablePerfMap),
            ("startup_hook", CommandCode::ApplyStartupHook),
            ("profiler", CommandCode::AttachProfiler),
        ]
        .into_iter()
        .filter_map(|(field, command)| self.is_known(command).then_some(field))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{Failure, Hresult, Reply};

    /// Capabilities by version, as seen on 3.1, 8, 9 and 10, and as documented for the others.
    #[test]
    fn capabilities_by_runtime_version() {
        let table = [
            // version, info, env, set, dump, collect, perf map, hook, profiler
            (Some("3.1.23"), (0, false, false, 1, 2, false, false, true)),
            (Some("5.0.17"), (1, true, false, 1, 2, false, false, true)),
            (Some("6.0.36"), (2, true, true, 2, 2, false, false, true)),
            (Some("7.0.20"), (2, true, true, 3, 2, false, false, true)),
            (Some("8.0.33"), (3, true, true, 3, 2, true, true, true)),
            (Some("9.0.7"), (3, true, true, 3, 4, true, true, true)),
            (Some("10.0.0-preview.3"), (3, true, true, 3, 5, true, true, true)),
            (Some("11.0.0"), (3, true, true, 3, 6, true, true, true)),
            (Some("12.0.0"), (3, true, true, 3, 6, true, true, true)),
            (Some("unheard of"), (0, false, false, 1, 2, false, false, true)),
            (None, (0, false, false, 1, 2, false, false, true)),
        ];
        for (version, expected) in table {
            let has = Capabilities::of(version.map(RuntimeVersion::new).as_ref());
            let row = (
                has.process_info,
                has.environment,
                has.set_environment,
                has.dump,
                has.collect_tracing,
                has.perf_map,
                has.startup_hook,
                has.profiler,
            );
            assert_eq!(row, expected, "{version:?}");
        }
    }

    fn support_from(answers: &[(CommandCode, Option<Hresult>)]) -> CommandSupport {
        let mut support = CommandSupport::default();
        for (code, no) in answers {
            support.record_reply(*code, &no.map_or(Ok(Reply::Done), |hresult| Err(Failure::from(hresult).into())));
        }
        support
    }

    #[test]
    fn unsupported_reason_names_the_required_version() {
        let old = Capabilities::of(Some(&RuntimeVersion::new("3.1.23")));
        for (code, words) in [
            (CommandCode::ProcessEnvironment, Some("needs .NET 5")),
            (CommandCode::SetEnvironmentVariable, Some("needs .NET 6")),
            (CommandCode::EnablePerfMap, Some("needs .NET 8")),
            (CommandCode::CollectTracing3, Some("needs .NET 9")),
            (CommandCode::CollectTracing6, Some("needs .NET 11")),
            (CommandCode::CollectTracing2, None),
        ] {
            assert_eq!(old.unsupported_reason(code), words, "{code}");
        }
        for all in [Some(RuntimeVersion::new("11.0")), None] {
            let can = Capabilities::of(all.as_ref());
            assert!(
                CommandCode::ALL.iter().all(|code| can.unsupported_reason(*code).is_none()),
                "of an unknown version nothing is refused: {all:?}"
            );
        }
    }

    #[test]
    fn replies_override_the_version() {
        use CommandCode as Code;
        let no = Some(Hresult::UNKNOWN_COMMAND);
        let support = support_from(&[
            (Code::CollectTracing4, None),
            (Code::ApplyStartupHook, no),
            (Code::ProcessInfo3, None),
            (Code::EnablePerfMap, Some(Hresult::NOT_SUPPORTED)),
            (Code::ProcessEnvironment, no),
        ]);
        let can = Capabilities::new(Some(&RuntimeVersion::new("8.0")), false, support);
        assert_eq!((can.collect_tracing, can.startup_hook, can.perf_map, can.environment), (4, false, false, false));
        assert_eq!(
            (can.unsupported_reason(Code::CollectTracing4), can.unsupported_reason(Code::CollectTracing3)),
            (None, Some("needs .NET 9"))
        );
        assert_eq!(can.unsupported_reason(Code::EnablePerfMap), Some("is not supported by this kind of runtime"));
        assert_eq!(can.unsupported_reason(Code::ProcessEnvironment), Some("is not supported by this runtime"), "it is new enough for it");
        assert_eq!(can.known(), ["process_info", "environment", "collect_tracing", "trace_rundown", "perf_map", "startup_hook"]);
        let unknown_version = Capabilities::new(None, false, support);
        assert_eq!(unknown_version.unsupported_reason(Code::ApplyStartupHook), Some("needs .NET 8"));
        assert!(Capabilities::of(None).known().is_empty());
    }

    /// As seen on NativeAOT 8.0.33.
    #[test]
    fn native_aot_lacks_dump_perf_map_hook_and_profiler() {
        use CommandCode as Code;
        let can = Capabilities::new(Some(&RuntimeVersion::new("8.0.33")), true, CommandSupport::default());
        assert_eq!((can.process_info, can.environment, can.set_environment, can.collect_tracing), (3, true, true, 2));
        assert_eq!((can.dump, can.perf_map, can.startup_hook, can.profiler), (0, false, false, false));
        for code in [Code::GenerateCoreDump3, Code::EnablePerfMap, Code::ApplyStartupHook, Code::AttachProfiler, Code::StartupProfiler] {
            assert_eq!(can.unsupported_reason(code), Some("not with NativeAOT"), "{code}");
        }
        assert_eq!(can.unsupported_reason(Code::CollectTracing4), Some("needs .NET 9"));
    }

    #[test]
    fn json_matches_the_command_line_contract() {
        let json = serde_json::to_string(&Capabilities::of(Some(&RuntimeVersion::new("9.0.7")))).unwrap();
        assert_eq!(
            json,
            r#"{"process_info":3,"environment":true,"set_environment":true,"dump":3,"collect_tracing":4,"trace_without_stacks":true,"trace_rundown":true,"trace_event_filter":false,"dump_errors":true,"perf_map":true,"startup_hook":true,"profiler":true}"#
        );
    }
}
