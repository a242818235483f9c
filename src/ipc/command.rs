//! The commands of the diagnostic IPC protocol.

use std::fmt;

use super::field::Field;
use super::{
    BufferMb, BufferMode, ClientData, Destination, DumpFlags, DumpKind, DumpLog, EnvironmentName, EnvironmentValue, Guid, Hresult, Message,
    MessageTooLong, PerfMapKind, Providers, SessionId, StreamingSession, TargetPath,
};
use crate::wire::Reader;

/// The table of commands: code, name, first .NET version, purpose, and the payload fields in wire order.
macro_rules! commands {
    ($(
        $(#[$doc:meta])* $code:literal $name:ident since $since:literal for $purpose:literal
        $({ $($(#[$about:meta])* $field:ident: $type:ty),+ $(,)? })?;
    )+) => {
        /// A command with its arguments; one variant per command of the protocol.
        /// Malformed requests that would crash a runtime cannot be expressed.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Command {
            $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)+
        }

        /// Command set and ID, displayed as `0x0204`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum CommandCode {
            $($(#[$doc])* $name = $code,)+
        }

        impl CommandCode {
            /// All commands, ordered by code.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the name in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// Returns the first major version of .NET with this command. Older ones reply with [`Hresult::UNKNOWN_COMMAND`].
            pub fn since(self) -> u32 {
                match self {
                    $(Self::$name => $since,)+
                }
            }

            /// Returns the feature that older versions of the command lack, as the subject of a sentence.
            pub fn purpose(self) -> &'static str {
                match self {
                    $(Self::$name => $purpose,)+
                }
            }
        }

        impl Command {
            /// Returns the code of the command.
            pub fn code(&self) -> CommandCode {
                match self {
                    $(Self::$name $({ $($field: _),+ })? => CommandCode::$name,)+
                }
            }

            fn write_payload(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name $({ $($field),+ })? => { $($($field.write(out);)+)? })+
                }
            }

            fn read_payload(code: CommandCode, payload: &[u8]) -> Result<Self, Hresult> {
                let reader = &mut Reader::new(payload);
                match code {
                    $(CommandCode::$name => Ok(Self::$name $({ $($field: <$type>::read(reader)?),+ })?),)+
                }
            }
        }
    };
}

commands! {
    /// Writes a core dump.
    0x0101 GenerateCoreDump since 3 for "writing a core dump" {
        /// Output path.
        path: TargetPath,
        /// Kind of dump.
        kind: DumpKind,
        /// Whether the target logs the dump.
        log: DumpLog,
    };
    /// Writes a core dump.
    0x0102 GenerateCoreDump2 since 6 for "a crash report" {
        /// Output path.
        path: TargetPath,
        /// Kind of dump.
        kind: DumpKind,
        /// Additional options.
        flags: DumpFlags,
    };
    /// Writes a core dump; a failure has an error message.
    0x0103 GenerateCoreDump3 since 7 for "an error message for a failed dump" {
        /// Output path.
        path: TargetPath,
        /// Kind of dump.
        kind: DumpKind,
        /// Additional options.
        flags: DumpFlags,
    };
    /// Stops a trace session. Must be sent on a second connection while the stream is still being read: otherwise the target's diagnostic
    /// server blocks on the reader and serves no other client. An unknown session ID results in success.
    0x0201 StopTracing since 3 for "recording" {
        /// Session to stop.
        session: SessionId,
    };
    /// Starts a trace session with rundown and stacks; the stream follows the reply.
    0x0202 CollectTracing since 3 for "recording" {
        /// Maximum size of the event buffer.
        buffer: BufferMb,
        /// Providers to enable.
        providers: Providers,
    };
    /// Starts a trace session with stacks.
    0x0203 CollectTracing2 since 3 for "recording without rundown" {
        /// Maximum size of the event buffer.
        buffer: BufferMb,
        /// Whether to write the rundown at the end.
        rundown: bool,
        /// Providers to enable.
        providers: Providers,
    };
    /// Starts a trace session.
    0x0204 CollectTracing3 since 9 for "recording without stacks" {
        /// Maximum size of the event buffer.
        buffer: BufferMb,
        /// Whether to write the rundown at the end.
        rundown: bool,
        /// Whether events include stacks.
        stacks: bool,
        /// Providers to enable.
        providers: Providers,
    };
    /// Starts a trace session with selected rundown keywords.
    0x0205 CollectTracing4 since 9 for "selecting the rundown" {
        /// Maximum size of the event buffer.
        buffer: BufferMb,
        /// Keywords of the rundown events at the end; 0 for none.
        rundown_keyword: u64,
        /// Whether events include stacks.
        stacks: bool,
        /// Providers to enable.
        providers: Providers,
    };
    /// Starts a trace session with event ID filters, or one that writes to user_events.
    0x0206 CollectTracing5 since 10 for "filtering by event id, or recording into user_events," {
        /// Destination of the events, with the session settings.
        session: Destination<StreamingSession>,
    };
    /// Starts a trace session that may block the target instead of dropping events, or one that writes to user_events.
    0x0207 CollectTracing6 since 11 for "blocking the target instead of dropping events" {
        /// Destination of the events, with the session settings.
        session: Destination<(StreamingSession, BufferMode)>,
    };
    /// Attaches a profiler to the running process. Not valid until startup is complete.
    0x0301 AttachProfiler since 3 for "attaching a profiler" {
        /// Timeout in milliseconds.
        timeout_ms: u32,
        /// CLSID of the profiler.
        profiler: Guid,
        /// Path of the profiler's library.
        path: TargetPath,
        /// Data passed to the profiler.
        data: ClientData,
    };
    /// Loads a profiler into a process suspended at startup. If the process is already running, runtimes were seen to report success without
    /// doing anything.
    0x0302 StartupProfiler since 6 for "loading a profiler at startup" {
        /// CLSID of the profiler.
        profiler: Guid,
        /// Path of the profiler's library.
        path: TargetPath,
    };
    /// Reads PID, cookie, command line and platform.
    0x0400 ProcessInfo since 5 for "process information";
    /// Resumes a process that is suspended at startup. No effect on a running one.
    0x0401 ResumeRuntime since 5 for "resuming at startup";
    /// Requests the environment block, which follows the reply.
    0x0402 ProcessEnvironment since 5 for "reading the environment";
    /// Sets or unsets an environment variable. **Unsetting one kills NativeAOT programs of .NET 8.**
    0x0403 SetEnvironmentVariable since 6 for "setting environment variables" {
        /// Name of the variable.
        name: EnvironmentName,
        /// New value; `None` unsets the variable.
        value: Option<EnvironmentValue>,
    };
    /// Like `ProcessInfo`, with entry assembly and runtime version.
    0x0404 ProcessInfo2 since 6 for "process information";
    /// Starts writing perf map files. **Kills .NET 8 and 9 while they are suspended at startup**: see [`CommandCode::is_fatal_while_suspended`].
    0x0405 EnablePerfMap since 8 for "enabling and disabling perf maps" {
        /// Files to write.
        kind: PerfMapKind,
    };
    /// Stops writing perf map files.
    0x0406 DisablePerfMap since 8 for "enabling and disabling perf maps";
    /// Runs a startup hook, or registers it to run when the process is resumed. **Kills .NET 9 and 10 if the assembly fails to load or its
    /// method throws**, and also .NET 8 if it was registered: make sure that it is a startup hook and that the target can read it.
    0x0407 ApplyStartupHook since 8 for "a startup hook" {
        /// Path of the hook's assembly.
        path: TargetPath,
    };
    /// Like `ProcessInfo2`, with the portable runtime identifier.
    0x0408 ProcessInfo3 since 8 for "process information";
}

const DUMP_SET: u8 = 1;
const EVENT_PIPE_SET: u8 = 2;
const PROFILER_SET: u8 = 3;

impl CommandCode {
    /// Returns the command with this set and ID.
    pub fn of(set: u8, id: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.set() == set && code.id() == id)
    }

    /// Returns the command set.
    pub fn set(self) -> u8 {
        (self as u16 >> 8) as u8
    }

    /// Returns the command ID within its set.
    pub fn id(self) -> u8 {
        self as u16 as u8
    }

    /// Returns whether the command starts or stops a trace session.
    pub fn is_session(self) -> bool {
        self.set() == EVENT_PIPE_SET
    }

    /// Returns whether this is any version of `CollectTracing`.
    pub fn starts_session(self) -> bool {
        self.is_session() && self != Self::StopTracing
    }

    /// Returns the required .NET version as the end of a sentence: `needs .NET 8`.
    pub fn needs(self) -> &'static str {
        match self.since() {
            ..=3 => "needs .NET Core 3.0",
            4..=5 => "needs .NET 5",
            6 => "needs .NET 6",
            7 => "needs .NET 7",
            8 => "needs .NET 8",
            9 => "needs .NET 9",
            10 => "needs .NET 10",
            11.. => "needs .NET 11",
        }
    }

    /// Returns whether the command affects the target. Only queries do not: a session uses memory and CPU of the target while it is open, and
    /// a stop may end another client's session.
    pub fn changes_target(self) -> bool {
        !matches!(self, Self::ProcessInfo | Self::ProcessInfo2 | Self::ProcessInfo3 | Self::ProcessEnvironment)
    }

    /// Returns whether NativeAOT programs support the command. They cannot be dumped with type information, profiled or extended; seen on
    /// 8.0.33, which answers dump commands with [`Hresult::FAIL`] and the others with [`Hresult::NOT_SUPPORTED`].
    pub fn is_for_native_aot(self) -> bool {
        !matches!(self.set(), DUMP_SET | PROFILER_SET)
            && !matches!(self, Self::EnablePerfMap | Self::DisablePerfMap | Self::ApplyStartupHook)
    }

    /// Returns whether the command is safe and useful while the runtime is suspended at startup. For a profiler, only `StartupProfiler` works then.
    pub fn may_be_sent_while_suspended(self) -> bool {
        !self.is_fatal_while_suspended() && self != Self::AttachProfiler
    }

    /// Returns whether the command crashes a suspended or starting runtime with a segmentation fault: .NET 8 and 9 crash, .NET 10 does not.
    pub fn is_fatal_while_suspended(self) -> bool {
        self == Self::EnablePerfMap
    }
}

impl fmt::Display for CommandCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", *self as u16)
    }
}

impl Command {
    /// Encodes the command, to be sent in one write.
    ///
    /// # Errors
    /// [`MessageTooLong`] if names, arguments or data do not fit into one message.
    pub fn encode(&self) -> Result<Vec<u8>, MessageTooLong> {
        let code = self.code();
        let mut payload = Vec::new();
        self.write_payload(&mut payload);
        Message { set: code.set(), id: code.id(), payload: &payload }.encode()
    }

    /// Decodes a command sent by a client. Bytes after the last field are ignored, as in the runtimes.
    ///
    /// # Errors
    /// Returns the error with which a runtime replies to such a message. Where real runtimes crash or accept malformed input (an empty
    /// variable name, a stop with a truncated ID, NetPerf streams), this is the error of one that validates.
    pub fn decode(message: &Message<'_>) -> Result<Self, Hresult> {
        let code = CommandCode::of(message.set, message.id).ok_or(Hresult::UNKNOWN_COMMAND)?;
        Self::read_payload(code, message.payload)
    }
}

#[cfg(test)]
mod tests;
