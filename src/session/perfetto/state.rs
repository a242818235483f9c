//! State of a tracing service.

use tokio::time::timeout;

use crate::net::perfetto::{ANSWER_LIMIT, Address, Cause, Connection, PerfettoError, Port};
use crate::perfetto::call::Method;
use crate::perfetto::consumer::{ConsumerMethod, ServiceState};

/// Maximum number of replies for one state.
const PARTS: usize = 1000;

/// Queries the service at this address, or at the default address.
///
/// # Errors
/// [`PerfettoError`]
pub async fn service_state(address: Option<Address>) -> Result<(Address, ServiceState), PerfettoError> {
    let address = match address {
        Some(address) => address,
        None => super::address_of(Port::Consumer)?,
    };
    let method = ConsumerMethod::QueryServiceState;
    let mut connection = Connection::open(address.clone()).await?;
    connection.call(method, Vec::new(), ())?;
    let mut state = ServiceState::default();
    let asked = timeout(ANSWER_LIMIT, async {
        for _ in 0..PARTS {
            let came = connection.next().await?;
            if !came.reply.success {
                return Err(connection.error(Cause::Refused(method.name())));
            }
            state.add(&came.reply.body).map_err(|error| connection.error(error))?;
            if !came.reply.has_more {
                return Ok(());
            }
        }
        Err(connection.error(Cause::Refused(method.name())))
    });
    match asked.await {
        Ok(asked) => asked.map(|()| (address, state)),
        Err(_) => Err(PerfettoError { address, cause: Cause::Silent { what: method.name(), limit: ANSWER_LIMIT } }),
    }
}
