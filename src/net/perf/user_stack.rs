//! Raw stacks, and the frames in them.

/// The innermost part of a user stack on x86-64, with the registers needed to unwind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// Instruction pointer in the program.
    pub instruction_pointer: u64,
    /// Stack pointer: address of the top of the stack.
    pub stack_pointer: u64,
    /// Frame pointer, if the function keeps one.
    pub frame_pointer: u64,
    /// Stack contents from the stack pointer upwards.
    pub bytes: &'a [u8],
}

/// The frame of a function that keeps the frame pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackFrame {
    /// Address in the function: the instruction pointer, or a return address.
    pub address: u64,
    /// Return address into its caller.
    pub caller: u64,
    /// Frame pointer of the function, and that of its caller.
    frame_pointers: [u64; 2],
}

impl<'a> UserStack<'a> {
    /// Creates a stack from frame pointer, stack pointer and instruction pointer.
    pub(super) fn new([frame_pointer, stack_pointer, instruction_pointer]: [u64; 3], bytes: &'a [u8]) -> Self {
        Self { instruction_pointer, stack_pointer, frame_pointer, bytes }
    }

    /// Returns frame pointer, stack pointer and instruction pointer.
    pub(super) fn registers(&self) -> [u64; 3] {
        [self.frame_pointer, self.stack_pointer, self.instruction_pointer]
    }

    /// Returns the word at an address; `None` if it is not in the stack.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let place = usize::try_from(address.checked_sub(self.stack_pointer)?).ok()?;
        self.bytes.get(place..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
    }

    /// Returns the frames by frame pointers, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = StackFrame> {
        let frame = |address, own: u64| {
            let (outer, caller) = (self.word(own)?, self.word(own.checked_add(8)?)?);
            // Otherwise a loop in the stack would never end.
            (outer > own).then_some(StackFrame { address, caller, frame_pointers: [own, outer] })
        };
        std::iter::successors(frame(self.instruction_pointer, self.frame_pointer), move |inner| {
            frame(inner.caller, inner.frame_pointers[1])
        })
    }

    /// Returns the words that may be return addresses of other frames between a frame and its caller's, innermost first: those above a saved
    /// frame pointer that is the same as the one that this frame has saved. Some may be left from frames of former calls.
    pub fn saved_return_addresses(&self, frame: &StackFrame) -> impl Iterator<Item = u64> {
        let [own, outer] = frame.frame_pointers;
        let places = (own.saturating_add(16)..outer).step_by(8);
        let words = places.map_while(|place| Some((self.word(place)?, self.word(place.checked_add(8)?)?)));
        words.filter(move |(saved, _)| *saved == outer).map(|(_, address)| address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn frames_follow_frame_pointers() {
        //                  1000          1016          1032          1048  1056
        let words = bytes(&[1016, 51, 1032, 52, 1048, 53, 0, 54]);
        let stack = UserStack::new([1000, 1000, 50], &words);
        let found: Vec<_> = stack.frames().map(|StackFrame { address, caller, .. }| [address, caller]).collect();
        assert_eq!(found, [[50, 51], [51, 52], [52, 53]]);
        // Outside of the stack, in the wrong direction, or at the end of the address range.
        for frame_pointer in [0, 992, 1060, 1064, u64::MAX, u64::MAX - 7] {
            assert_eq!(UserStack::new([frame_pointer, 1000, 50], &words).frames().count(), 0, "{frame_pointer}");
        }
        for (first, frames) in [(1000, 0), (992, 0), (u64::MAX, 1), (u64::MAX - 7, 1), (1008, 2)] {
            let words = bytes(&[first, 1024, 1, 2, 3]);
            assert_eq!(UserStack::new([1000, 1000, 50], &words).frames().count(), frames, "{first}");
        }
        assert_eq!(UserStack::new([1000, 1000, 50], &[]).frames().count(), 0);
    }

    #[test]
    fn return_addresses_are_found_between_frames() {
        // The frame at 1000 has saved 1048, as have others at 1016 and 1032.
        let words = [1048, 51, 1048, 9, 1048, 70, 1048, 60, 1, 2];
        let find = |words: &[u64]| -> Vec<u64> {
            let words = bytes(words);
            let stack = UserStack::new([1000, 1000, 50], &words);
            let frame = StackFrame { address: 50, caller: 51, frame_pointers: [1000, 1048] };
            stack.saved_return_addresses(&frame).collect()
        };
        assert_eq!(find(&words), [9, 70]);
        assert_eq!(find(&words[..5]), [9], "cut off");
        assert_eq!(find(&[1048, 51, 0, 0, 0, 0, 1048, 70]), [0; 0], "the caller's own frame");
        let stack = UserStack::new([1000, 1000, 50], &[]);
        for frame_pointers in [[u64::MAX, u64::MAX], [u64::MAX - 16, u64::MAX], [0, u64::MAX]] {
            let frame = StackFrame { address: 50, caller: 51, frame_pointers };
            assert_eq!(stack.saved_return_addresses(&frame).count(), 0);
        }
    }
}
