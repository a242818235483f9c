//! Waiting for a request's turn, and for its reply within a time limit.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Cause, Client, ExchangeError, FINAL_REPLY_TIMEOUT, REPLY_TIMEOUT};
use crate::ipc::CommandCode;
use crate::net::command_lock::{Busy, CommandGuard};
use crate::net::log;

impl Client {
    /// Waits until no other command is in progress.
    pub(super) async fn turn(&self, code: CommandCode, limit: Duration) -> Result<CommandGuard, ExchangeError> {
        let request = log::Request::begin(self.endpoint.key.pid, code);
        let busy = |busy: Busy| Cause::Busy { with: busy.command, elapsed: busy.since.elapsed() };
        let turn = self.command_lock.acquire(code, limit).await.map_err(|under_way| self.error(code, busy(under_way)));
        request.turn(&turn);
        turn
    }

    /// Returns the cause of a timeout.
    fn no_answer(&self, limit: Duration) -> Cause {
        let files = self.resources().open_files.map(|files| files.count);
        match files.filter(|files| files.used >= files.limit) {
            Some(files) => Cause::TooManyFiles(limit, files.used),
            None => Cause::Timeout(limit),
        }
    }

    /// Waits for the result of a request, at most `limit`.
    pub(super) async fn with_timeout<T>(
        &self,
        code: CommandCode,
        limit: Duration,
        work: impl Future<Output = Result<T, Cause>>,
    ) -> Result<T, ExchangeError> {
        let request = log::Request::begin(self.endpoint.key.pid, code);
        let exit = async {
            // With a short limit the timeout is soon enough.
            if limit <= REPLY_TIMEOUT {
                std::future::pending::<()>().await;
            }
            self.process_exit().await;
            sleep(FINAL_REPLY_TIMEOUT).await;
        };
        let result = tokio::select! {
            biased;
            result = timeout(limit, work) => result.unwrap_or_else(|_| Err(self.no_answer(limit))),
            () = exit => Err(Cause::Ended),
        };
        let result = result.map_err(|cause| self.error(code, cause));
        request.end(&result);
        result
    }
}
