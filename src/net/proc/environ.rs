//! The initial environment block of a process.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::ipc::Variable;

/// `NAME=value` strings, each terminated by NUL.
pub(crate) struct Environ(Vec<u8>);

impl Environ {
    pub(super) fn new(block: Vec<u8>) -> Self {
        Self(block)
    }

    /// Returns the value of a variable. Of duplicates, the first counts, as for the runtime (seen on 3.1 and 9).
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Returns all variables. Strings without `=` are no variables.
    pub(super) fn variables(&self) -> Vec<Variable> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let entries = self.0.split(|byte| *byte == 0);
        let pair = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            Some(Variable { name: text(&entry[..at]), value: text(&entry[at + 1..]) })
        };
        entries.filter_map(pair).collect()
    }

    /// Returns the directory in which the runtime creates its socket: `$TMPDIR`, unless empty.
    pub(crate) fn tmpdir(&self) -> Option<&Path> {
        self.get("TMPDIR").filter(|value| !value.is_empty()).map(|value| Path::new(OsStr::from_bytes(value)))
    }

    /// Returns the assignment that disables the diagnostic port, such as `DOTNET_EnableDiagnostics=0`.
    ///
    /// Source: runtime, `clrconfignames.h`; all versions read the `COMPlus_` prefix, 6.0 and later also `DOTNET_`.
    pub(crate) fn diagnostics_off(&self) -> Option<String> {
        ["EnableDiagnostics", "EnableDiagnostics_IPC"].iter().find_map(|switch| {
            let (name, value) = self.runtime_switch(switch)?;
            is_zero(value).then(|| format!("{name}={}", String::from_utf8_lossy(value)))
        })
    }

    /// Whether it may suspend the runtime at startup until resumed: on the default port, or on a configured port, whose mode is suspend unless
    /// specified.
    pub(crate) fn is_configured_to_suspend(&self) -> bool {
        let ports = self.runtime_switch("DiagnosticPorts").is_some_and(|(_, value)| !value.is_empty());
        ports || self.runtime_switch("DefaultDiagnosticPortSuspend").is_some_and(|(_, value)| !is_zero(value) && !value.is_empty())
    }

    /// Whether this is one of the configured diagnostic ports.
    pub(crate) fn has_port(&self, port: &Path) -> bool {
        let ports = self.runtime_switch("DiagnosticPorts").map_or(&[][..], |(_, value)| value);
        let mut paths = ports.split(|byte| *byte == b';').filter_map(|port| port.split(|byte| *byte == b',').next());
        paths.any(|path| path == port.as_os_str().as_bytes())
    }

    /// Returns the number in a runtime switch. Such numbers are hexadecimal, with or without `0x`.
    pub(super) fn number(&self, switch: &str) -> Option<u64> {
        let (_, value) = self.runtime_switch(switch)?;
        let digits = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"0X")).unwrap_or(value);
        u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn runtime_switch(&self, switch: &str) -> Option<(String, &[u8])> {
        ["DOTNET_", "COMPlus_"].iter().find_map(|prefix| {
            let name = format!("{prefix}{switch}");
            self.get(&name).map(|value| (name, value))
        })
    }
}

/// Numbers in runtime switches are hexadecimal, with or without `0x`.
fn is_zero(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"0x").unwrap_or(value);
    !digits.is_empty() && digits.iter().all(|byte| *byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environ(text: &str) -> Environ {
        Environ::new(text.replace(' ', "\0").into_bytes())
    }

    #[test]
    fn diagnostic_port_is_found_in_the_list() {
        for (block, has) in [
            ("", false),
            ("DOTNET_DiagnosticPorts=/tmp/a/port,suspend,connect", true),
            ("A=1 DOTNET_DiagnosticPorts=/x,nosuspend;/tmp/a/port,suspend B=2", true),
            ("DOTNET_DiagnosticPorts=/tmp/a/port", true),
            ("DOTNET_DiagnosticPorts=/tmp/a/port2,suspend", false),
            ("OTHER=/tmp/a/port,suspend", false),
        ] {
            assert_eq!(environ(block).has_port(Path::new("/tmp/a/port")), has, "{block}");
        }
    }

    #[test]
    fn variables_are_split_at_the_first_equals_sign() {
        let block = Environ::new(b"A=1=2\0=C:\0B=\0word\0\xff=\xfe\0".to_vec());
        let pairs = block.variables().into_iter().map(|variable| (variable.name, variable.value)).collect::<Vec<_>>();
        let expected = [("A", "1=2"), ("B", ""), ("\u{fffd}", "\u{fffd}")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(pairs, expected);
    }

    #[test]
    fn first_non_empty_tmpdir_is_used() {
        for (block, tmpdir) in [
            ("", None),
            ("TMPDIR=", None),
            ("MYTMPDIR=/x TMPDIRS=/y TMPDIR", None),
            ("A=1 TMPDIR=/var/tmp B=2", Some("/var/tmp")),
            ("TMPDIR=/first TMPDIR=/second", Some("/first")),
            ("TMPDIR=rel/dir", Some("rel/dir")),
        ] {
            assert_eq!(environ(block).tmpdir(), tmpdir.map(Path::new), "{block}");
        }
    }

    #[test]
    fn switches_that_turn_diagnostics_off() {
        for (block, off) in [
            ("PATH=/bin", None),
            ("DOTNET_EnableDiagnostics=1", None),
            ("DOTNET_EnableDiagnostics=", None),
            ("DOTNET_EnableDiagnostics=0", Some("DOTNET_EnableDiagnostics=0")),
            ("COMPlus_EnableDiagnostics=0x0", Some("COMPlus_EnableDiagnostics=0x0")),
            ("COMPlus_EnableDiagnostics=0 DOTNET_EnableDiagnostics=1", None),
            ("DOTNET_EnableDiagnostics_IPC=00", Some("DOTNET_EnableDiagnostics_IPC=00")),
            ("DOTNET_EnableDiagnostics=1 DOTNET_EnableDiagnostics_IPC=0", Some("DOTNET_EnableDiagnostics_IPC=0")),
        ] {
            assert_eq!(environ(block).diagnostics_off().as_deref(), off, "{block}");
        }
    }

    #[test]
    fn settings_that_suspend_at_startup() {
        for (block, suspends) in [
            ("", false),
            ("DOTNET_DefaultDiagnosticPortSuspend=0", false),
            ("DOTNET_DefaultDiagnosticPortSuspend=1", true),
            ("COMPlus_DefaultDiagnosticPortSuspend=1", true),
            ("DOTNET_DiagnosticPorts=", false),
            ("DOTNET_DiagnosticPorts=/tmp/p,connect", true),
        ] {
            assert_eq!(environ(block).is_configured_to_suspend(), suspends, "{block}");
        }
    }
}
