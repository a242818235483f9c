//! Reads the bytes of the terminal.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use tokio::sync::mpsc;

use super::input::{Input, message};
use super::input_parser::InputParser;

/// Reads until the terminal is closed or the receiver is dropped.
pub(super) fn read_while_open(sender: &mpsc::Sender<Input>) -> Option<()> {
    forward(stdin(), sender)
}

fn forward(terminal: impl AsFd, sender: &mpsc::Sender<Input>) -> Option<()> {
    let (mut parser, mut chunk) = (InputParser::default(), [0; 4096]);
    loop {
        let (timeout, mut events) = (parser.timeout().and_then(|timeout| timeout.try_into().ok()), Vec::new());
        let is_ready = match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], timeout.as_ref()) {
            Err(Errno::INTR | Errno::AGAIN) => continue,
            ready => ready.ok()? > 0,
        };
        // After the dashboard has closed, what is typed is for the shell. Reading would even stop this program if it is in the background (SIGTTIN).
        if sender.is_closed() {
            return None;
        }
        let count = match is_ready.then(|| read(&terminal, &mut chunk)).transpose() {
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

#[cfg(test)]
mod tests {
    use std::io::{Write, read_to_string};

    use super::*;

    #[test]
    fn input_after_the_end_is_left_to_the_shell() {
        for (is_open, sent, left) in [(true, 5, ""), (false, 0, "typed")] {
            let (terminal, mut keys) = std::io::pipe().unwrap();
            keys.write_all(b"typed").unwrap();
            drop(keys);
            let (sender, receiver) = mpsc::channel(9);
            let receiver = is_open.then_some(receiver);
            assert_eq!(forward(&terminal, &sender), None);
            assert_eq!((receiver.map_or(0, |receiver| receiver.len()), read_to_string(terminal).unwrap().as_str()), (sent, left));
        }
    }
}
