//! Process information: the replies to `ProcessInfo`, `ProcessInfo2` and `ProcessInfo3`.

use super::field::{put_string, read_string};
use super::{Attempt, Command, CommandCode, Cookie, RuntimeVersion};
use crate::wire::{Put, Reader, WireError};

/// Process information as reported by the runtime. Strings are unsanitized: sanitize them before printing them to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process ID in the target's own PID namespace.
    pub pid: u64,
    /// Random ID of the runtime instance.
    pub cookie: Cookie,
    /// Executable and arguments, separated by single spaces. While suspended at startup, only the executable.
    pub command_line: String,
    /// `Linux`, `Windows` or `macOS`.
    pub os: String,
    /// `x64`, `x86`, `arm64` or `arm32`.
    pub arch: String,
    /// Name of the entry assembly; can be empty. `None` if the runtime supports only `ProcessInfo`.
    pub entry_assembly: Option<String>,
    /// Runtime version. `None` if the runtime supports only `ProcessInfo`.
    pub clr_version: Option<RuntimeVersion>,
    /// Portable runtime identifier, such as `linux-x64`. `None` if the runtime does not support `ProcessInfo3`.
    pub rid: Option<String>,
}

/// Version field of a `ProcessInfo3` payload. Later versions only append fields.
const PAYLOAD_VERSION: u32 = 1;

impl ProcessInfo {
    /// Returns the commands to try, the most detailed one first. A 3.x runtime supports none of them.
    pub fn attempts() -> Vec<Attempt> {
        [Command::ProcessInfo3, Command::ProcessInfo2, Command::ProcessInfo].map(Attempt::exact).into()
    }

    /// Returns the reported version, or else 5.0: .NET 5 is the only version that supports just the last of these commands, which does not
    /// report the version.
    pub fn runtime_version(&self) -> RuntimeVersion {
        self.clr_version.clone().unwrap_or_else(|| RuntimeVersion::new("5.0"))
    }

    /// Reads the payload of a reply to `code`. The field order is that of real runtimes, which differs from the structures in the
    /// specification: the cookie is the second field.
    pub(super) fn read(code: CommandCode, payload: &[u8]) -> Result<Self, WireError> {
        let reader = &mut Reader::new(payload);
        let text = |reader: &mut Reader<'_>| read_string(reader).map(Option::unwrap_or_default);
        if code == CommandCode::ProcessInfo3 {
            reader.u32()?;
        }
        let mut info = Self {
            pid: reader.u64()?,
            cookie: Cookie(reader.array()?),
            command_line: text(reader)?,
            os: text(reader)?,
            arch: text(reader)?,
            entry_assembly: None,
            clr_version: None,
            rid: None,
        };
        if code != CommandCode::ProcessInfo {
            info.entry_assembly = Some(text(reader)?);
            info.clr_version = Some(RuntimeVersion::new(&text(reader)?));
        }
        if code == CommandCode::ProcessInfo3 {
            info.rid = Some(text(reader)?);
        }
        Ok(info)
    }

    /// Writes the payload of a reply to `code`. Unknown strings are written as empty.
    pub(super) fn write(&self, code: CommandCode, out: &mut Vec<u8>) {
        if code == CommandCode::ProcessInfo3 {
            out.put_u32(PAYLOAD_VERSION);
        }
        out.put_u64(self.pid);
        out.put(&self.cookie.0);
        for text in [&self.command_line, &self.os, &self.arch] {
            put_string(out, text);
        }
        if code != CommandCode::ProcessInfo {
            put_string(out, self.entry_assembly.as_deref().unwrap_or_default());
            put_string(out, self.clr_version.as_ref().map(RuntimeVersion::as_str).unwrap_or_default());
        }
        if code == CommandCode::ProcessInfo3 {
            put_string(out, self.rid.as_deref().unwrap_or_default());
        }
    }
}
