//! Work that blocks its thread, signals that end it, and the end of the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::exit::{Exit, Failure};
use super::print;
use crate::net::client::wait_until_answered;
use crate::net::interrupts::Interrupts;

/// How long work may take to end before the user is told how to exit without it: a read of a pipe or of a file on a network may block.
const REMINDER_DELAY: Duration = Duration::from_secs(1);

/// How long the program waits before it exits.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs work on a thread of its own and waits for it. The first signal makes the function passed to `work` return false: the work should then clean
/// up and end. The second ends the wait.
pub(super) async fn interruptible<T: Send + 'static>(
    interrupts: &mut Interrupts,
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, Failure> {
    run_until(async || interrupts.next().await, work).await
}

async fn run_until<T: Send + 'static>(
    mut signal: impl AsyncFnMut(),
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, Failure> {
    let is_wanted = Arc::new(AtomicBool::new(true));
    let (sender, mut done) = oneshot::channel();
    let wanted = Arc::clone(&is_wanted);
    // Not a thread of the async runtime, which waits for its threads when the program exits.
    let spawned = thread::Builder::new().name("work".to_owned()).spawn(move || {
        // The receiver is gone after a second signal.
        let _ = sender.send(work(&|| wanted.load(Ordering::Relaxed)));
    });
    spawned.context("cannot start a thread")?;
    let result = tokio::select! {
        result = &mut done => result,
        () = signal() => {
            is_wanted.store(false, Ordering::Relaxed);
            tokio::select! {
                result = done_or_reminded(&mut done) => result,
                () = signal() => return Err(interrupted("interrupted again: an unfinished file may be left behind")),
            }
        }
    };
    // The panic is reported by the panic hook.
    result.map_err(|_| anyhow::anyhow!("the operation failed inside dn-top; please report it").into())
}

/// Waits for the result, with a message if that takes long.
async fn done_or_reminded<T>(done: &mut oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> {
    if let Ok(result) = timeout(REMINDER_DELAY, &mut *done).await {
        return result;
    }
    print::message("canceling; press Ctrl-C again to exit without waiting");
    done.await
}

/// Waits until the program can exit without harm to a runtime, but not after a signal, nor for a process that stays stopped.
pub(super) async fn before_exit() {
    let answered = wait_until_answered();
    tokio::pin!(answered);
    // Signals of the first second count as well.
    let interrupts = Interrupts::new();
    if timeout(REMINDER_DELAY, &mut answered).await.is_ok() {
        return;
    }
    print::message(
        "waiting until a process has answered: .NET Core 3.1 can crash if dn-top exits while a session starts; press Ctrl-C to exit now",
    );
    let signal = async {
        match interrupts {
            Ok(mut interrupts) => interrupts.next().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = answered => {}
        () = signal => {}
        () = sleep(EXIT_TIMEOUT) => {}
    }
}

/// Installs the signal handlers.
pub(super) fn listen() -> anyhow::Result<Interrupts> {
    Interrupts::new().context("cannot install signal handlers")
}

/// Runs what needs no cleanup until a signal arrives; `what` is the message then. The default action of signals is gone once a command of this
/// program has installed handlers.
pub(super) async fn until_signal<T>(what: &'static str, action: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut interrupts = listen()?;
    tokio::select! {
        biased;
        // Its own message about the signal is more specific.
        result = action => result,
        () = interrupts.next() => Err(interrupted(what)),
    }
}

/// Waits for a signal and exits. For a command that has ended but for its output.
pub(super) async fn exit_on_signal() {
    if let Ok(mut interrupts) = Interrupts::new() {
        interrupts.next().await;
        before_exit().await;
        std::process::exit(Exit::Interrupted.code().into());
    }
}

/// Returns the error of a command that a signal ended.
pub(super) fn interrupted(what: &'static str) -> Failure {
    Failure::new(Exit::Interrupted, anyhow::anyhow!(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    async fn next(signals: &mut UnboundedReceiver<()>) {
        signals.recv().await.unwrap();
    }

    #[tokio::test]
    async fn first_signal_ends_the_work_and_second_the_wait() {
        let (signal, mut signals) = unbounded_channel();
        let wait_until_canceled = |wanted: &dyn Fn() -> bool| {
            while wanted() {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let first = signal.clone();
        let cleaned_up = run_until(
            async || next(&mut signals).await,
            move |wanted| {
                first.send(()).unwrap();
                wait_until_canceled(wanted);
                "cleaned up"
            },
        );
        assert_eq!(cleaned_up.await.unwrap(), "cleaned up");

        let (end, ended) = std::sync::mpsc::channel::<()>();
        let second = signal.clone();
        let stuck = run_until(
            async || next(&mut signals).await,
            move |wanted| {
                second.send(()).unwrap();
                wait_until_canceled(wanted);
                second.send(()).unwrap();
                let _ = ended.recv();
            },
        );
        assert_eq!(stuck.await.unwrap_err().exit, Exit::Interrupted);
        drop(end);
        assert_eq!(run_until(async || next(&mut signals).await, |_| 7).await.unwrap(), 7);
    }
}
