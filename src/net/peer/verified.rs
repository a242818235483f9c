//! A connection whose other end has been verified.

use std::ops::{Deref, DerefMut};

use crate::net::stream::Stream;

/// A connection whose other end is the intended process. Only the checks in this module create one, and commands are sent over nothing else.
#[derive(Debug)]
pub(in crate::net) struct VerifiedStream(pub(super) Stream);

impl VerifiedStream {
    /// Returns the plain connection, for the data that the runtime sends from now on.
    pub(in crate::net) fn into_stream(self) -> Stream {
        self.0
    }
}

impl Deref for VerifiedStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.0
    }
}

impl DerefMut for VerifiedStream {
    fn deref_mut(&mut self) -> &mut Stream {
        &mut self.0
    }
}
