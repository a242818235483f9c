//! Core dumps.

use super::field::{Field, enumeration};
use super::{Attempt, Command, Hresult, TargetPath};
use crate::wire::{Put, Reader};

listed! {
/// Amount of process memory in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DumpKind {
    /// Modules, threads, stacks, exceptions.
    Mini = 1 => "mini",
    /// Like mini, plus the managed heap.
    Heap = 2 => "heap",
    /// Like mini, without possibly personal data such as paths and passwords.
    Triage = 3 => "triage",
    /// All process memory.
    Full = 4 => "full",
}
/// Returns the name used on the command line.
pub fn name(self) -> &'static str;
}

enumeration!(DumpKind, FAIL);

/// Additional options of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpFlags {
    /// The target logs the progress of the dump to its console.
    pub log: bool,
    /// Verbose logging.
    pub verbose: bool,
    /// Write a crash report in JSON next to the dump.
    pub crash_report: bool,
    /// Write only the crash report.
    pub crash_report_only: bool,
}

impl DumpFlags {
    fn bits(self) -> u32 {
        [self.log, self.verbose, self.crash_report, self.crash_report_only].into_iter().rev().fold(0, |bits, on| bits << 1 | u32::from(on))
    }
}

/// Unknown bits are ignored.
impl Field for DumpFlags {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.bits());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let bits = reader.u32()?;
        let on = |bit: u32| bits & bit != 0;
        Ok(Self { log: on(1), verbose: on(2), crash_report: on(4), crash_report_only: on(8) })
    }
}

/// Logging flag of `GenerateCoreDump`, encoded as a `u32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpLog(pub bool);

impl Field for DumpLog {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(u32::from(self.0));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self(reader.u32()? != 0))
    }
}

/// A core dump request, independent of the command version that a runtime supports.
///
/// The target is paused while the dump is written. Success does not mean that the file exists (NativeAOT replies "done" without writing one):
/// check for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpRequest {
    /// Output path as seen by the target. Taken literally: patterns such as `%p` are not expanded.
    pub path: TargetPath,
    /// Kind of dump.
    pub kind: DumpKind,
    /// Additional options.
    pub flags: DumpFlags,
}

impl DumpRequest {
    /// Returns the commands to try. Only the first one reports an error message; the last one supports no flag but `log`, and is omitted if
    /// another flag is set.
    pub fn attempts(&self) -> Vec<Attempt> {
        let Self { kind, flags, .. } = *self;
        let path = self.path.escaped();
        let mut commands = vec![
            Command::GenerateCoreDump3 { path: path.clone(), kind, flags },
            Command::GenerateCoreDump2 { path: path.clone(), kind, flags },
        ];
        if flags.bits() <= 1 {
            commands.push(Command::GenerateCoreDump { path, kind, log: DumpLog(flags.log) });
        }
        commands.into_iter().map(Attempt::exact).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::CommandCode::{GenerateCoreDump, GenerateCoreDump2, GenerateCoreDump3};

    #[test]
    fn percent_signs_in_the_dump_path_are_escaped() {
        let path = TargetPath::new("/tmp/100%/%p_%%").unwrap();
        let request = DumpRequest { path, kind: DumpKind::Full, flags: DumpFlags::default() };
        let sent = |command: Command| match command {
            Command::GenerateCoreDump3 { path, .. } | Command::GenerateCoreDump2 { path, .. } | Command::GenerateCoreDump { path, .. } => {
                path
            }
            other => panic!("{other:?}"),
        };
        let paths: Vec<_> = request.attempts().into_iter().map(|attempt| sent(attempt.command)).collect();
        assert_eq!(paths.iter().map(TargetPath::as_str).collect::<Vec<_>>(), ["/tmp/100%%/%%p_%%%%"; 3]);
    }

    #[test]
    fn every_dump_attempt_keeps_the_requested_flags() {
        let off = DumpFlags::default();
        let table = [
            (off, 0, &[GenerateCoreDump3, GenerateCoreDump2, GenerateCoreDump][..]),
            (DumpFlags { log: true, ..off }, 1, &[GenerateCoreDump3, GenerateCoreDump2, GenerateCoreDump]),
            (DumpFlags { verbose: true, ..off }, 2, &[GenerateCoreDump3, GenerateCoreDump2]),
            (DumpFlags { crash_report: true, ..off }, 4, &[GenerateCoreDump3, GenerateCoreDump2]),
            (DumpFlags { crash_report_only: true, log: true, ..off }, 9, &[GenerateCoreDump3, GenerateCoreDump2]),
        ];
        for (flags, bits, expected) in table {
            assert_eq!(flags.bits(), bits);
            let request = DumpRequest { path: TargetPath::new("/tmp/core").unwrap(), kind: DumpKind::Mini, flags };
            let codes: Vec<_> = request.attempts().iter().map(|attempt| attempt.command.code()).collect();
            assert_eq!(codes, expected);
        }
    }
}
