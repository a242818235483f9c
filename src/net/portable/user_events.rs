//! The kernel's user_events, which Linux alone has.

use std::io;

use thiserror::Error;

use super::stream::Stream;

/// Where the kernel would show them.
#[derive(Debug, Clone)]
pub struct Kernel;

impl Kernel {
    /// This machine's.
    pub fn machine() -> Self {
        Self
    }

    /// What they lack here.
    pub fn missing(&self) -> Vec<String> {
        vec!["this system has none: they are of the Linux kernel".to_owned()]
    }

    /// There is no file to open.
    ///
    /// # Errors
    /// Always.
    pub fn open(&self) -> Result<UserEventsData, UserEventsError> {
        Err(UserEventsError)
    }
}

/// Why there is no file to hand over.
#[derive(Debug, Error)]
#[error("this system has no user_events: they are of the Linux kernel")]
pub struct UserEventsError;

/// A handle to the kernel's `user_events_data`. There is none.
#[derive(Debug)]
pub enum UserEventsData {}

impl UserEventsData {
    pub(super) async fn hand_over(&self, _: &Stream) -> io::Result<()> {
        match *self {}
    }
}
