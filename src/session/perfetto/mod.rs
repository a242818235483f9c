//! A data source of Perfetto's tracing service: traces that enable `dotnet` receive the events of .NET processes as they occur.
//!
//! Each recording has its own session in each process, with the profiles named in its configuration. One thread per session reads and
//! converts the stream and passes packets on; it never waits for the service: packets that the service does not accept in time are dropped,
//! counted, and shown in the trace.
//!
//! A recording of dn-top can include the kernel's scheduling: dn-top then starts it in the service, and reads it into its file.

mod commits;
mod producer;
mod pump;
mod record;
mod scheduling;
mod settings;
mod state;
mod stream;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub use producer::{ServeOptions, serve};
pub(super) use pump::ServicePump;
pub(super) use scheduling::{SchedulingRecording, Target};
pub use settings::Settings;
pub use state::service_state;
pub(super) use stream::{Inlet, ThreadNames};

use crate::net::perfetto::{Address, PerfettoError, Port};

/// Returns this address, or the default one of the service.
fn address_or_default(address: Option<Address>, port: Port) -> Result<Address, PerfettoError> {
    let default = || Address::of(port).map_err(|cause| PerfettoError { address: Address::Path(port.variable().into()), cause });
    address.map_or_else(default, Ok)
}
