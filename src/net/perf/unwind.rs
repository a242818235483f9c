//! Stacks through code that does not keep the frame pointer, such as that of most C libraries: by the call frame information of its file. All other code,
//! and that which the runtime generates, keeps it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use foldhash::HashMap;

use super::UserStack;
use crate::model::ProcessKey;
use crate::net::elf::{UnwindRow, UnwindTable};
use crate::net::proc::{CodeMapping, Proc};

/// Frames after which a stack is cut off, as the kernel does it.
const MOST: usize = 127;
/// What the tables of all files may take, bytes; those of further files are not read.
const MOST_TABLES: usize = 128 << 20;
/// Rows of a file that are remembered: there are few places in which threads wait.
const MOST_ROWS: usize = 1 << 12;

/// Walks the stacks of one process.
///
/// Files are read by a thread of its own, which ends with this: until the table of a file is there, its code is taken to keep the frame pointer.
#[derive(Debug)]
pub struct Unwinder {
    wanted: Sender<Vec<u8>>,
    read: Receiver<(Vec<u8>, UnwindTable)>,
    /// By path.
    files: HashMap<Vec<u8>, FileRows>,
    frames: Vec<u64>,
}

/// What is known of the code of a file.
#[derive(Debug, Default)]
struct FileRows {
    /// `None` until it is read, and where the file has none.
    table: Option<UnwindTable>,
    /// By place in the file.
    rows: HashMap<u64, Option<UnwindRow>>,
}

/// The registers of a function.
#[derive(Debug, Clone, Copy)]
struct Registers {
    instruction: u64,
    stack: u64,
    frame: u64,
}

impl Unwinder {
    pub(super) fn new(proc: Arc<Proc>, key: ProcessKey) -> Self {
        let ((wanted, paths), (tables, read)) = (channel(), channel());
        // Where it cannot be started there are no tables.
        let _ = thread::Builder::new().name("unwind-tables".to_owned()).spawn(move || read_tables(&proc, key, paths, &tables));
        Self { wanted, read, files: HashMap::default(), frames: Vec::new() }
    }

    /// The frames of a stack, innermost first. `find` gives the file of an address, if it is one of native code.
    pub(super) fn unwind<'a>(&mut self, stack: &UserStack<'_>, find: impl Fn(u64) -> Option<&'a CodeMapping>) -> &[u64] {
        for (path, table) in self.read.try_iter() {
            self.files.entry(path).or_default().table = Some(table);
        }
        self.frames.clear();
        let mut registers = Registers { instruction: stack.instruction_pointer, stack: stack.stack_pointer, frame: stack.frame_pointer };
        while self.frames.len() < MOST {
            self.frames.push(registers.instruction);
            // A return address may be that of the function behind.
            let within = registers.instruction - u64::from(self.frames.len() > 1);
            let row = find(within).and_then(|mapping| self.row(mapping, within));
            match step(stack, registers, row) {
                Some(caller) if caller.instruction > 0 => registers = caller,
                _ => break,
            }
        }
        &self.frames
    }

    fn row(&mut self, mapping: &CodeMapping, address: u64) -> Option<UnwindRow> {
        // Another file may have its path by now, with other functions.
        if mapping.is_deleted || !mapping.path.starts_with(b"/") {
            return None;
        }
        let Some(FileRows { table, rows }) = self.files.get_mut(&mapping.path) else {
            self.files.insert(mapping.path.clone(), FileRows::default());
            // It has ended where it could not be started, or has read enough.
            let _ = self.wanted.send(mapping.path.clone());
            return None;
        };
        let table = table.as_ref()?;
        let place = (address - mapping.range.start).saturating_add(mapping.file_offset);
        if rows.len() >= MOST_ROWS {
            rows.clear();
        }
        *rows.entry(place).or_insert_with(|| table.row(place))
    }
}

/// Reads the tables of files until they are not needed any more.
fn read_tables(proc: &Proc, key: ProcessKey, paths: Receiver<Vec<u8>>, tables: &Sender<(Vec<u8>, UnwindTable)>) {
    let mut size = 0;
    for path in paths {
        let file = proc.mapped_file(key.pid, Path::new(std::ffi::OsStr::from_bytes(&path)));
        let Ok(Some(table)) = file.and_then(|file| UnwindTable::read(&file)) else { continue };
        size += table.size();
        if size > MOST_TABLES || tables.send((path, table)).is_err() {
            return;
        }
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
        let proc = Arc::new(Proc::open(Path::new("/proc")).unwrap());
        let mut unwinder = Unwinder::new(proc, ProcessKey { pid: 0, started: 0 });
        // Each frame leads to the next one, without an end.
        let words: Vec<u64> = (0..1000_u64).flat_map(|frame| [1000 + (frame + 1) * 16, 5]).collect();
        let (bytes, frame_pointer) = stack(&words, 1000);
        let endless = UserStack { instruction_pointer: 7, stack_pointer: 1000, frame_pointer, bytes: &bytes };
        assert_eq!(unwinder.unwind(&endless, |_| None).len(), MOST);
        let empty = UserStack { bytes: &[], ..endless };
        assert_eq!(unwinder.unwind(&empty, |_| None), [7]);
    }
}
