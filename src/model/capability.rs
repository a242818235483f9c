//! The capabilities of a process, and the reasons for missing ones.

use crate::ipc::{Capabilities, CommandCode};

/// A row of the capability table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Name of the capability, such as `dump`.
    pub name: String,
    /// Level of support, such as `generation 3`, or a sentence with the reason if it is not supported.
    pub available: Result<String, String>,
    /// Whether answers of the runtime have confirmed it; otherwise it is inferred from its version.
    pub known: bool,
}

impl Capability {
    /// Returns the capabilities of a runtime, one row each.
    pub fn table(can: &Capabilities) -> Vec<Self> {
        use CommandCode as Code;
        let row = |name: &str, command, how: String| {
            let available = can.expected(command).map(|()| how).map_err(str::to_owned);
            Self { name: name.to_owned(), available, known: can.is_known(command) }
        };
        let known = can.known();
        let family = |name: &str, field, oldest, newest: u8| Self {
            known: known.contains(&field),
            ..row(name, oldest, format!("generation {newest}"))
        };
        let yes = || "yes".to_owned();
        vec![
            family("process info", "process_info", Code::ProcessInfo, can.process_info),
            row("environment", Code::ProcessEnvironment, yes()),
            row("set a variable", Code::SetEnvironmentVariable, yes()),
            family("trace", "collect_tracing", Code::CollectTracing, can.collect_tracing),
            row("trace without stacks", Code::CollectTracing3, yes()),
            row("select the rundown", Code::CollectTracing4, yes()),
            row("filter by event", Code::CollectTracing5, yes()),
            family("dump", "dump", Code::GenerateCoreDump, can.dump),
            row("dump error messages", Code::GenerateCoreDump3, yes()),
            row("perf map", Code::EnablePerfMap, yes()),
            row("startup hook", Code::ApplyStartupHook, yes()),
            row("attach a profiler", Code::AttachProfiler, yes()),
        ]
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
        assert_eq!(row("trace"), Ok("generation 2".to_owned()));
        assert_eq!(row("perf map"), Err("needs .NET 8".to_owned()));
        assert_eq!(row("environment"), Err("needs .NET 5".to_owned()));
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
