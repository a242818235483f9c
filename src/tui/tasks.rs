//! Tasks, all of a few types: each type of task adds about five kilobytes to the program, and one of blocking work about two.

use std::pin::Pin;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// A task, independent of what it does.
type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) fn boxed<T>(task: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Box::pin(task)
}

/// Starts a task.
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(boxed(task))
}

/// Starts work that blocks its thread, on the pool of threads for that.
pub(super) fn start_blocking(work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let work: Box<dyn FnOnce() + Send> = Box::new(work);
    spawn_blocking(work)
}

/// Runs work that blocks its thread, and returns its panic as an error.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (sender, result) = oneshot::channel();
    start_blocking(move || drop(sender.send(work()))).await.map_err(|panicked| panicked.to_string())?;
    // Work that did not panic has sent its result.
    result.await.map_err(|lost| lost.to_string())
}
