//! The start of a runtime that is suspended at startup.

use std::time::Duration;

use tokio::time::timeout;

use super::StartError;
use super::condition::{ConditionError, EventWait};
use crate::clr::Trigger;
use crate::net::ExchangeError;
use crate::net::client::Client;

/// Time limit for the start of the program.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Resumes a runtime that is suspended at startup by `resume`, and waits until it starts its program: it loads its assembly after its own library.
/// Before that, it does not walk its heap (seen on 8).
///
/// # Errors
/// If the session that receives the loads is not opened, or the runtime is not resumed.
pub async fn start_program(client: Client, resume: impl Future<Output = Result<(), ExchangeError>>) -> Result<(), StartError> {
    let start = async {
        let loads = EventWait::start(client, &Trigger::assembly_loads(2)).await?;
        resume.await.map_err(StartError::from)?;
        loads.occurrence(Duration::MAX, |_| {}).await
    };
    match timeout(TIMEOUT, start).await {
        Ok(Err(ConditionError::Start(error))) => Err(error),
        // A program that has ended, or takes longer, is noticed by what follows.
        Ok(Ok(_) | Err(_)) | Err(_) => Ok(()),
    }
}
