//! Standard output of commands that print while a session is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use super::exit::{Exit, Failure};
use super::print;
use crate::net::interrupts::Interrupts;

/// Number of waiting bytes from which there is no room for more.
const MAX_WAITING: usize = 4 << 20;
/// How long an interrupted command waits for its output to be read.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes to standard output on a thread of its own. A reader that pauses, such as `less`, then neither delays a signal nor the reading of the session:
/// a process whose events are not read cannot exit.
#[derive(Debug)]
pub(super) struct StdoutWriter {
    texts: UnboundedSender<Vec<u8>>,
    waiting: Arc<Waiting>,
    ended: oneshot::Receiver<anyhow::Result<()>>,
}

/// The bytes that are not written yet.
#[derive(Debug, Default)]
struct Waiting {
    bytes: AtomicUsize,
    written: Notify,
}

impl StdoutWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there are too many threads.
    pub(super) fn start() -> anyhow::Result<Self> {
        Self::start_with(print::bytes)
    }

    /// Starts the thread, which passes the texts to `write` until that returns false.
    fn start_with(write: impl Fn(&[u8]) -> anyhow::Result<bool> + Send + 'static) -> anyhow::Result<Self> {
        let ((texts, receiver), (end, ended)) = (unbounded_channel(), oneshot::channel());
        let waiting = Arc::<Waiting>::default();
        let still_waiting = Arc::clone(&waiting);
        // Not a thread of the async runtime, which waits for its threads when the program exits.
        let spawned = thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            // The receiver is gone if the end is not waited for.
            let _ = end.send(write_all(receiver, &still_waiting, write));
        });
        spawned.context("cannot start a thread")?;
        Ok(Self { texts, waiting, ended })
    }

    /// Returns whether more should be written. What is written nevertheless is kept until it is read.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.bytes.load(Ordering::Relaxed) < MAX_WAITING
    }

    /// Returns whether everything has been written.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.bytes.load(Ordering::Relaxed) == 0
    }

    /// Waits until [`has_room`](Self::has_room). Only one task may wait.
    pub(super) async fn room(&self) {
        while !self.has_room() {
            self.waiting.written.notified().await;
        }
    }

    /// Writes text as soon as what was written before has been read. Does nothing if the output is closed.
    pub(super) fn write(&self, text: Vec<u8>) {
        self.waiting.bytes.fetch_add(text.len(), Ordering::Relaxed);
        let _ = self.texts.send(text);
    }

    /// Returns whether the reader has closed the output, or writing has failed.
    pub(super) fn is_closed(&self) -> bool {
        self.texts.is_closed()
    }

    /// Waits until [`is_closed`](Self::is_closed).
    pub(super) async fn closed(&self) {
        self.texts.closed().await;
    }

    /// Waits as [`finish`](Self::finish) does, at the end of a command, and returns how it has ended.
    ///
    /// # Errors
    /// That of the command, or the output could not be written.
    pub(super) async fn exit(self, ended: Result<Exit, Failure>, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
        let is_written = self.finish(interrupts, matches!(ended, Ok(Exit::Interrupted))).await;
        let exit = ended?;
        Ok(if is_written? { exit } else { Exit::Interrupted })
    }

    /// Waits until all is written, or a signal arrives; after one (`is_interrupted`), for a second at most. Returns whether all is written, as far as
    /// the reader wanted it.
    ///
    /// # Errors
    /// The output could not be written.
    pub(super) async fn finish(self, interrupts: &mut Interrupts, is_interrupted: bool) -> anyhow::Result<bool> {
        let Self { texts, ended, .. } = self;
        drop(texts);
        let limit = if is_interrupted { INTERRUPTED_TIMEOUT } else { Duration::MAX };
        tokio::select! {
            biased;
            // The panic hook has reported a panic.
            ended = ended => ended.unwrap_or(Ok(())).map(|()| true),
            () = interrupts.next() => Ok(false),
            () = sleep(limit) => Ok(false),
        }
    }
}

/// Writes all texts, unless the output is closed.
fn write_all(
    mut texts: UnboundedReceiver<Vec<u8>>,
    waiting: &Waiting,
    write: impl Fn(&[u8]) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    while let Some(text) = texts.blocking_recv() {
        if !write(&text)? {
            break;
        }
        waiting.bytes.fetch_sub(text.len(), Ordering::Relaxed);
        waiting.written.notify_one();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    use tokio::time::timeout;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// Lets one text be read: with the result of its write.
    type Permit = Sender<anyhow::Result<bool>>;

    /// Returns a writer whose output is read as permitted, and what was read.
    fn paused() -> (StdoutWriter, Permit, Arc<Mutex<Vec<u8>>>) {
        let (allow, allowed) = channel();
        let (allowed, output) = (Mutex::new(allowed), Arc::<Mutex<Vec<u8>>>::default());
        let read = Arc::clone(&output);
        let writer = StdoutWriter::start_with(move |text| {
            let result = allowed.lock().unwrap().recv().unwrap_or(Ok(true));
            read.lock().unwrap().extend(text);
            result
        });
        (writer.unwrap(), allow, output)
    }

    #[tokio::test]
    async fn output_that_is_not_read_is_kept_and_limited() {
        let (writer, allow, output) = paused();
        let text = vec![b'x'; MAX_WAITING / 2];
        writer.write(text.clone());
        assert!(writer.has_room());
        writer.write(text.clone());
        assert!(!writer.has_room() && timeout(Duration::from_millis(50), writer.room()).await.is_err());
        allow.send(Ok(true)).unwrap();
        timeout(TIMEOUT, writer.room()).await.unwrap();
        let mut interrupts = Interrupts::new().unwrap();
        drop(allow);
        assert!(timeout(TIMEOUT, writer.finish(&mut interrupts, false)).await.unwrap().unwrap());
        assert_eq!(output.lock().unwrap().len(), 2 * text.len());
    }

    #[tokio::test]
    async fn interrupted_command_does_not_wait_for_the_reader() {
        let (writer, _allow, _) = paused();
        writer.write(vec![b'x']);
        let mut interrupts = Interrupts::new().unwrap();
        assert!(!timeout(TIMEOUT, writer.finish(&mut interrupts, true)).await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn closed_or_failed_output_is_noticed() {
        for (result, expected) in [(Ok(false), Ok(true)), (Err(anyhow::anyhow!("disk full")), Err("disk full".to_owned()))] {
            let (writer, allow, _) = paused();
            writer.write(vec![b'x']);
            assert!(!writer.is_closed());
            allow.send(result).unwrap();
            timeout(TIMEOUT, writer.closed()).await.unwrap();
            writer.write(vec![b'y']);
            assert!(writer.is_closed());
            let mut interrupts = Interrupts::new().unwrap();
            let finished = writer.finish(&mut interrupts, false).await.map_err(|error| error.to_string());
            assert_eq!(finished, expected);
        }
    }
}
