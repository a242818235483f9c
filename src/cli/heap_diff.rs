//! `diff BEFORE.gcdump AFTER.gcdump`: the differences between two heaps, by type.

use std::io::Write;
use std::path::Path;

use super::args;
use super::exit::{Exit, Failure};
use super::heap::{read, type_title};
use super::print::{self, Value, json};
use crate::analysis::{HeapAmount, HeapChange, HeapSnapshot};
use crate::model::{Bytes, Count, Counted, SafeText};

pub(super) fn run(before: &Path, after: &Path, arguments: &args::Diff) -> Result<Exit, Failure> {
    if arguments.before_range.is_some() || arguments.after_range.is_some() {
        return Err(Failure::usage("--before-range and --after-range are for nettrace files: a .gcdump file is a snapshot"));
    }
    let heaps = [(before, read(before)?.heap), (after, read(after)?.heap)].map(|(path, heap)| (SafeText::from_path(path), heap));
    let changes = heaps[1].1.changes_since(&heaps[0].1);
    let (shown, others) = changes.split_at(arguments.count.min(changes.len()));
    if arguments.output.json {
        let [before, after] = heaps.each_ref().map(heap);
        print::json(json!({
            "before": before,
            "after": after,
            // Types whose number of objects or bytes changed, the largest growth in bytes first.
            "types": shown.iter().map(changed).collect::<Vec<_>>(),
            // Number of further types that changed.
            "other_types": others.len(),
        }))?;
    } else {
        print::text(|out| write_text(out, &heaps, shown, others.len()))?;
    }
    for (file, heap) in &heaps {
        heap.problems.iter().for_each(|problem| print::message(format_args!("{file}: {problem}")));
    }
    Ok(Exit::Done)
}

fn heap((file, heap): &(SafeText, HeapSnapshot)) -> Value {
    // Reasons why the figures may be wrong.
    let problems: Vec<_> = heap.problems.iter().map(ToString::to_string).collect();
    json!({ "file": file, "objects": heap.objects, "bytes": heap.bytes, "problems": problems })
}

fn changed(change: &HeapChange<'_>) -> Value {
    // Null if the type is not among the 1000 largest.
    let amount = |amount: HeapAmount| match amount {
        HeapAmount::Known { objects, bytes } => json!({ "objects": objects, "bytes": bytes }),
        HeapAmount::AtMost(_) => json!({ "objects": null, "bytes": null }),
    };
    json!({
        "name": SafeText::new(change.name),
        "module": SafeText::new(change.module),
        "before": amount(change.before),
        "after": amount(change.after),
        "change_objects": change.objects(),
        // A lower bound if one of the amounts is unknown.
        "change_bytes": change.bytes(),
    })
}

fn write_text(out: &mut dyn Write, heaps: &[(SafeText, HeapSnapshot); 2], types: &[HeapChange<'_>], others: usize) -> std::io::Result<()> {
    for (title, (file, HeapSnapshot { objects, bytes, .. })) in ["before", "after"].iter().zip(heaps) {
        writeln!(out, "{title:<8}{file}: {:#}, {} ({bytes} bytes)", Counted(*objects, "object"), Bytes(*bytes))?;
    }
    if types.is_empty() && others == 0 {
        return writeln!(out, "\nno type has changed");
    }
    writeln!(out, "\n{:>12} {:>12} {:>12} {:>10}  TYPE", "CHANGE", "BEFORE", "AFTER", "OBJECTS")?;
    for change in types {
        let [before, after] = [change.before, change.after].map(|amount| match amount {
            HeapAmount::Known { bytes, .. } => bytes.to_string(),
            HeapAmount::AtMost(_) => "-".to_owned(),
        });
        let objects = change.objects().map_or("-".to_owned(), |objects| format!("{objects:+}"));
        let (name, module) = (SafeText::new(change.name), SafeText::new(change.module));
        let module = print::module_suffix(&name, &module);
        writeln!(out, "{:>+12} {before:>12} {after:>12} {objects:>10}  {}{module}", change.bytes(), type_title(&name))?;
    }
    match others {
        0 => Ok(()),
        more => writeln!(out, "{:>49}  and {} more (-n)", "", Count(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_heaps_have_no_table() {
        let (types, others, problems) = (Vec::new(), (0, 0, 0), Vec::new());
        let heap = HeapSnapshot { objects: 1, bytes: 24, references: 0, types, others, is_finished: true, problems };
        let heap = (SafeText::new("a.gcdump"), heap);
        let mut out = Vec::new();
        write_text(&mut out, &[heap.clone(), heap], &[], 0).unwrap();
        let expected = "before  a.gcdump: 1 object, 24 B (24 bytes)\nafter   a.gcdump: 1 object, 24 B (24 bytes)\n\nno type has changed\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
