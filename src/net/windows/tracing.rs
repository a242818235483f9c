//! Reasons why a process may not be dumped: on Windows, the runtime starts a program for that, which is missing for a single-file application.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use crate::model::Obstacle;

/// Returns that the dump program is missing next to the program of a process. A shared runtime has it in its own directory.
pub fn untraceable(pid: u32) -> Option<&'static Obstacle> {
    let (mut system, pid) = (System::new(), Pid::from_u32(pid));
    let program = ProcessRefreshKind::nothing().with_exe(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, program);
    // Seen with .NET 10: the runtime uses this file if it exists.
    let dump_program = system.process(pid)?.exe()?.with_file_name("createdump.exe");
    (!dump_program.exists()).then_some(&Obstacle {
        what: "on Windows the runtime starts createdump.exe for a dump, which is missing next to this program",
        remedy: "if it was published as a single file, copy createdump.exe of the same .NET version into its folder; otherwise it may lack disk \
                 space or permissions",
    })
}
