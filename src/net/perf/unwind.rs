//! Stacks through code that does not keep the frame pointer, such as that of most C libraries: by the call frame information of its file. All other code,
//! and that which the runtime generates, keeps it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use foldhash::HashMap;

use super::UserStack;
use crate::model::ProcessKey;
use crate::net::elf::{UnwindRow, UnwindTable};
use crate::net::proc::{CodeMapping, Proc};

/// Frames after which a stack is cut off, as the kernel does it.
const MOST: usize = 127;
/// What the tables of all files may take, bytes; those of further files are not read.
const MOST_TABLES: usize = 128 << 20;
/// Rows that are remembered.
const MOST_ROWS: usize = 1 << 16;

/// What is known of the code of one process. A copy begins anew.
#[derive(Debug, Default)]
pub(super) struct Unwinder {
    /// By path.
    files: HashMap<Vec<u8>, usize>,
    tables: Vec<Option<UnwindTable>>,
    /// What the tables take, bytes.
    size: usize,
    /// By table and place in the file: there are few in which threads wait.
    rows: HashMap<(usize, u64), Option<UnwindRow>>,
    frames: Vec<u64>,
}

impl Clone for Unwinder {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The registers of a function.
#[derive(Debug, Clone, Copy)]
struct Registers {
    instruction: u64,
    stack: u64,
    frame: u64,
}

impl Unwinder {
    /// The frames of a stack, innermost first. `find` gives the file of an address, if it is one of native code.
    pub(super) fn unwind<'a>(
        &mut self,
        (proc, key): (&Proc, ProcessKey),
        stack: &UserStack<'_>,
        find: impl Fn(u64) -> Option<&'a CodeMapping>,
    ) -> &[u64] {
        self.frames.clear();
        let mut registers = Registers { instruction: stack.instruction_pointer, stack: stack.stack_pointer, frame: stack.frame_pointer };
        while self.frames.len() < MOST {
            self.frames.push(registers.instruction);
            // A return address may be that of the function behind.
            let within = registers.instruction - u64::from(self.frames.len() > 1);
            let row = find(within).and_then(|mapping| self.row(proc, key, mapping, within));
            match step(stack, registers, row) {
                Some(caller) if caller.instruction > 0 => registers = caller,
                _ => break,
            }
        }
        &self.frames
    }

    fn row(&mut self, proc: &Proc, key: ProcessKey, mapping: &CodeMapping, address: u64) -> Option<UnwindRow> {
        let table = match self.files.get(&mapping.path) {
            Some(table) => *table,
            None => {
                let open = || proc.mapped_file(key.pid, Path::new(std::ffi::OsStr::from_bytes(&mapping.path)));
                let is_readable = self.size < MOST_TABLES && !mapping.is_deleted && mapping.path.starts_with(b"/");
                let table = is_readable.then(|| open().and_then(|file| UnwindTable::read(&file)).ok().flatten()).flatten();
                self.size += table.as_ref().map_or(0, UnwindTable::size);
                self.tables.push(table);
                self.files.insert(mapping.path.clone(), self.tables.len() - 1);
                self.tables.len() - 1
            }
        };
        let place = (address - mapping.range.start).saturating_add(mapping.file_offset);
        if self.rows.len() >= MOST_ROWS {
            self.rows.clear();
        }
        *self.rows.entry((table, place)).or_insert_with(|| self.tables[table].as_ref()?.row(place))
    }
}

/// The registers of the caller; `None` where the stack does not have them. Without a row, the function keeps the frame pointer.
fn step(stack: &UserStack<'_>, registers: Registers, row: Option<UnwindRow>) -> Option<Registers> {
    let at = |address: u64| {
        let place = usize::try_from(address.checked_sub(stack.stack_pointer)?).ok()?;
        stack.bytes.get(place..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
    };
    let Registers { stack: top, frame, .. } = registers;
    let caller = match row {
        Some(UnwindRow { is_from_frame_pointer, offset, frame_pointer, return_address }) => {
            let canonical = (if is_from_frame_pointer { frame } else { top }).checked_add_signed(offset)?;
            Registers {
                instruction: at(canonical.checked_add_signed(return_address)?)?,
                stack: canonical,
                frame: frame_pointer.map_or(Some(frame), |place| at(canonical.checked_add_signed(place)?))?,
            }
        }
        None => Registers { instruction: at(frame.checked_add(8)?)?, stack: frame.checked_add(16)?, frame: at(frame)? },
    };
    // It would never end.
    (caller.stack > top).then_some(caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack at 1000 with these words.
    fn stack(words: &[u64], frame_pointer: u64) -> (Vec<u8>, u64) {
        (words.iter().flat_map(|word| word.to_ne_bytes()).collect(), frame_pointer)
    }

    fn caller(words: &[u64], frame_pointer: u64, row: Option<UnwindRow>) -> Option<(u64, u64, u64)> {
        let (bytes, frame_pointer) = stack(words, frame_pointer);
        let stack = UserStack { instruction_pointer: 7, stack_pointer: 1000, frame_pointer, bytes: &bytes };
        let registers = Registers { instruction: 7, stack: 1000, frame: frame_pointer };
        step(&stack, registers, row).map(|Registers { instruction, stack, frame }| (instruction, stack, frame))
    }

    #[test]
    fn a_caller_is_found_by_the_frame_pointer_or_by_a_row() {
        let words = [11, 12, 2000, 55, 1032, 66];
        let row = |offset, frame_pointer| Some(UnwindRow { is_from_frame_pointer: false, offset, frame_pointer, return_address: -8 });
        assert_eq!(caller(&words, 1016, None), Some((55, 1032, 2000)));
        assert_eq!(caller(&words, 9, row(32, Some(-16))), Some((55, 1032, 2000)));
        assert_eq!(caller(&words, 9, row(48, None)), Some((66, 1048, 9)));
        let by_frame = UnwindRow { is_from_frame_pointer: true, offset: 16, frame_pointer: Some(-16), return_address: -8 };
        assert_eq!(caller(&words, 1032, Some(by_frame)), Some((66, 1048, 1032)));
        // Outside of the stack, in no order, or at the end of the numbers.
        for frame in [0, 992, 1044, u64::MAX, u64::MAX - 15] {
            assert_eq!(caller(&words, frame, None), None, "{frame}");
        }
        for offset in [0, -8, 56, i64::MIN, i64::MAX] {
            assert_eq!(caller(&words, 9, row(offset, None)), None, "{offset}");
        }
    }

    #[test]
    fn a_stack_that_leads_nowhere_ends() {
        let proc = Proc::open(Path::new("/proc")).unwrap();
        let key = ProcessKey { pid: 0, started: 0 };
        // Each frame leads to the next one, without an end.
        let words: Vec<u64> = (0..1000_u64).flat_map(|frame| [1000 + (frame + 1) * 16, 5]).collect();
        let (bytes, frame_pointer) = stack(&words, 1000);
        let endless = UserStack { instruction_pointer: 7, stack_pointer: 1000, frame_pointer, bytes: &bytes };
        let mut unwinder = Unwinder::default();
        assert_eq!(unwinder.unwind((&proc, key), &endless, |_| None).len(), MOST);
        let empty = UserStack { bytes: &[], ..endless };
        assert_eq!(unwinder.unwind((&proc, key), &empty, |_| None), [7]);
    }
}
