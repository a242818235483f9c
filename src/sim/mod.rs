//! Simulated runtimes: the diagnostic server of a .NET process on a real socket, with a simulated program behind it.
//!
//! Used by `--demo` and the tests. A simulated runtime answers like a real one of its version, blocks where that blocks, and crashes on the requests
//! that crash a real one; faults can be added. dn-top connects to it over an ordinary socket: no other code depends on it being simulated.

mod fatal_requests;
mod fleet;
#[cfg_attr(not(target_os = "linux"), path = "portable/handle.rs")]
mod handle;
mod port;
#[cfg_attr(not(target_os = "linux"), path = "portable/proc_tree.rs")]
mod proc_tree;
mod program;
mod requested;
mod runtime;
mod server;
mod spec;
mod stream;
mod tolerated;

pub use fleet::Fleet;
pub use server::Simulated;
pub use spec::{ConnectPort, Fault, Rates, Script, Spec};

#[cfg(test)]
pub(crate) mod tests;
