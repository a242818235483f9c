//! Event stream of one session, on the connection that requested it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::program::Program;
use super::requested::Requested;
use super::spec::{Fault, Script, Spec};
use crate::net::stream::Stream as Connection;

/// Interval at which a runtime writes buffered events.
const FLUSH: Duration = Duration::from_millis(100);

/// A session that streams until it is stopped or its reader disconnects.
pub(super) struct Stream {
    source: Source,
    suspended: watch::Receiver<bool>,
    stop: oneshot::Receiver<()>,
    /// `None` once sent.
    drained: Option<oneshot::Sender<()>>,
    /// Number of bytes after which the runtime crashes.
    cut: Option<u64>,
    /// Whether a stop is confirmed but has no effect.
    ignores_stop: bool,
    /// 3.1 answers the stop before the stream ends, newer runtimes answer after it.
    answer_first: bool,
}

pub(super) enum Source {
    Program(Box<Program>),
    Canned(Arc<[u8]>),
}

impl Source {
    pub(super) fn new(spec: &Spec, requested: Requested) -> Self {
        match &spec.script {
            Script::Program(rates) => Self::Program(Box::new(Program::new(spec, *rates, requested))),
            Script::Canned(bytes) => Self::Canned(bytes.clone()),
        }
    }
}

impl Stream {
    pub(super) fn new(
        spec: &Spec,
        source: Source,
        suspended: watch::Receiver<bool>,
        stop: oneshot::Receiver<()>,
        drained: oneshot::Sender<()>,
    ) -> Self {
        let cut = if let Some(Fault::CutStream(bytes)) = spec.fault { Some(bytes) } else { None };
        let ignores_stop = spec.fault == Some(Fault::IgnoreStop);
        Self { source, suspended, stop, drained: Some(drained), cut, ignores_stop, answer_first: spec.major() < 5 }
    }

    /// Streams to the end. If the reader disconnects, it ends at the next write, as in a real runtime.
    pub(super) async fn run(mut self, connection: Connection) {
        let mut writer = Writer { connection, left: self.cut };
        let outcome = self.stream_events(&mut writer).await;
        if outcome.is_ok() && self.answer_first {
            answer(&mut self.drained);
            sleep(Duration::from_millis(1)).await;
        }
        drop(writer);
        answer(&mut self.drained);
    }

    async fn stream_events(&mut self, writer: &mut Writer) -> io::Result<()> {
        // Not even the header is sent before the resume. The sender lives as long as the server, which also ends this task.
        tokio::select! {
            _ = self.suspended.wait_for(|suspended| !suspended) => {}
            _ = &mut self.stop => return Ok(()),
        }
        match &mut self.source {
            Source::Canned(bytes) => {
                writer.write(&bytes.clone()).await?;
                // An error means that the server is gone.
                let _ = (&mut self.stop).await;
                Ok(())
            }
            Source::Program(program) => {
                let begun = Instant::now();
                let mut flush = interval(FLUSH);
                flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    tokio::select! {
                        _ = flush.tick() => writer.write(&program.run_until(begun.elapsed())).await?,
                        _ = &mut self.stop, if self.drained.is_some() => {
                            if !self.ignores_stop {
                                return writer.write(&program.finish(begun.elapsed())).await;
                            }
                            answer(&mut self.drained);
                        }
                    }
                }
            }
        }
    }
}

/// Makes the server answer the stop, once.
fn answer(drained: &mut Option<oneshot::Sender<()>>) {
    if let Some(drained) = drained.take() {
        // The server may be gone.
        let _ = drained.send(());
    }
}

/// The connection, and the number of bytes left before the runtime crashes.
struct Writer {
    connection: Connection,
    left: Option<u64>,
}

impl Writer {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(left) = &mut self.left else { return self.connection.write_all(bytes).await };
        let some = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
        *left -= some as u64;
        self.connection.write_all(&bytes[..some]).await?;
        if *left == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}
