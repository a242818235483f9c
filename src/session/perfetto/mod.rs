//! A data source of Perfetto's tracing service: whatever records `dotnet` there gets the events of .NET processes while they happen.
//!
//! Each recording has a session of its own in each process, with the profiles that its configuration names. A thread per session reads the stream,
//! converts it and hands packets on; it never waits for the service: what the service does not take in time is dropped, counted, and shown in the trace.
//!
//! A recording of dn-top itself can have the kernel's scheduling beside these events: dn-top then starts it in the service, and reads it into its file.

mod commits;
mod joint;
mod producer;
mod pump;
mod record;
mod settings;
mod state;
mod stream;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub(super) use joint::{Joint, Target};
pub use producer::{Serve, serve};
pub(super) use pump::ServicePump;
pub use settings::Settings;
pub use state::service_state;
pub(super) use stream::{Inlet, ThreadNames};

use crate::net::perfetto::{Address, PerfettoError, Port};

/// Where the service should be.
fn address_of(port: Port) -> Result<Address, PerfettoError> {
    Address::of(port).map_err(|cause| PerfettoError { address: Address::Path(port.variable().into()), cause })
}
