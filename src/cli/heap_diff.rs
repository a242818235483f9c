//! `diff BEFORE.gcdump AFTER.gcdump`: the differences between two heaps, by type.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::args;
use super::exit::{Exit, Failure};
use super::heap::{read, type_title};
use super::print;
use crate::analysis::{HeapAmount, HeapChange, HeapSnapshot};
use crate::model::{Bytes, Count, Counted, SafeText};

#[derive(Serialize)]
struct Document {
    before: Heap,
    after: Heap,
    /// Types whose number of objects or bytes changed, the largest growth in bytes first.
    types: Vec<Type>,
    /// Number of further types that changed.
    other_types: usize,
}

#[derive(Serialize)]
struct Heap {
    file: SafeText,
    objects: u64,
    bytes: u64,
    /// Reasons why the figures may be wrong.
    problems: Vec<String>,
}

/// Objects and bytes are null if the type is not among the 1000 largest.
#[derive(Serialize)]
struct Type {
    name: SafeText,
    module: SafeText,
    before: Amount,
    after: Amount,
    change_objects: Option<i64>,
    /// A lower bound if one of the amounts is unknown.
    change_bytes: i64,
}

#[derive(Serialize)]
struct Amount {
    objects: Option<u64>,
    bytes: Option<u64>,
}

pub(super) fn run(before: &Path, after: &Path, arguments: &args::Diff) -> Result<Exit, Failure> {
    if arguments.before_range.is_some() || arguments.after_range.is_some() {
        return Err(Failure::usage("--before-range and --after-range are for nettrace files: a .gcdump file is a snapshot"));
    }
    let (old, new) = (read(before)?.heap, read(after)?.heap);
    let changes = new.changes_since(&old);
    let document = Document {
        before: heap(before, &old),
        after: heap(after, &new),
        types: changes.iter().take(arguments.count).map(changed).collect(),
        other_types: changes.len().saturating_sub(arguments.count),
    };
    print::document(arguments.output.json, &document, write_text)?;
    for Heap { file, problems, .. } in [&document.before, &document.after] {
        for problem in problems {
            print::message(format_args!("{file}: {problem}"));
        }
    }
    Ok(Exit::Done)
}

fn heap(path: &Path, heap: &HeapSnapshot) -> Heap {
    let problems = heap.problems.iter().map(ToString::to_string).collect();
    Heap { file: SafeText::from_path(path), objects: heap.objects, bytes: heap.bytes, problems }
}

fn changed(change: &HeapChange<'_>) -> Type {
    let amount = |amount: HeapAmount| match amount {
        HeapAmount::Known { objects, bytes } => Amount { objects: Some(objects), bytes: Some(bytes) },
        HeapAmount::AtMost(_) => Amount { objects: None, bytes: None },
    };
    Type {
        name: SafeText::new(change.name),
        module: SafeText::new(change.module),
        before: amount(change.before),
        after: amount(change.after),
        change_objects: change.objects(),
        change_bytes: change.bytes(),
    }
}

fn write_text(out: &mut dyn Write, document: &Document) -> std::io::Result<()> {
    let Document { before, after, types, other_types } = document;
    for (title, Heap { file, objects, bytes, .. }) in [("before", before), ("after", after)] {
        writeln!(out, "{title:<8}{file}: {:#}, {} ({bytes} bytes)", Counted(*objects, "object"), Bytes(*bytes))?;
    }
    if types.is_empty() && *other_types == 0 {
        return writeln!(out, "\nno type has changed");
    }
    writeln!(out, "\n{:>12} {:>12} {:>12} {:>10}  TYPE", "CHANGE", "BEFORE", "AFTER", "OBJECTS")?;
    for Type { name, module, before, after, change_objects, change_bytes } in types {
        let bytes = |amount: &Amount| amount.bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let objects = change_objects.map_or("-".to_owned(), |objects| format!("{objects:+}"));
        let module = print::module_suffix(name, module);
        writeln!(out, "{change_bytes:>+12} {:>12} {:>12} {objects:>10}  {}{module}", bytes(before), bytes(after), type_title(name))?;
    }
    match *other_types {
        0 => Ok(()),
        more => writeln!(out, "{:>49}  and {} more (-n)", "", Count(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_heaps_have_no_table() {
        let heap = || Heap { file: SafeText::new("a.gcdump"), objects: 1, bytes: 24, problems: Vec::new() };
        let mut out = Vec::new();
        write_text(&mut out, &Document { before: heap(), after: heap(), types: Vec::new(), other_types: 0 }).unwrap();
        let expected = "before  a.gcdump: 1 object, 24 B (24 bytes)\nafter   a.gcdump: 1 object, 24 B (24 bytes)\n\nno type has changed\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
