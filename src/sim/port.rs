//! A simulated runtime's side of a diagnostic port that another process serves: it connects, advertises itself, and waits for commands.
//!
//! Delays are those of real runtimes: 10 ms after the first attempt, a quarter more each time, 500 ms at most.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::spec::ConnectPort;
use crate::ipc::Advertise;
use crate::net::stream::{Stream, await_bytes};

const CONNECT_LIMIT: Duration = Duration::from_millis(100);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The idle connection, or the time of the next attempt.
pub(super) struct PortConnection {
    port: ConnectPort,
    advertise: Advertise,
    waiting: Option<Stream>,
    pause: Duration,
    next_try: Instant,
}

impl PortConnection {
    pub(super) fn new(port: ConnectPort, advertise: Advertise) -> Self {
        Self { port, advertise, waiting: None, pause: FIRST_PAUSE, next_try: Instant::now() }
    }

    /// Waits for a connection with a command. Cancel safe.
    pub(super) async fn next_connection(&mut self) -> Stream {
        loop {
            if let Some(stream) = &mut self.waiting {
                let requested = await_bytes(stream, 1).await.is_ok();
                if let Some(stream) = self.waiting.take()
                    && requested
                {
                    return stream;
                }
            }
            sleep_until(self.next_try).await;
            match timeout(CONNECT_LIMIT, self.connect()).await {
                Ok(Ok(stream)) => {
                    self.waiting = Some(stream);
                    self.pause = FIRST_PAUSE;
                }
                _ => {
                    self.next_try = Instant::now() + self.pause;
                    self.pause = self.pause.mul_f64(1.25).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn connect(&self) -> io::Result<Stream> {
        let mut stream = Stream::connect(&self.port.path).await?;
        stream.write_all(&self.advertise.encode()).await?;
        Ok(stream)
    }
}
