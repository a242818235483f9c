//! Work that blocks its thread: reading and writing files, and `/proc`, which can be slow.
//!
//! For tokio, all of it is of one type, because each type of task adds about two kilobytes to the program.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use crate::net::client::Client;

/// Running work. Its output is the result, or the panic in it. Dropping it does not end the work.
#[derive(Debug)]
pub(super) struct Blocking<T> {
    task: JoinHandle<()>,
    result: Arc<Mutex<Option<T>>>,
}

/// Starts work on tokio's pool of threads that may block.
pub(super) fn start_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let work: Box<dyn FnOnce() + Send> = Box::new(move || {
        let done = work();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    });
    Blocking { task: spawn_blocking(work), result }
}

/// Reads facts of a process, from `/proc`, which can be slow; `None` after a panic in it, which the panic hook reports.
pub(super) async fn read_process<T: Send + 'static>(client: &Client, read: impl FnOnce(&Client) -> T + Send + 'static) -> Option<T> {
    let client = client.clone();
    start_blocking(move || read(&client)).await.ok()
}

impl<T> Blocking<T> {
    pub(super) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns the result without waiting: `None` unless the work has ended without a panic.
    pub(super) fn into_result(self) -> Option<T> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Future for Blocking<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(Pin::new(&mut self.task).poll(context))?;
        // Work that has ended without a panic has a result. The task panics if polled again.
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.map_or(Poll::Pending, |result| Poll::Ready(Ok(result)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn result_or_panic_of_the_work_is_returned() {
        assert_eq!(start_blocking(|| "done".to_owned()).await.unwrap(), "done");
        let done = start_blocking(|| 7);
        while !done.is_finished() {
            tokio::task::yield_now().await;
        }
        assert_eq!(done.into_result(), Some(7));
        let panicked = start_blocking::<()>(|| panic!("in the work")).await.unwrap_err();
        assert_eq!(panicked.into_panic().downcast_ref(), Some(&"in the work"));
    }
}
