//! Reads the bytes of the terminal.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use tokio::sync::mpsc;

use super::input::{Input, message};
use super::input_parser::InputParser;

/// Reads until the terminal is closed or the receiver is dropped.
pub(super) fn read_while_open(sender: &mpsc::Sender<Input>) -> Option<()> {
    let (mut parser, mut chunk) = (InputParser::default(), [0; 4096]);
    loop {
        let (timeout, mut events) = (parser.timeout(), Vec::new());
        let count = match read(&mut chunk, timeout.and_then(|timeout| timeout.try_into().ok())) {
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) | Ok(Some(0)) => return None,
            Ok(count) => count,
        };
        match count {
            Some(count) => parser.feed(&chunk[..count], |event| events.push(event)),
            None => parser.time_out(|event| events.push(event)),
        }
        for msg in events.into_iter().filter_map(message) {
            sender.blocking_send(Input::Msg(msg)).ok()?;
        }
        if let Some(background) = parser.take_background() {
            sender.blocking_send(Input::Background(background)).ok()?;
        }
    }
}

/// Waits for bytes and reads the available ones; `None` after the timeout.
fn read(chunk: &mut [u8], timeout: Option<Timespec>) -> rustix::io::Result<Option<usize>> {
    let ready = poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], timeout.as_ref())?;
    if ready == 0 { Ok(None) } else { rustix::io::read(stdin(), chunk).map(Some) }
}
