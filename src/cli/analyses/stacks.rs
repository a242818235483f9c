//! Exceptions by throwing stack.

use std::io::Write;

use serde::Serialize;

use super::fields::{Counts, Value};
use crate::analysis::TypeStacks;
use crate::model::{Count, SafeText};

/// Exceptions with the same stack.
#[derive(Serialize)]
pub(super) struct ThrownStack {
    count: u64,
    /// Exception count by type.
    types: Value,
    /// Leaf first: begins with the throwing method.
    frames: Vec<SafeText>,
}

/// Returns the most frequent stacks, at most `most`.
pub(super) fn rows(stacks: &TypeStacks, most: usize) -> Vec<ThrownStack> {
    let name = |number| SafeText::new(stacks.type_name(number).unwrap_or("other types")).to_string();
    let groups = stacks.of(None).stacks(most).into_iter();
    groups
        .map(|group| ThrownStack {
            count: group.samples.all(),
            types: Value::Counts(Counts(group.threads.into_iter().map(|(number, count)| (name(number), count)).collect())),
            frames: group.frames.iter().map(|frame| SafeText::new(frame)).collect(),
        })
        .collect()
}

impl ThrownStack {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let note = if self.frames.is_empty() { " (no stack)" } else { "" };
        writeln!(out, "\n{} thrown: {}{note}", Count(self.count), self.types.shown())?;
        self.frames.iter().try_for_each(|frame| writeln!(out, "  at {frame}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_without_a_stack_are_marked() {
        let text = |frames: &[&str]| {
            let types = Value::Counts(Counts(vec![("A".to_owned(), 2)]));
            let thrown = ThrownStack { count: 2, types, frames: frames.iter().map(|frame| SafeText::new(frame)).collect() };
            let mut out = Vec::new();
            thrown.write_text(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(&[]), "\n2 thrown: A ×2 (no stack)\n");
        assert_eq!(text(&["B.C"]), "\n2 thrown: A ×2\n  at B.C\n");
    }
}
