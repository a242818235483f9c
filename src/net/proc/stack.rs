//! The stack of a blocked thread.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{Proc, ReadableMemory, words};

/// Registers and stack of a blocked thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockedStack {
    /// Instruction pointer in the program.
    pub(crate) instruction_pointer: u64,
    /// Stack pointer: address of the top of the stack.
    pub(crate) stack_pointer: u64,
    /// Stack contents from the stack pointer upwards.
    pub(crate) bytes: Vec<u8>,
}

impl Proc {
    /// Returns where a thread is blocked, with at most `most` bytes of its stack; `None` if it is not blocked (`/proc/PID/syscall` in `proc(5)`).
    ///
    /// Nothing outside of `memory` is read. But that was listed before, so another thread may have mapped a file there in between, which could
    /// block us: no interface of the kernel rules that out.
    ///
    /// # Errors
    /// If the thread has exited, or its memory is not accessible: that requires permission to ptrace.
    pub(crate) fn blocked_stack(&self, pid: u32, thread: u32, most: usize, memory: &ReadableMemory) -> io::Result<Option<BlockedStack>> {
        let file = format!("{pid}/task/{thread}/syscall");
        let before = self.read(&file, 256)?;
        let Some([stack_pointer, instruction_pointer]) = pointers(&before) else { return Ok(None) };
        let most = most.min(memory.bytes_at(stack_pointer));
        let memory = File::from(self.open_file(&format!("{pid}/mem"))?);
        let mut bytes = vec![0; most];
        let mut read = 0;
        while read < most {
            match memory.read_at(&mut bytes[read..], stack_pointer.saturating_add(read as u64)) {
                Ok(count @ 1..) => read += count,
                // Nothing is mapped beyond the stack.
                Ok(0) | Err(_) => break,
            }
        }
        bytes.truncate(read);
        // It may have run since, so that the bytes read are not its stack.
        let is_there = self.read(&file, 256)? == before;
        Ok(is_there.then_some(BlockedStack { instruction_pointer, stack_pointer, bytes }))
    }
}

/// Returns the stack pointer and instruction pointer, the last two words of a line; `None` for a running thread.
fn pointers(line: &[u8]) -> Option<[u64; 2]> {
    let hexadecimal = |word: &[u8]| u64::from_str_radix(std::str::from_utf8(word).ok()?.strip_prefix("0x")?, 16).ok();
    let mut last = words(line).rev().map_while(hexadecimal);
    let (instruction, stack) = last.next().zip(last.next())?;
    Some([stack, instruction])
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn syscall_lines_of_the_kernel_are_parsed() {
        let poll = b"7 0x7ffd0 0x2 0xffffffff 0x0 0x0 0x7ffd8 0x7ffd1b 0x7f58c5\n";
        for (line, found) in [
            (&poll[..], Some([0x7f_fd1b, 0x7f_58c5])),
            (b"-1 0x7ffd1b 0x7f58c5\n", Some([0x7f_fd1b, 0x7f_58c5])),
            (b"running\n", None),
            (b"0x1\n", None),
            (b"7 1 2\n", None),
            (b"0xfffffffffffffffff 0x1\n", None),
            (b"\xff 0x\n", None),
            (b"", None),
        ] {
            assert_eq!(pointers(line), found, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_thread_that_is_blocked_has_a_stack() {
        let (thread, number) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            thread.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            ended.recv().unwrap_err();
        });
        let (proc, pid, thread) = (Proc::open(Path::new("/proc")).unwrap(), std::process::id(), number.recv().unwrap());
        let stack = loop {
            match proc.blocked_stack(pid, thread, 64 << 10, &proc.readable_memory(pid).unwrap()) {
                Ok(Some(stack)) => break stack,
                Ok(None) => std::thread::yield_now(),
                // Some containers deny access.
                Err(error) => return eprintln!("skipped: {error}"),
            }
        };
        // The stack is in the memory of this process.
        let local = 0_u8;
        assert!(stack.bytes.len() > 100 && stack.stack_pointer != std::ptr::from_ref(&local) as u64, "{}", stack.bytes.len());
        let unread = proc.blocked_stack(pid, thread, 64 << 10, &ReadableMemory::Anonymous(Vec::new())).unwrap().unwrap();
        assert_eq!((unread.stack_pointer, unread.bytes), (stack.stack_pointer, Vec::new()));
        drop(end);
        waiting.join().unwrap();
        assert!(proc.blocked_stack(pid, thread, 64, &ReadableMemory::All).is_err());
    }
}
