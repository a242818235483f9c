//! Receives a file descriptor from a client (`SCM_RIGHTS`).

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;

use crate::net::stream::Stream;

/// A handle sent by a client.
pub(super) use std::os::fd::OwnedFd as Handle;

/// Waits for a byte, without a time limit, and returns the handle sent with it.
pub(super) async fn receive(connection: &Stream) -> Option<Handle> {
    loop {
        connection.readable().await.ok()?;
        match connection.try_io(Interest::READABLE, || take(connection)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            taken => return taken.ok().flatten(),
        }
    }
}

fn take(connection: &Stream) -> io::Result<Option<Handle>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(connection, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let handles = |message| if let RecvAncillaryMessage::ScmRights(handles) = message { Some(handles) } else { None };
    Ok(control.drain().find_map(handles).and_then(|mut handles| handles.next()))
}

/// Whether the file is named like the one used to register user_events.
pub(super) fn is_user_events_data(handle: &Handle) -> bool {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    path.is_ok_and(|path| path.file_name().is_some_and(|name| name == "user_events_data"))
}
