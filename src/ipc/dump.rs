//! Core dumps.

use super::field::Field;
use super::{Attempt, Command, Hresult, TargetPath};
use crate::wire::{Put, Reader};

/// How much of the process a dump holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DumpKind {
    /// Modules, threads, stacks, exceptions.
    Mini = 1,
    /// Mini and the managed heap.
    Heap = 2,
    /// Mini without what may be personal, such as paths and passwords.
    Triage = 3,
    /// All memory.
    Full = 4,
}

impl DumpKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Mini, Self::Heap, Self::Triage, Self::Full];

    /// The word of the command line contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mini => "mini",
            Self::Heap => "heap",
            Self::Triage => "triage",
            Self::Full => "full",
        }
    }
}

impl Field for DumpKind {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(*self as u32);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let number = reader.u32()?;
        Self::ALL.into_iter().find(|kind| *kind as u32 == number).ok_or(Hresult::FAIL)
    }
}

/// What is done besides the dump, or instead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpFlags {
    /// The target logs the making of the dump on its console.
    pub log: bool,
    /// It logs much.
    pub verbose: bool,
    /// A crash report in JSON stands beside the dump.
    pub crash_report: bool,
    /// Only the crash report is made.
    pub crash_report_only: bool,
}

impl DumpFlags {
    fn bits(self) -> u32 {
        [self.log, self.verbose, self.crash_report, self.crash_report_only].into_iter().rev().fold(0, |bits, on| bits << 1 | u32::from(on))
    }
}

/// Bits without a meaning here are left out.
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

/// `GenerateCoreDump`'s switch for logging: a whole `u32`.
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

/// A core dump, whichever generation of the command a runtime supports.
///
/// The target stands still while it is written. A dump that succeeded need not exist (NativeAOT answers "done" without one): look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpRequest {
    /// Where the target writes it, as the target sees it. It is taken as it stands: no `%p` or the like in it means anything.
    pub path: TargetPath,
    /// How much of the process it holds.
    pub kind: DumpKind,
    /// What else is done.
    pub flags: DumpFlags,
}

impl DumpRequest {
    /// The commands to try. Only the first reports in words why it failed; the last has no flag but `log` and is left out where another is set.
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
    fn a_path_is_taken_as_it_stands() {
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
    fn no_attempt_drops_a_wish() {
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
