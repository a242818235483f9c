//! Capabilities of a runtime: known from its replies, or else expected of its version.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{CommandCode, CommandSupport, RuntimeVersion, Support};

/// Capabilities of a runtime, based on its replies where available, otherwise on the documentation of its .NET version. Serialized as the
/// `capabilities` of the command-line contract: the number of the newest supported version of a command, 0 for none, or whether a command with a
/// single version is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Major version; `None` if unknown.
    major: Option<u32>,
    native_aot: bool,
    support: CommandSupport,
}

/// Oldest major version with a diagnostic server.
const OLDEST: u32 = 3;

/// Fields of the command-line contract, with the versions of the command, oldest first.
const FIELDS: [(&str, &[CommandCode]); 12] = [
    ("process_info", CommandCode::PROCESS_INFO),
    ("environment", &[CommandCode::ProcessEnvironment]),
    ("set_environment", &[CommandCode::SetEnvironmentVariable]),
    ("dump", CommandCode::DUMP),
    ("collect_tracing", CommandCode::COLLECT_TRACING),
    ("trace_without_stacks", &[CommandCode::CollectTracing3]),
    ("trace_rundown", &[CommandCode::CollectTracing4]),
    ("trace_event_filter", &[CommandCode::CollectTracing5]),
    ("dump_errors", &[CommandCode::GenerateCoreDump3]),
    ("perf_map", &[CommandCode::EnablePerfMap]),
    ("startup_hook", &[CommandCode::ApplyStartupHook]),
    ("profiler", &[CommandCode::AttachProfiler]),
];

impl CommandCode {
    /// Versions of the query for process information, oldest first.
    pub const PROCESS_INFO: &[Self] = &[Self::ProcessInfo, Self::ProcessInfo2, Self::ProcessInfo3];
    /// Versions of the command that writes a core dump, oldest first.
    pub const DUMP: &[Self] = &[Self::GenerateCoreDump, Self::GenerateCoreDump2, Self::GenerateCoreDump3];
    /// Versions of the command that starts a trace session, oldest first.
    pub const COLLECT_TRACING: &[Self] = &[
        Self::CollectTracing,
        Self::CollectTracing2,
        Self::CollectTracing3,
        Self::CollectTracing4,
        Self::CollectTracing5,
        Self::CollectTracing6,
    ];
}

impl Capabilities {
    /// Returns the capabilities given what the replies have shown. An unknown version is treated as the oldest, 3.x, which does not report its
    /// version.
    pub fn new(version: Option<&RuntimeVersion>, native_aot: bool, support: CommandSupport) -> Self {
        Self { major: version.map(|version| version.major().max(OLDEST)), native_aot, support }
    }

    /// Returns the capabilities expected of a version, before any reply.
    pub fn of(version: Option<&RuntimeVersion>) -> Self {
        Self::new(version, false, CommandSupport::default())
    }

    /// Returns why a command is not supported, as the end of a sentence: `needs .NET 8`. `None` if it is, or if only a reply can show that.
    pub fn unsupported_reason(&self, command: CommandCode) -> Option<&'static str> {
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

    /// Returns whether a command is expected to be supported; an unknown version is treated as the oldest.
    ///
    /// # Errors
    /// The reason why not, as the end of a sentence.
    pub fn expected(&self, command: CommandCode) -> Result<(), &'static str> {
        let known_or_oldest = Self { major: self.major.or(Some(OLDEST)), ..*self };
        known_or_oldest.unsupported_reason(command).map_or(Ok(()), Err)
    }

    /// Returns the number of the newest version of a command that is expected to be supported; 0 for none. `versions` are ordered, oldest first.
    pub fn newest(&self, versions: &[CommandCode]) -> usize {
        versions.iter().rposition(|command| self.expected(*command).is_ok()).map_or(0, |at| at + 1)
    }

    /// Returns whether support for the [newest](Self::newest) version of a command is known from a reply, not merely expected.
    pub fn is_known(&self, versions: &[CommandCode]) -> bool {
        versions.get(self.newest(versions).saturating_sub(1)).is_some_and(|command| self.support.get(*command).is_some())
    }

    /// Returns the names of the fields that are known from a reply.
    pub fn known(&self) -> Vec<&'static str> {
        FIELDS.into_iter().filter(|(_, versions)| self.is_known(versions)).map(|(field, _)| field).collect()
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(FIELDS.len()))?;
        for (field, versions) in FIELDS {
            match (self.newest(versions), versions.len()) {
                (newest, 1) => map.serialize_entry(field, &(newest > 0))?,
                (newest, _) => map.serialize_entry(field, &newest)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::CommandCode as Code;
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
            let is = |command| has.expected(command).is_ok();
            let [environment, set, map, hook, profiler] =
                [Code::ProcessEnvironment, Code::SetEnvironmentVariable, Code::EnablePerfMap, Code::ApplyStartupHook, Code::AttachProfiler]
                    .map(is);
            let [info, dump, collect] = [Code::PROCESS_INFO, Code::DUMP, Code::COLLECT_TRACING].map(|versions| has.newest(versions));
            let row = (info, environment, set, dump, collect, map, hook, profiler);
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
        let no = Some(Hresult::UNKNOWN_COMMAND);
        let support = support_from(&[
            (Code::CollectTracing4, None),
            (Code::ApplyStartupHook, no),
            (Code::ProcessInfo3, None),
            (Code::EnablePerfMap, Some(Hresult::NOT_SUPPORTED)),
            (Code::ProcessEnvironment, no),
        ]);
        let can = Capabilities::new(Some(&RuntimeVersion::new("8.0")), false, support);
        assert_eq!(can.newest(Code::COLLECT_TRACING), 4);
        assert!([Code::ApplyStartupHook, Code::EnablePerfMap, Code::ProcessEnvironment].iter().all(|code| can.expected(*code).is_err()));
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
        let can = Capabilities::new(Some(&RuntimeVersion::new("8.0.33")), true, CommandSupport::default());
        assert_eq!([Code::PROCESS_INFO, Code::COLLECT_TRACING, Code::DUMP].map(|versions| can.newest(versions)), [3, 2, 0]);
        assert!([Code::ProcessEnvironment, Code::SetEnvironmentVariable].iter().all(|code| can.expected(*code).is_ok()));
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
