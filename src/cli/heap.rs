//! `heap TARGET`: what is on the heap, by type.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{called, connect_managed, not_started};
use crate::analysis::{HeapProblem, HeapSnapshot, HeapType};
use crate::model::{Bytes, Count, NativeAotGap, Process, sanitise};
use crate::session::{HeapError, HeapFile, HeapFileError, HeapWalk, OutputError, Unfinished, default_file, walk_heap};

#[derive(Serialize)]
struct Document {
    objects: u64,
    bytes: u64,
    references: u64,
    /// Whether the walk came to its end.
    complete: bool,
    /// Why the figures may be wrong; none where everything adds up.
    problems: Vec<String>,
    types: Vec<Type>,
    /// What is not among the types.
    others: Others,
    /// The file with the graph, where one was asked for.
    file: Option<String>,
}

#[derive(Serialize)]
struct Type {
    name: String,
    module: String,
    objects: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Others {
    types: u64,
    objects: u64,
    bytes: u64,
}

pub(super) async fn run(host: &Host, arguments: &args::Heap) -> Result<Exit, Failure> {
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !arguments.yes && !asks {
        let why = "walking the heap forces a full GC, which pauses the program: confirm with --yes";
        return Err(Failure::usage(why));
    }
    let (process, client) = connect_managed(host, &arguments.target.target, NativeAotGap::Heap).await?;
    if !arguments.yes && !is_allowed(&process)? {
        print::say("canceled; no request was sent");
        return Ok(Exit::Done);
    }
    let default_file = || arguments.gcdump.then(|| default_file(Path::new(""), &process.name, process.key.pid, "gcdump"));
    let file = arguments.graph_file.clone().or_else(default_file).map(|path| HeapFile::create(&path));
    let file = file.transpose().map_err(unwritten)?;
    let line = std::io::stderr().is_terminal();
    let progress = |objects, bytes| {
        if line {
            print::rewrite_line(format_args!("{} objects, {}", Count(objects), Bytes(bytes)));
        }
    };
    let walk = walk_heap(client, process.runtime.as_ref(), file.is_some(), arguments.timeout, progress).await;
    if line {
        print::rewrite_line("");
    }
    let HeapWalk { heap, graph, ended } = walk.map_err(|error| match error {
        HeapError::Start(error) => not_started(error),
        HeapError::Config(error) => Failure::usage(error),
        error => anyhow::anyhow!("{}: {error}", called(&process)).into(),
    })?;
    if let Err(why @ (Unfinished::Cut(_) | Unfinished::NotStopped(_))) = &ended {
        print::say(format_args!("{}: {why}", called(&process)));
    }
    let written = file.map_or(Ok(None), |file| file.write(graph, &heap, &process));
    let (path, failure) = match written {
        Ok(path) => (path.map(|path: PathBuf| sanitise(&path.to_string_lossy())), None),
        Err(HeapFileError::Output(error)) => (None, Some(unwritten(error))),
        Err(error) => (None, Some(Failure::failed(error))),
    };
    let exit = report(&heap, path, arguments)?;
    failure.map_or(Ok(exit), Err)
}

fn unwritten(error: OutputError) -> Failure {
    Failure::new(if error.is_denied() { Exit::Denied } else { Exit::Failed }, error)
}

/// Asks the person.
fn is_allowed(process: &Process) -> anyhow::Result<bool> {
    let (name, size) = (called(process), Bytes(process.usage.rss_bytes));
    let question = format!("{name} uses {size} of memory. Walking its heap forces a full GC, which pauses it. Continue? [y/N] ");
    print::rewrite_line(&question);
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn report(heap: &HeapSnapshot, file: Option<String>, arguments: &args::Heap) -> Result<Exit, Failure> {
    let document = Document { file, ..document(heap, arguments.count) };
    if arguments.output.json {
        print::json(&document)?;
    } else {
        print::text(|out| write_text(out, &document))?;
    }
    for problem in &document.problems {
        print::say(problem);
    }
    if let Some(file) = &document.file {
        print::say(format_args!("object graph: {file}"));
    }
    if !document.complete {
        print::say("the heap walk was interrupted: the figures are incomplete");
    }
    Ok(if document.complete { Exit::Done } else { Exit::Failed })
}

fn document(heap: &HeapSnapshot, count: usize) -> Document {
    let (shown, more) = heap.types.split_at(count.min(heap.types.len()));
    let (types, objects, bytes) = heap.others;
    Document {
        objects: heap.objects,
        bytes: heap.bytes,
        references: heap.references,
        complete: heap.is_finished,
        problems: heap.problems.iter().map(problem).collect(),
        types: shown.iter().map(type_of).collect(),
        others: Others {
            types: types + more.len() as u64,
            objects: objects + more.iter().map(|named| named.objects).sum::<u64>(),
            bytes: bytes + more.iter().map(|named| named.bytes).sum::<u64>(),
        },
        file: None,
    }
}

fn type_of(named: &HeapType) -> Type {
    let HeapType { name, module, objects, bytes } = named;
    Type { name: sanitise(name), module: sanitise(module), objects: *objects, bytes: *bytes }
}

fn problem(problem: &HeapProblem) -> String {
    match problem {
        HeapProblem::ReferencesDoNotAddUp { promised, told } => {
            format!("the figures do not add up: objects hold {promised} references, and {told} were reported")
        }
        HeapProblem::EventsMissing(count) => format!("{count} events are missing: there are more objects than these"),
        HeapProblem::EventsLost(count) => format!("the runtime dropped {count} events: there may be more objects than these"),
        HeapProblem::TypesUnknown(count) => {
            format!("the types of {count} objects are missing: an earlier session may have received them")
        }
    }
}

fn write_text(out: &mut dyn Write, document: &Document) -> std::io::Result<()> {
    let Document { objects, bytes, references, types, others, .. } = document;
    writeln!(out, "{objects} objects, {} ({bytes} bytes), {references} references\n", Bytes(*bytes))?;
    writeln!(out, "{:>12} {:>10}  TYPE", "BYTES", "OBJECTS")?;
    for Type { name, module, objects, bytes } in types {
        let module = if module.is_empty() { String::new() } else { format!("  [{module}]") };
        writeln!(out, "{bytes:>12} {objects:>10}  {}{module}", if name.is_empty() { "(unknown type)" } else { name })?;
    }
    if others.types > 0 {
        writeln!(out, "{:>12} {:>10}  in {} other types", others.bytes, others.objects, others.types)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted() {
        let named = |name: &str, objects, bytes| HeapType { name: name.into(), module: String::new(), objects, bytes };
        let heap = HeapSnapshot {
            objects: 16,
            bytes: 160,
            references: 3,
            types: vec![named("A\u{1b}[2J", 5, 100), named("B", 4, 40), named("", 3, 15)],
            others: (2, 4, 5),
            is_finished: true,
            problems: vec![HeapProblem::ReferencesDoNotAddUp { promised: 4, told: 3 }],
        };
        let document = document(&heap, 1);
        assert_eq!((document.others.types, document.others.objects, document.others.bytes), (4, 11, 60));
        assert_eq!(document.types[0].name, "A\u{fffd}[2J");
        assert_eq!(document.problems, ["the figures do not add up: objects hold 4 references, and 3 were reported"]);
        assert_eq!(super::document(&heap, 99).types.len(), 3);
    }
}
