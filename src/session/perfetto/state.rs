//! State of a tracing service.

use tokio::time::timeout;

use crate::net::perfetto::{Address, Cause, Connection, PerfettoError, Port, REPLY_TIMEOUT};
use crate::perfetto::call::Method;
use crate::perfetto::consumer::{ConsumerMethod, ServiceState};

/// Maximum number of replies for one state.
const MAX_REPLIES: usize = 1000;

/// Queries the service at this address, or at the default address.
///
/// # Errors
/// [`PerfettoError`]
pub async fn service_state(address: Option<Address>) -> Result<(Address, ServiceState), PerfettoError> {
    let address = super::address_or_default(address, Port::Consumer)?;
    let method = ConsumerMethod::QueryServiceState;
    let mut connection = Connection::open(address.clone()).await?;
    connection.call(method, Vec::new(), ())?;
    let mut state = ServiceState::default();
    let queried = timeout(REPLY_TIMEOUT, async {
        for _ in 0..MAX_REPLIES {
            let incoming = connection.next().await?;
            if !incoming.reply.success {
                return Err(connection.error(Cause::refused(method.name(), incoming.reply.error.as_deref())));
            }
            state.add(&incoming.reply.body).map_err(|error| connection.error(error))?;
            if !incoming.reply.has_more {
                return Ok(());
            }
        }
        Err(connection.error(Cause::Refused(method.name())))
    });
    match queried.await {
        Ok(queried) => queried.map(|()| (address, state)),
        Err(_) => Err(PerfettoError { address, cause: Cause::Timeout { what: method.name(), limit: REPLY_TIMEOUT } }),
    }
}
