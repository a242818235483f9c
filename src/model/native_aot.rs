//! Features that NativeAOT programs lack, and alternatives.

use crate::ipc::CommandCode;

/// A feature that only a runtime with a JIT has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeAotGap {
    /// `createdump` is part of CoreCLR.
    Dump,
    /// No methods are JIT-compiled that a perf map could name.
    PerfMap,
    /// Assemblies cannot be loaded.
    StartupHook,
    /// There is no profiler interface.
    Profiler,
    /// There is no sampling profiler.
    Samples,
    /// There is no heap walk.
    Heap,
}

impl NativeAotGap {
    /// Returns the missing feature of a command; `None` if NativeAOT programs support it.
    pub fn of(command: CommandCode) -> Option<Self> {
        use CommandCode as Code;
        if command.is_for_native_aot() {
            return None;
        }
        Some(match command {
            Code::EnablePerfMap | Code::DisablePerfMap => Self::PerfMap,
            Code::ApplyStartupHook => Self::StartupHook,
            Code::AttachProfiler | Code::StartupProfiler => Self::Profiler,
            _ => Self::Dump,
        })
    }

    /// Returns the reason and an alternative, as a sentence without a period.
    pub fn message(self, pid: u32) -> String {
        let (what, instead) = match self {
            Self::Dump => ("cannot write a core dump itself", format!("`gcore {pid}` writes one")),
            Self::PerfMap => ("has no perf map", format!("`perf record -g -p {pid}` finds its methods in the program file")),
            Self::StartupHook => ("cannot load an assembly", "build it with the code".to_owned()),
            Self::Profiler => ("cannot load a CLR profiler", format!("`perf record -g -p {pid}` profiles native code")),
            Self::Samples => ("sends no samples of its threads", format!("`perf record -g -p {pid}` or `gdb -p {pid}` show what they do")),
            Self::Heap => ("has no heap walk", format!("`dn-top counters {pid}` shows the sizes of its heap")),
        };
        format!("a NativeAOT program {what}; {instead}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unsupported_command_has_a_message() {
        for code in CommandCode::ALL {
            assert_eq!(NativeAotGap::of(*code).is_some(), !code.is_for_native_aot(), "{code}");
        }
        let dump = NativeAotGap::of(CommandCode::GenerateCoreDump3).unwrap();
        assert_eq!(dump.message(7), "a NativeAOT program cannot write a core dump itself; `gcore 7` writes one");
    }
}
