//! Settings of a runtime in the environment of its process.

use std::env::consts::EXE_SUFFIX;

use super::{Facts, Threads};
use crate::model::RunState;

impl Facts {
    /// A runtime that is not configured to suspend at startup has started; otherwise this is unknown.
    pub(in crate::net) fn threads(&self) -> Threads {
        match self.is_running {
            Some(started) => Threads { runtime: true, server: true, started },
            None => Threads { runtime: true, server: false, started: !self.environment.is_empty() && !self.is_configured_to_suspend() },
        }
    }

    /// Whether the runtime is suspended at startup. If it was configured to suspend, it is unknown whether it has been resumed.
    pub(in crate::net) fn run_state(&self) -> RunState {
        match self.is_running {
            Some(true) => RunState::Running,
            Some(false) => RunState::Suspended,
            None if self.is_configured_to_suspend() => RunState::Unknown,
            None => RunState::Running,
        }
    }

    /// Returns an assignment read by the runtime, and its value, by the variable's name after `DOTNET_` or `COMPlus_`. Case-insensitive.
    fn assignment(&self, name: &str) -> Option<(&str, &str)> {
        ["DOTNET_", "COMPlus_"].iter().find_map(|prefix| {
            let wanted = format!("{prefix}{name}");
            let assignments = self.environment.iter().filter_map(|entry| Some((entry.as_str(), entry.split_once('=')?)));
            assignments.filter(|(_, (key, _))| key.eq_ignore_ascii_case(&wanted)).map(|(entry, (_, value))| (entry, value)).next()
        })
    }

    /// Returns the assignment that disables diagnostics, if this is evidently a .NET program: its children, which need not be, inherit the
    /// environment.
    pub(in crate::net) fn diagnostics_off(&self) -> Option<&str> {
        let is_zero = |value: &str| {
            let digits = value.trim_start_matches("0x");
            !digits.is_empty() && digits.bytes().all(|digit| digit == b'0')
        };
        let switches = ["EnableDiagnostics", "EnableDiagnostics_IPC"];
        let (off, _) = switches.into_iter().filter_map(|name| self.assignment(name)).find(|(_, value)| is_zero(value))?;
        self.is_dotnet().then_some(off)
    }

    /// Whether the program is `dotnet`, or has a runtime configuration next to it; a single-file application has none. A runtime next to it may
    /// belong to another program in the same directory.
    fn is_dotnet(&self) -> bool {
        let Some(program) = &self.program else { return false };
        let Some(name) = program.file_name().and_then(|name| name.to_str()) else { return false };
        let name = name.strip_suffix(EXE_SUFFIX).unwrap_or(name);
        name.eq_ignore_ascii_case("dotnet") || program.with_file_name(format!("{name}.runtimeconfig.json")).is_file()
    }

    fn is_configured_to_suspend(&self) -> bool {
        let is_set = |value: &str| !value.trim_start_matches("0x").trim_matches('0').is_empty();
        self.assignment("DiagnosticPorts").is_some_and(|(_, ports)| !ports.is_empty())
            || self.assignment("DefaultDiagnosticPortSuspend").is_some_and(|(_, value)| is_set(value))
    }

    /// Whether this is one of the configured diagnostic ports.
    pub(in crate::net) fn has_port(&self, port: &str) -> bool {
        let ports = self.assignment("DiagnosticPorts").map_or("", |(_, ports)| ports);
        ports.split(';').filter_map(|entry| entry.split(',').next()).any(|name| name.eq_ignore_ascii_case(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::Variable;

    #[test]
    fn startup_settings_are_read_from_the_environment() {
        let facts = |entries: &[&str]| Facts { environment: entries.iter().map(|entry| (*entry).to_owned()).collect(), ..Facts::default() };
        for (entries, suspends) in [
            (&["PATH=x"][..], false),
            (&["DOTNET_DefaultDiagnosticPortSuspend=0"], false),
            (&["dotnet_defaultdiagnosticportsuspend=1"], true),
            (&["COMPlus_DefaultDiagnosticPortSuspend=0x1"], true),
            (&["DOTNET_DiagnosticPorts="], false),
            (&["DOTNET_DiagnosticPorts=mine,nosuspend"], true),
        ] {
            let state = if suspends { RunState::Unknown } else { RunState::Running };
            assert_eq!((facts(entries).is_configured_to_suspend(), facts(entries).run_state()), (suspends, state), "{entries:?}");
            assert_eq!(facts(entries).threads().started, !suspends, "{entries:?}");
        }
        assert!(facts(&["A=1", "DOTNET_DiagnosticPorts=other;Mine,suspend,connect"]).has_port("mine"));
        assert!(!facts(&["DOTNET_DiagnosticPorts=mine2"]).has_port("mine"));
        assert_eq!(facts(&["=C:=C:\\a", "A=1=2", "word"]).variables(), [Variable { name: "A".to_owned(), value: "1=2".to_owned() }]);
        assert!(!facts(&[]).threads().started, "nothing is known of one whose environment is not ours to read");
    }

    #[test]
    fn disabled_diagnostics_of_net_programs_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let facts = |program: &str, entry: &str| {
            let program = Some(folder.path().join(format!("{program}{EXE_SUFFIX}")));
            Facts { program, environment: vec![entry.to_owned()], ..Facts::default() }
        };
        let off = |program: &str, entry: &str| facts(program, entry).diagnostics_off().map(str::to_owned);
        for entry in ["DOTNET_EnableDiagnostics=0", "complus_enablediagnostics=0x0", "DOTNET_EnableDiagnostics_IPC=00"] {
            assert_eq!(off("dotnet", entry).as_deref(), Some(entry));
            assert_eq!(off("shop", entry), None, "it need not be a program of .NET");
        }
        for entry in ["DOTNET_EnableDiagnostics=1", "DOTNET_EnableDiagnostics=", "DOTNET_EnableDiagnostics=0x", "EnableDiagnostics=0"] {
            assert_eq!(off("dotnet", entry), None, "{entry}");
        }
        std::fs::write(folder.path().join("coreclr.dll"), "").unwrap();
        assert_eq!(off("shop", "DOTNET_EnableDiagnostics=0"), None, "the runtime may be that of another program");
        std::fs::write(folder.path().join("shop.runtimeconfig.json"), "{}").unwrap();
        assert!(off("shop", "DOTNET_EnableDiagnostics=0").is_some());
    }
}
