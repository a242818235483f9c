//! A handle that a client hands over: over a pipe there is none.

use crate::net::stream::Stream;

/// What a client hands over.
pub(super) enum Handle {}

pub(super) async fn receive(_: &Stream) -> Option<Handle> {
    None
}

/// Whether it is a file of the name that user_events are registered with.
pub(super) fn is_user_events_data(handle: &Handle) -> bool {
    match *handle {}
}
