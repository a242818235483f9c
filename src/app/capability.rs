//! What can be done with a process, and why not.

use crate::ipc::{Capabilities, CommandCode};
use crate::model::{Capability, Contact, Process};

/// The capability table of a process, by its runtime's version. Empty while that is not known.
pub fn capabilities(process: &Process) -> Vec<Capability> {
    if process.runtime.is_none() && process.contact != Contact::Ok {
        return Vec::new();
    }
    Capability::table(&Capabilities::of(process.runtime.as_ref()))
}

/// Why a process cannot be sent a command, as far as its runtime's version says.
pub(super) fn missing(process: &Process, command: CommandCode) -> Option<String> {
    let Process { name, runtime, contact, .. } = process;
    let needs = Capabilities::of(runtime.as_ref()).missing(command)?;
    Some(match runtime {
        Some(version) => format!("This {needs}; {name} runs {version}."),
        None if *contact == Contact::Ok => format!("This {needs}; {name} runs an older one."),
        None => format!("This {needs}; the runtime of {name} has not said its version yet."),
    })
}
