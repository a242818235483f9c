//! The capabilities of a process, and the reasons for missing ones.

use crate::ipc::{Capabilities, CommandCode};

/// A row of the capability table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Name of the capability, such as `dump`.
    pub name: &'static str,
    /// `yes` or the newest version of the command, such as `GenerateCoreDump3`, or a sentence with the reason if it is not supported.
    pub available: Result<String, &'static str>,
    /// Whether answers of the runtime have confirmed it; otherwise it is inferred from its version.
    pub known: bool,
}

/// Names, with the versions of the command, oldest first.
const ROWS: [(&str, &[CommandCode]); 12] = [
    ("process info", CommandCode::PROCESS_INFO),
    ("environment", &[CommandCode::ProcessEnvironment]),
    ("set a variable", &[CommandCode::SetEnvironmentVariable]),
    ("trace", CommandCode::COLLECT_TRACING),
    ("trace without stacks", &[CommandCode::CollectTracing3]),
    ("select the rundown", &[CommandCode::CollectTracing4]),
    ("filter by event", &[CommandCode::CollectTracing5]),
    ("dump", CommandCode::DUMP),
    ("dump error messages", &[CommandCode::GenerateCoreDump3]),
    ("perf map", &[CommandCode::EnablePerfMap]),
    ("startup hook", &[CommandCode::ApplyStartupHook]),
    ("attach a profiler", &[CommandCode::AttachProfiler]),
];

impl Capability {
    /// Returns the capabilities of a runtime, one row each.
    pub fn table(can: &Capabilities) -> Vec<Self> {
        let row = |(name, versions): (&'static str, &[CommandCode])| {
            let newest = versions[can.newest(versions).saturating_sub(1)];
            let level = if versions.len() == 1 { "yes" } else { newest.name() };
            Self { name, available: can.expected(versions[0]).map(|()| level.to_owned()), known: can.is_known(versions) }
        };
        ROWS.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::RuntimeVersion;

    #[test]
    fn a_missing_capability_names_its_requirement() {
        let table = |version: Option<&str>| Capability::table(&Capabilities::of(version.map(RuntimeVersion::new).as_ref()));
        let old = table(None);
        let row = |name: &str| old.iter().find(|row| row.name == name).unwrap().available.clone();
        assert_eq!(row("trace"), Ok("CollectTracing2".to_owned()));
        assert_eq!(row("perf map"), Err("needs .NET 8"));
        assert_eq!(row("environment"), Err("needs .NET 5"));
        assert!(table(Some("10.0.0")).iter().all(|row| row.available.is_ok()));
        for version in ["3.1", "6.0", "8.0", "9.0", "10.0"] {
            let can = Capabilities::of(Some(&RuntimeVersion::new(version)));
            let json = serde_json::to_value(can).unwrap();
            let has = json.as_object().unwrap().values().map(|value| value.as_u64().map_or(*value == true, |newest| newest > 0));
            let rows: Vec<bool> = Capability::table(&can).iter().map(|row| row.available.is_ok()).collect();
            let (mut shown, mut written): (Vec<_>, Vec<_>) = (rows, has.collect());
            shown.sort_unstable();
            written.sort_unstable();
            assert_eq!(shown, written, "{version}: JSON has every row of the table");
        }
    }
}
