//! What a runtime of some version can be asked.

use serde::Serialize;

use super::{CommandCode, RuntimeVersion};

/// What a runtime accepts: the `capabilities` of the command line contract. A number is the newest generation of a family, 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Newest `ProcessInfo`.
    pub process_info: u8,
    /// Whether it tells its environment.
    pub environment: bool,
    /// Whether variables can be set.
    pub set_environment: bool,
    /// Newest `GenerateCoreDump`.
    pub dump: u8,
    /// Newest `CollectTracing`.
    pub collect_tracing: u8,
    /// Whether perf maps can be turned on.
    pub perf_map: bool,
    /// Whether a start-up hook can be applied.
    pub startup_hook: bool,
    /// Whether a profiler can be attached.
    pub profiler: bool,
    #[serde(skip)]
    major: u32,
}

/// The generations of a family, oldest first.
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
    /// What a runtime of this version accepts. One that does not say its version is taken for the oldest that there is, 3.x, which cannot say it.
    pub fn of(version: Option<&RuntimeVersion>) -> Self {
        let major = version.map_or(0, RuntimeVersion::major).max(3);
        let has = |code: CommandCode| code.since() <= major;
        let newest = |family: &[CommandCode]| family.iter().filter(|code| has(**code)).count() as u8;
        Self {
            process_info: newest(&PROCESS_INFO),
            environment: has(CommandCode::ProcessEnvironment),
            set_environment: has(CommandCode::SetEnvironmentVariable),
            dump: newest(&DUMP),
            collect_tracing: newest(&COLLECT_TRACING),
            perf_map: has(CommandCode::EnablePerfMap),
            startup_hook: has(CommandCode::ApplyStartupHook),
            profiler: has(CommandCode::AttachProfiler),
            major,
        }
    }

    /// Why a command cannot be sent, in words for a greyed action (`needs .NET 8`); `None` where it can.
    pub fn missing(&self, command: CommandCode) -> Option<&'static str> {
        (command.since() > self.major).then(|| command.needs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version table, as seen on 3.1, 9 and 10 and as documented for the others.
    #[test]
    fn by_version() {
        let table = [
            // version, info, env, set, dump, collect, perf map, hook, profiler
            (Some("3.1.23"), (0, false, false, 1, 2, false, false, true)),
            (Some("5.0.17"), (1, true, false, 1, 2, false, false, true)),
            (Some("6.0.36"), (2, true, true, 2, 2, false, false, true)),
            (Some("7.0.20"), (2, true, true, 3, 2, false, false, true)),
            (Some("8.0.11"), (3, true, true, 3, 3, true, true, true)),
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

    #[test]
    fn what_is_missing_in_words() {
        let old = Capabilities::of(None);
        assert_eq!(old.missing(CommandCode::ProcessEnvironment), Some("needs .NET 5"));
        assert_eq!(old.missing(CommandCode::SetEnvironmentVariable), Some("needs .NET 6"));
        assert_eq!(old.missing(CommandCode::EnablePerfMap), Some("needs .NET 8"));
        assert_eq!(old.missing(CommandCode::CollectTracing4), Some("needs .NET 9"));
        assert_eq!(old.missing(CommandCode::CollectTracing6), Some("needs .NET 11"));
        assert_eq!(old.missing(CommandCode::CollectTracing2), None);
        let new = Capabilities::of(Some(&RuntimeVersion::new("11.0")));
        assert!(CommandCode::ALL.iter().all(|code| new.missing(*code).is_none()));
    }

    #[test]
    fn the_command_line_contracts_json() {
        let json = serde_json::to_string(&Capabilities::of(Some(&RuntimeVersion::new("9.0.7")))).unwrap();
        assert_eq!(
            json,
            r#"{"process_info":3,"environment":true,"set_environment":true,"dump":3,"collect_tracing":4,"perf_map":true,"startup_hook":true,"profiler":true}"#
        );
    }
}
