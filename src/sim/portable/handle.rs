//! A handle sent by a client: pipes cannot transfer one.

use crate::net::stream::Stream;

/// A handle sent by a client.
pub(super) enum Handle {}

pub(super) async fn receive(_: &Stream) -> Option<Handle> {
    None
}

/// Whether the file is named like the one used to register user_events.
pub(super) fn is_user_events_data(handle: &Handle) -> bool {
    match *handle {}
}
