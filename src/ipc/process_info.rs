//! Who a process is: the replies to `ProcessInfo`, `ProcessInfo2` and `ProcessInfo3`.

use super::field::{put_string, read_string};
use super::{Attempt, Command, CommandCode, Cookie, RuntimeVersion};
use crate::wire::{Put, Reader, WireError};

/// What a process reports of itself. Its text is as the target sent it: make it safe before a terminal sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id in the target's own pid namespace.
    pub pid: u64,
    /// The runtime instance's random id.
    pub cookie: Cookie,
    /// Executable and arguments with single spaces between them. While suspended at startup, the executable alone.
    pub command_line: String,
    /// `Linux`, `Windows` or `macOS`.
    pub os: String,
    /// `x64`, `x86`, `arm64` or `arm32`.
    pub arch: String,
    /// Name of the entry assembly; may be empty. `None` from a runtime that has only `ProcessInfo`.
    pub entry_assembly: Option<String>,
    /// Version of the runtime. `None` from a runtime that has only `ProcessInfo`.
    pub clr_version: Option<RuntimeVersion>,
    /// Portable runtime identifier, such as `linux-x64`. `None` from a runtime that does not know `ProcessInfo3`.
    pub rid: Option<String>,
}

/// The version that a `ProcessInfo3` payload begins with. Later ones only append.
const PAYLOAD_VERSION: u32 = 1;

impl ProcessInfo {
    /// The commands to try, the one with the most facts first. A 3.x runtime has none of them.
    pub fn attempts() -> Vec<Attempt> {
        [Command::ProcessInfo3, Command::ProcessInfo2, Command::ProcessInfo].map(Attempt::exact).into()
    }

    /// The version that it reports, or that follows from its not reporting one: of the runtimes that answer at all, only .NET 5 has none but the last
    /// of these commands, which has no field for the version.
    pub fn runtime_version(&self) -> RuntimeVersion {
        self.clr_version.clone().unwrap_or_else(|| RuntimeVersion::new("5.0"))
    }

    /// Reads the payload of a reply to `code`. The order of the fields is what runtimes send, which is not what the structures in the
    /// specification have it: the cookie is the second field.
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

    /// Writes the payload of a reply to `code`. What is not known is empty.
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
