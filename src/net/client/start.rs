//! Starting a session without harm to .NET Core 3.x.
//!
//! A runtime of .NET Core 3.x writes the beginning of a session's stream without regard to earlier errors: it crashes if the connection was closed
//! before. Seen on 3.1.23, with about every second session closed between request and reply (SIGSEGV in `FastSerializer::WriteBuffer`, called by the
//! constructor of `EventPipeFile`), and never on 8.0.33, 9.0.7 and 10.0.14.
//!
//! So the request is sent only to a runtime that has just answered another one: a process that is stopped, or is writing its dump, does not. The
//! exchange then goes on until its end even if the caller gives up, and the program [waits](wait_until_answered) for it before it exits.

use std::sync::{Arc, LazyLock, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::{Cause, Client};
use crate::ipc::{Command, CommandCode, Reply, Support};
use crate::net::answer::reply_after;
use crate::net::command_lock::CommandGuard;
use crate::net::peer::VerifiedStream;

/// Size of the beginning of a stream, up to the first block: `Nettrace`, the serialization header and the trace object (nettrace format, version 4).
const STREAM_HEADER_BYTES: usize = 102;

/// Number of runtimes that would crash if this program exited now.
static UNANSWERED: LazyLock<watch::Sender<usize>> = LazyLock::new(watch::Sender::default);

/// Waits until the program can exit without harm to a runtime.
pub async fn wait_until_answered() {
    // The sender is never dropped.
    let _ = UNANSWERED.subscribe().wait_for(|count| *count == 0).await;
}

/// A request in [`UNANSWERED`].
struct Unanswered;

impl Unanswered {
    fn new() -> Self {
        UNANSWERED.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        UNANSWERED.send_modify(|count| *count -= 1);
    }
}

impl Client {
    /// Performs the exchange of a command that starts a session.
    pub(super) async fn exchange_start(&self, command: &Command, turn: &Arc<CommandGuard>) -> Result<(Reply, VerifiedStream), Cause> {
        self.check(command)?;
        if !self.has_process_info() {
            self.probe().await?;
        }
        if self.has_process_info() {
            return self.exchange(command, None).await;
        }
        let (client, command) = (self.clone(), command.clone());
        self.complete(Arc::clone(turn), async move { client.exchange(&command, None).await }).await
    }

    /// Completes the start of a session, even if the caller is dropped. No other command is sent until then.
    pub(super) async fn complete<T: Send + 'static>(
        &self,
        turn: Arc<CommandGuard>,
        exchange: impl Future<Output = Result<(T, VerifiedStream), Cause>> + Send + 'static,
    ) -> Result<(T, VerifiedStream), Cause> {
        let (client, unanswered) = (self.clone(), Unanswered::new());
        let begun = async {
            let (reply, mut stream) = exchange.await?;
            // An error shows with the next read.
            let _ = stream.await_bytes(STREAM_HEADER_BYTES).await;
            Ok((reply, stream))
        };
        let task = tokio::spawn(async move {
            let _in_progress = (unanswered, turn);
            tokio::select! {
                begun = begun => begun,
                () = client.process_exit() => Err(Cause::Ended),
            }
        });
        task.await.unwrap_or(Err(Cause::Ended))
    }

    /// Returns whether the runtime is known to be of .NET 5 or later.
    fn has_process_info(&self) -> bool {
        let support = self.support();
        [CommandCode::ProcessInfo, CommandCode::ProcessInfo2, CommandCode::ProcessInfo3]
            .iter()
            .any(|code| support.get(*code) == Some(Support::Yes))
    }

    /// Asks for the process info, which a runtime answers at once, also if it lacks the command.
    async fn probe(&self) -> Result<(), Cause> {
        let code = CommandCode::ProcessInfo;
        let mut stream = self.connection(code).await?;
        let sent = stream.write_all(&Command::ProcessInfo.encode()?).await;
        let answer = reply_after(sent, &mut stream, code).await?;
        self.support.lock().unwrap_or_else(PoisonError::into_inner).record_reply(code, &answer);
        Ok(())
    }
}
