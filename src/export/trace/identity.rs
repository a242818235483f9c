//! Detects which recordings of a trace are of the same process, so that it gets one row, and so does each of its threads.

use std::collections::HashSet;

use foldhash::HashMap;

use super::overview::Overview;

/// Maximum number of methods compared per recording.
const MAX_METHODS: usize = 1 << 16;
/// Below this number of methods an overlap is not required: without a rundown, a recording only contains methods compiled while it ran.
const MIN_RUNDOWN_METHODS: usize = 100;

/// The processes of the recordings in a trace, whose times must be since the same boot of the machine.
#[derive(Debug, Default)]
pub struct Processes(HashMap<u32, Vec<ProcessIdentity>>);

/// Facts about a process from its recordings.
#[derive(Debug)]
struct ProcessIdentity {
    /// Distinguishes processes with the same pid.
    incarnation: i64,
    command_line: String,
    /// Start addresses of its methods.
    methods: HashSet<u64>,
}

impl Processes {
    /// Detects the processes that earlier recordings contain too. Must be called for each recording before its export.
    pub fn add(&mut self, overview: &mut Overview) {
        let header = *overview.header();
        let of_others: Vec<u32> = overview.images.process_names().map(|(pid, _)| pid).filter(|pid| *pid != header.process_id).collect();
        let methods: HashSet<u64> = overview.symbols.symbols().starts().take(MAX_METHODS).collect();
        let own = ProcessIdentity { incarnation: header.sync_ticks, command_line: overview.subject.command_line.clone(), methods };
        let mut found = HashMap::default();
        if header.process_id != 0 {
            found.insert(header.process_id, self.incarnation(header.process_id, own));
        }
        for pid in of_others {
            let named = ProcessIdentity { incarnation: header.sync_ticks, command_line: String::new(), methods: HashSet::new() };
            found.insert(pid, self.incarnation(pid, named));
        }
        overview.subject.incarnations = found;
    }

    fn incarnation(&mut self, pid: u32, process: ProcessIdentity) -> i64 {
        let known = self.0.entry(pid).or_default();
        match known.iter_mut().find(|known| known.may_be_same(&process)) {
            Some(known) => {
                if known.command_line.is_empty() {
                    known.command_line = process.command_line;
                }
                known.methods.extend(process.methods);
                known.incarnation
            }
            None => {
                let incarnation = process.incarnation;
                known.push(process);
                incarnation
            }
        }
    }
}

impl ProcessIdentity {
    /// Whether the two may be the same process. Pids are reused, and can be equal in two containers.
    fn may_be_same(&self, other: &Self) -> bool {
        let has_other_program = !self.command_line.is_empty() && !other.command_line.is_empty() && self.command_line != other.command_line;
        // Code is loaded at randomized addresses.
        let has_other_code = self.methods.len().min(other.methods.len()) >= MIN_RUNDOWN_METHODS && self.methods.is_disjoint(&other.methods);
        !has_other_program && !has_other_code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(command_line: &str, methods: std::ops::Range<u64>) -> ProcessIdentity {
        ProcessIdentity { incarnation: 1, command_line: command_line.to_owned(), methods: methods.collect() }
    }

    #[test]
    fn processes_with_equal_pid_differ_by_command_and_code() {
        let table = [
            (known("dotnet a.dll", 0..200), known("dotnet a.dll", 100..300), true),
            (known("dotnet a.dll", 0..200), known("dotnet b.dll", 0..200), false),
            // Two containers of the same image.
            (known("dotnet a.dll", 0..200), known("dotnet a.dll", 1000..1200), false),
            // Without a rundown; and kernel samples.
            (known("dotnet a.dll", 0..200), known("dotnet a.dll", 1000..1010), true),
            (known("dotnet a.dll", 0..200), known("", 0..0), true),
        ];
        for (one, other, is_same) in table {
            assert!(one.may_be_same(&other) == is_same && other.may_be_same(&one) == is_same, "{one:?} {other:?}");
        }
    }
}
