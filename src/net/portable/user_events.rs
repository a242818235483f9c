//! The kernel's user_events: only available on Linux.

#[path = "../user_events/missing.rs"]
mod missing;

use std::io;

use thiserror::Error;

pub use self::missing::Missing;
use super::stream::Stream;

/// The kernel's interface of user_events.
#[derive(Debug, Clone)]
pub struct Kernel;

impl Kernel {
    /// Interface of this machine.
    pub fn machine() -> Self {
        Self
    }

    /// Returns the reasons why user_events are not available.
    pub fn missing(&self) -> Vec<Missing> {
        vec![Missing::Support("they are available on Linux only".to_owned())]
    }

    /// Not supported on this system.
    ///
    /// # Errors
    /// Always.
    pub fn open(&self) -> Result<UserEventsData, UserEventsError> {
        Err(UserEventsError)
    }
}

/// The reason why there is no file to hand over.
#[derive(Debug, Error)]
#[error("user_events are available on Linux only")]
pub struct UserEventsError;

impl UserEventsError {
    /// Whether this is a lack of permissions.
    pub fn is_denied(&self) -> bool {
        false
    }
}

/// A handle to the kernel's `user_events_data`; cannot be created.
#[derive(Debug)]
pub enum UserEventsData {}

impl UserEventsData {
    pub(super) async fn hand_over(&self, _: &Stream) -> io::Result<()> {
        match *self {}
    }
}
