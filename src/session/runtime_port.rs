//! A diagnostic port on which a runtime is awaited, which may be suspended at startup.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::launch::{Launched, Recorded, resume_others};
use crate::net::discovery::Sources;
use crate::net::port::{Port, PortError};
use crate::net::stream::port_name;

/// A diagnostic port that we serve. The runtimes that connect after the first one are resumed. Dropping it removes the socket and closes all
/// connections.
#[derive(Debug)]
pub struct RuntimePort {
    port: Arc<Port>,
    first: oneshot::Receiver<Launched>,
    serving: JoinHandle<()>,
}

impl RuntimePort {
    /// Serves a port at this path. Processes are looked up in `sources`.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn serve(path: &Path, sources: &Sources) -> Result<Self, PortError> {
        let port = Arc::new(Port::serve(path, sources)?);
        let (connected, first) = oneshot::channel();
        let serving = tokio::spawn(resume_others(Arc::clone(&port), Recorded::First, pending(), connected, Default::default()));
        Ok(Self { port, first, serving })
    }

    /// The absolute address at which the port is served, in the form of `DOTNET_DiagnosticPorts`.
    pub fn name(&self) -> &Path {
        port_name(self.port.path())
    }

    /// The port, for a list of processes.
    pub fn port(&self) -> Arc<Port> {
        Arc::clone(&self.port)
    }

    /// Waits for the first runtime; forever if it was returned before. It remains connected as long as this port is served.
    pub async fn first(&mut self) -> Launched {
        match (&mut self.first).await {
            Ok(launched) => launched,
            Err(_) => pending().await,
        }
    }

    /// Removes the socket and waits until this is done.
    pub async fn close(mut self) {
        self.serving.abort();
        // It was aborted.
        let _ = (&mut self.serving).await;
    }
}

impl Drop for RuntimePort {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
