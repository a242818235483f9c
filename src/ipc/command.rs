//! Every command of the protocol.

use std::fmt;

use super::dump::{DumpFlags, DumpKind, DumpLog};
use super::field::Field;
use super::{
    BufferMb, BufferMode, ClientData, Destination, EnvironmentName, EnvironmentValue, FilteredStream, Guid, Hresult, Message, PerfMapKind,
    Providers, SessionId, TargetPath, TooLong,
};
use crate::wire::Reader;

/// The one table of commands: code, name, the first .NET that has it, and the fields of its payload in their order on the wire.
macro_rules! commands {
    ($($(#[$doc:meta])* $code:literal $name:ident since $since:literal $({ $($(#[$about:meta])* $field:ident: $type:ty),+ $(,)? })?;)+) => {
        /// A command with all that it needs. Each variant is one command of the wire; there is none that a runtime would not survive.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Command {
            $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),+ })?,)+
        }

        /// Which command: set and id, displayed as `0x0204`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum CommandCode {
            $($(#[$doc])* $name = $code,)+
        }

        impl CommandCode {
            /// Every command, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// The first major version of .NET that has it. Older ones answer [`Hresult::UNKNOWN_COMMAND`].
            pub fn since(self) -> u32 {
                match self {
                    $(Self::$name => $since,)+
                }
            }
        }

        impl Command {
            /// Which command it is.
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
    0x0101 GenerateCoreDump since 3 {
        /// Where.
        path: TargetPath,
        /// How much of the process.
        kind: DumpKind,
        /// Whether the target logs it.
        log: DumpLog,
    };
    /// Writes a core dump.
    0x0102 GenerateCoreDump2 since 6 {
        /// Where.
        path: TargetPath,
        /// How much of the process.
        kind: DumpKind,
        /// What else is done.
        flags: DumpFlags,
    };
    /// Writes a core dump; a failure has its reason in words.
    0x0103 GenerateCoreDump3 since 7 {
        /// Where.
        path: TargetPath,
        /// How much of the process.
        kind: DumpKind,
        /// What else is done.
        flags: DumpFlags,
    };
    /// Ends a trace session. To be sent on a second connection while the stream continues being read: otherwise the target's diagnostic server
    /// waits for the reader and answers no client. An id that no session has is answered with success.
    0x0201 StopTracing since 3 {
        /// Which session.
        session: SessionId,
    };
    /// Starts a trace session with rundown and stacks; the stream follows the reply.
    0x0202 CollectTracing since 3 {
        /// The limit of what waits to be sent.
        buffer: BufferMb,
        /// What is turned on.
        providers: Providers,
    };
    /// Starts a trace session with stacks.
    0x0203 CollectTracing2 since 3 {
        /// The limit of what waits to be sent.
        buffer: BufferMb,
        /// Whether methods and modules are described at the end.
        rundown: bool,
        /// What is turned on.
        providers: Providers,
    };
    /// Starts a trace session.
    0x0204 CollectTracing3 since 9 {
        /// The limit of what waits to be sent.
        buffer: BufferMb,
        /// Whether methods and modules are described at the end.
        rundown: bool,
        /// Whether events carry their stacks.
        stacks: bool,
        /// What is turned on.
        providers: Providers,
    };
    /// Starts a trace session that chooses its rundown.
    0x0205 CollectTracing4 since 9 {
        /// The limit of what waits to be sent.
        buffer: BufferMb,
        /// Which rundown events come at the end; 0 for none.
        rundown_keyword: u64,
        /// Whether events carry their stacks.
        stacks: bool,
        /// What is turned on.
        providers: Providers,
    };
    /// Starts a trace session with filters by event id, or one into user_events.
    0x0206 CollectTracing5 since 10 {
        /// Where the events go, and all else.
        session: Destination<FilteredStream>,
    };
    /// Starts a trace session that may block the target instead of dropping events, or one into user_events.
    0x0207 CollectTracing6 since 11 {
        /// Where the events go, and all else.
        session: Destination<(FilteredStream, BufferMode)>,
    };
    /// Loads a profiler into the running process. Not before startup is over.
    0x0301 AttachProfiler since 3 {
        /// How long the target may take, in milliseconds.
        timeout_ms: u32,
        /// The profiler's class.
        profiler: Guid,
        /// Its library.
        path: TargetPath,
        /// What it is handed.
        data: ClientData,
    };
    /// Loads a profiler into a process that is suspended at startup. Runtimes were seen to answer "done" and do nothing when it runs already.
    0x0302 StartupProfiler since 6 {
        /// The profiler's class.
        profiler: Guid,
        /// Its library.
        path: TargetPath,
    };
    /// Reads pid, cookie, command line and platform.
    0x0400 ProcessInfo since 5;
    /// Lets a process that is suspended at startup run. Nothing happens to one that runs.
    0x0401 ResumeRuntime since 5;
    /// Asks for the environment block, which follows the reply.
    0x0402 ProcessEnvironment since 5;
    /// Sets or unsets an environment variable. **Unsetting one kills NativeAOT programs of .NET 8.**
    0x0403 SetEnvironmentVariable since 6 {
        /// Which variable.
        name: EnvironmentName,
        /// Its new value; `None` unsets it.
        value: Option<EnvironmentValue>,
    };
    /// The same with entry assembly and runtime version.
    0x0404 ProcessInfo2 since 6;
    /// Starts perf map files. **Kills .NET 8 and 9 while they are suspended at startup**: see [`CommandCode::is_fatal_while_suspended`].
    0x0405 EnablePerfMap since 8 {
        /// Which files.
        kind: PerfMapKind,
    };
    /// Stops perf map files.
    0x0406 DisablePerfMap since 8;
    /// Runs a startup hook, or sets it up for when the process is resumed. **Kills .NET 9 and 10 when the assembly does not load or its method
    /// throws**, and .NET 8 too when it was set up: make sure that it is a startup hook and that the target can read it.
    0x0407 ApplyStartupHook since 8 {
        /// The hook's assembly.
        path: TargetPath,
    };
    /// The same with the portable runtime identifier.
    0x0408 ProcessInfo3 since 8;
}

impl CommandCode {
    /// The command of a set and id of the wire.
    pub fn of(set: u8, id: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.set() == set && code.id() == id)
    }

    /// Its command set.
    pub fn set(self) -> u8 {
        (self as u16 >> 8) as u8
    }

    /// Its id in the set.
    pub fn id(self) -> u8 {
        self as u16 as u8
    }

    /// Whether it starts a trace session, in whichever generation.
    pub fn starts_session(self) -> bool {
        matches!(
            self,
            Self::CollectTracing
                | Self::CollectTracing2
                | Self::CollectTracing3
                | Self::CollectTracing4
                | Self::CollectTracing5
                | Self::CollectTracing6
        )
    }

    /// What it takes, in words: `needs .NET 8`.
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

    /// What it can do that older commands of its kind cannot, as the subject of a sentence.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::GenerateCoreDump => "writing a core dump",
            Self::GenerateCoreDump2 => "a crash report",
            Self::GenerateCoreDump3 => "the reason of a failed dump",
            Self::StopTracing | Self::CollectTracing => "recording",
            Self::CollectTracing2 => "recording without rundown",
            Self::CollectTracing3 => "recording without stacks",
            Self::CollectTracing4 => "a choice of the rundown",
            Self::CollectTracing5 => "a filter by event ids, or recording into user_events,",
            Self::CollectTracing6 => "blocking the target instead of dropping events",
            Self::AttachProfiler => "attaching a profiler",
            Self::StartupProfiler => "a profiler at startup",
            Self::ProcessInfo | Self::ProcessInfo2 | Self::ProcessInfo3 => "process information",
            Self::ResumeRuntime => "resuming at startup",
            Self::ProcessEnvironment => "reading the environment",
            Self::SetEnvironmentVariable => "setting environment variables",
            Self::EnablePerfMap | Self::DisablePerfMap => "turning perf maps on and off",
            Self::ApplyStartupHook => "a startup hook",
        }
    }

    /// Whether it changes its target. Only questions do not: a session costs the target memory and time for as long as it is open, and a stop may end
    /// the session of another client.
    pub fn changes_target(self) -> bool {
        !matches!(self, Self::ProcessInfo | Self::ProcessInfo2 | Self::ProcessInfo3 | Self::ProcessEnvironment)
    }

    /// Whether it opens or stops an event session.
    pub fn is_session(self) -> bool {
        matches!(
            self,
            Self::StopTracing
                | Self::CollectTracing
                | Self::CollectTracing2
                | Self::CollectTracing3
                | Self::CollectTracing4
                | Self::CollectTracing5
                | Self::CollectTracing6
        )
    }

    /// Whether NativeAOT programs execute it. They have no code that could be dumped with its types, profiled, or extended; seen on 8.0.33, where
    /// dumps are answered with [`Hresult::FAIL`], and the others with [`Hresult::NOT_SUPPORTED`].
    pub fn is_for_native_aot(self) -> bool {
        !matches!(
            self,
            Self::GenerateCoreDump
                | Self::GenerateCoreDump2
                | Self::GenerateCoreDump3
                | Self::AttachProfiler
                | Self::StartupProfiler
                | Self::EnablePerfMap
                | Self::DisablePerfMap
                | Self::ApplyStartupHook
        )
    }

    /// Whether a runtime that is suspended at startup survives it and does something sensible. A profiler can only be set up by `StartupProfiler`
    /// then.
    pub fn may_be_sent_while_suspended(self) -> bool {
        !self.is_fatal_while_suspended() && self != Self::AttachProfiler
    }

    /// Whether a runtime that is suspended at startup, or starting, ends with a segmentation fault: .NET 8 and 9 do, .NET 10 does not.
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
    /// The bytes to send, in one write.
    ///
    /// # Errors
    /// [`TooLong`] where names, arguments or data do not fit one message.
    pub fn encode(&self) -> Result<Vec<u8>, TooLong> {
        let code = self.code();
        let mut payload = Vec::new();
        self.write_payload(&mut payload);
        Message { set: code.set(), id: code.id(), payload: &payload }.encode()
    }

    /// The command that a client sent. Bytes behind the last field are ignored, as in the runtimes.
    ///
    /// # Errors
    /// What a runtime answers to such a message. Where real ones crash, or make do with what is malformed (an empty variable name, a stop with
    /// less than an id, NetPerf streams), it is what one would answer that checked.
    pub fn decode(message: &Message<'_>) -> Result<Self, Hresult> {
        let code = CommandCode::of(message.set, message.id).ok_or(Hresult::UNKNOWN_COMMAND)?;
        Self::read_payload(code, message.payload)
    }
}

#[cfg(test)]
mod tests;
