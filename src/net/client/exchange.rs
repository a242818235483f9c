//! One command and its reply, over a connection of its own.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::{Cause, Client, ExchangeError};
use crate::ipc::{Attempt, Command, CommandCode, Failure, Hresult, Reply, ReplyError, Support};
use crate::net::answer::{reply_after, unexpected_reply};
use crate::net::hook;
use crate::net::peer::{self, VerifiedStream};
use crate::net::user_events::UserEventsData;

impl Client {
    /// Tries the attempts in order until one is not answered with "unknown command". Also returns the connection.
    pub(super) async fn first_supported<'a>(
        &self,
        attempts: &'a [Attempt],
        limit: Duration,
    ) -> Result<(&'a Attempt, Reply, VerifiedStream), ExchangeError> {
        let first = attempts.first().map_or(CommandCode::ProcessInfo, |attempt| attempt.command.code());
        let turn = Arc::new(self.turn(first, limit).await?);
        let mut last = self.error(first, unexpected_reply());
        for attempt in attempts {
            let command = &attempt.command;
            let exchange = async {
                match command.code().starts_session() {
                    true => self.exchange_start(command, &turn).await,
                    false => self.exchange(command, None).await,
                }
            };
            match self.with_timeout(command.code(), limit, exchange).await {
                Ok((reply, stream)) => return Ok((attempt, reply, stream)),
                Err(error) if error.hresult() == Some(Hresult::UNKNOWN_COMMAND) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Performs one exchange: one connection, one message, a file descriptor after it if needed, one reply. Data after the reply is left unread in
    /// the connection.
    pub(super) async fn exchange(&self, command: &Command, data: Option<&UserEventsData>) -> Result<(Reply, VerifiedStream), Cause> {
        self.check(command)?;
        let code = command.code();
        let message = command.encode()?;
        let mut stream = self.connection(code).await?;
        let mut sent = stream.write_all(&message).await;
        if let (Ok(()), Some(data)) = (&sent, data) {
            sent = data.hand_over(stream.as_ref()).await;
        }
        let answer = reply_after(sent, &mut stream, code).await?;
        self.support.lock().unwrap_or_else(PoisonError::into_inner).record_reply(code, &answer);
        Ok((answer?, stream))
    }

    /// Opens a connection for one command, verified to lead to this client's process. All connections are made here.
    pub(super) async fn connection(&self, code: CommandCode) -> Result<VerifiedStream, Cause> {
        self.access.check(code)?;
        match &self.connection {
            Some(connection) => connection.next().await.ok_or(Cause::Gone),
            None => peer::connect(&self.endpoint, self.proc.as_deref()).await,
        }
    }

    /// Refuses a command that must not be sent, and one that the runtime has permanently declined: the reply would be the same.
    pub(super) fn check(&self, command: &Command) -> Result<(), Cause> {
        if self.legacy {
            return Err(Cause::UnsupportedByLegacy("such command"));
        }
        self.access.check(command.code())?;
        self.check_safe_to_send(command)?;
        match self.support().get(command.code()).and_then(Support::error) {
            Some(hresult) => Err(ReplyError::from(Failure::from(hresult)).into()),
            None => Ok(()),
        }
    }

    /// Refuses a command that would crash the target in its present state or block its diagnostic server, and one for which that cannot be
    /// determined.
    fn check_safe_to_send(&self, command: &Command) -> Result<(), Cause> {
        let (code, pid, proc) = (command.code(), self.endpoint.key.pid, self.own_proc());
        if !code.may_be_sent_while_suspended() {
            let threads = proc.and_then(|proc| proc.threads(pid).ok()).unwrap_or_default();
            if threads.is_suspended() {
                return Err(Cause::Suspended);
            }
            // A runtime without ProcessInfo is older than 5.0, and rejects the perf map commands as unknown.
            if code.is_fatal_while_suspended()
                && !threads.started
                && !matches!(self.support().get(CommandCode::ProcessInfo), Some(Support::UnknownCommand))
            {
                return Err(Cause::StateUnknown);
            }
        }
        let unseen = || Err("cannot be inspected: the process is not visible from here".to_owned());
        match command {
            Command::ApplyStartupHook { path } => proc
                .map_or_else(unseen, |proc| hook::check(proc, pid, path.as_str()))
                .map_err(|why| Cause::BadHook { path: path.as_str().into(), why: why.into() }),
            Command::AttachProfiler { path, .. } | Command::StartupProfiler { path, .. } => {
                let must_exist = code == CommandCode::StartupProfiler;
                proc.map_or(Ok(()), |proc| hook::check_library(proc, pid, path.as_str(), must_exist))
                    .map_err(|why| Cause::BadProfiler { path: path.as_str().into(), why })
            }
            Command::SetEnvironmentVariable { value: None, .. }
                if proc.is_some_and(|proc| proc.is_native_aot(pid).unwrap_or(proc.is_real())) =>
            {
                Err(Cause::UnsetInNativeAot)
            }
            _ => Ok(()),
        }
    }
}
