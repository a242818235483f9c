//! What can be done with a process, and why not.

use crate::ipc::CommandCode;
use crate::model::{Capability, Contact, NativeAotGap, Process};

/// The capability table of a process. Empty while nothing is known of its runtime.
pub fn capabilities(process: &Process) -> Vec<Capability> {
    if process.runtime.is_none() && process.contact != Contact::Ok {
        return Vec::new();
    }
    Capability::table(&process.capabilities())
}

/// Why a process cannot be sent a command, as far as its runtime's answers and version say.
pub(super) fn missing(process: &Process, command: CommandCode) -> Option<String> {
    let Process { name, runtime, key, .. } = process;
    if let Some(gap) = NativeAotGap::of(command).filter(|_| process.native_aot) {
        return Some(format!("{name}: {}.", gap.words(key.pid)));
    }
    let needs = process.capabilities().missing(command)?;
    Some(match runtime {
        Some(version) => format!("This {needs}; {name} runs {version}."),
        None => format!("This {needs}; {name} runs an older one."),
    })
}
