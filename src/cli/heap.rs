//! `heap TARGET` and `heap FILE`: the objects on the heap, by type.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::awaited::port_path;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::{self, interrupted, interruptible};
use super::target::{connect_managed, display_name, start_error};
use super::{args, print, when};
use crate::analysis::{self, HeapSnapshot, HeapType, PathStep, PendingAsync, RetainedType, Retention};
use crate::export::HeapDump;
use crate::model::{Bytes, Counted, NativeAotGap, Process, SafeText, check_heap_file};
use crate::net::client::Client;
use crate::net::interrupts::Interrupts;
use crate::session::{HeapError, HeapFile, HeapFileError, HeapWalk, OutputError, Unfinished, default_file, read_heap, walk_heap};
use crate::sorting::CompactSort;

#[derive(Serialize)]
struct Document {
    objects: u64,
    bytes: u64,
    references: u64,
    /// Whether the heap walk finished.
    complete: bool,
    /// Reasons why the figures may be wrong; empty if everything adds up.
    problems: Vec<String>,
    /// Async methods that have not completed, with the number of their calls, descending.
    pending_async: Vec<PendingMethod>,
    /// Number of waits for a `SemaphoreSlim`.
    semaphore_waits: u64,
    #[serde(skip)]
    pending_text: Option<SafeText>,
    types: Vec<Type>,
    /// Totals of the types that are not listed.
    others: Others,
    /// Number of objects that are not reachable from any known root, if paths or retained sizes were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreached: Option<u64>,
    /// The paths that keep objects of the requested types alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<PathsOf>>,
    /// The file with the object graph, if one was requested.
    file: Option<SafeText>,
}

#[derive(Serialize)]
struct PendingMethod {
    name: SafeText,
    calls: u64,
}

#[derive(Serialize)]
struct Type {
    name: SafeText,
    module: SafeText,
    objects: u64,
    bytes: u64,
    /// Lower bound of the bytes that would be freed with these objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    retained_bytes: Option<u64>,
}

/// The shortest different paths from roots to objects of a type.
#[derive(Serialize)]
struct PathsOf {
    name: SafeText,
    module: SafeText,
    paths: Vec<RootPath>,
}

#[derive(Serialize)]
struct RootPath {
    root: SafeText,
    steps: Vec<Step>,
}

/// Consecutive objects of one type on a path; objects that were left out have no type.
#[derive(Serialize)]
struct Step {
    name: Option<SafeText>,
    objects: u32,
}

#[derive(Serialize)]
struct Others {
    types: u64,
    objects: u64,
    bytes: u64,
}

pub(super) async fn run(host: &Host, arguments: &args::Heap) -> Result<Exit, Failure> {
    if let Some(path) = arguments.file() {
        return show(path, arguments);
    }
    if let Some(file) = &arguments.graph_file {
        check_heap_file(file).map_err(Failure::usage)?;
    }
    let unconfirmed = || Failure::usage("walking the heap forces a full GC, which pauses the program: confirm with --yes");
    // A program may connect much later.
    if !arguments.yes && port_path(&arguments.source).is_some() {
        return Err(unconfirmed());
    }
    let (mut process, client) = connect_managed(host, &arguments.source, NativeAotGap::Heap).await?;
    let can_prompt = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !arguments.yes && !can_prompt {
        return Err(unconfirmed());
    }
    if !arguments.yes && !confirm(&process)? {
        print::message("canceled; the heap was not walked");
        return Ok(Exit::Done);
    }
    when::wait_running(host, &mut process, &client, &arguments.when).await?;
    let default_file =
        || arguments.gcdump.then(|| default_file(Path::new(""), &host.settings.output_name, &process.name, process.key.pid, "gcdump"));
    // Before the file is created, which a signal would leave behind.
    let mut interrupts = interrupt::listen()?;
    let file = arguments.graph_file.clone().or_else(default_file).map(|path| HeapFile::create(&path));
    let file = file.transpose().map_err(output_error)?;
    let needs_graph = arguments.retained || arguments.paths.is_some();
    let walk = walk(client, &process, file.is_some() || needs_graph, arguments, &mut interrupts).await?;
    if let Err(why @ (Unfinished::Cut(_) | Unfinished::NotStopped(_))) = &walk.ended {
        print::message(format_args!("{}: {why}", display_name(&process)));
    }
    let evaluate = move |wanted: &dyn Fn() -> bool| {
        let retention = if needs_graph { walk.retention() } else { None };
        let HeapWalk { heap, graph, .. } = walk;
        let written = match file {
            Some(_) if !wanted() => Err(HeapFileError::Canceled),
            Some(file) => file.write(graph, &heap, &process, wanted).map(Some),
            None => Ok(None),
        };
        (heap, retention, written)
    };
    let (heap, retention, written) = interruptible(&mut interrupts, evaluate).await?;
    let (path, failure) = match written {
        Ok(path) => (path.map(|path| SafeText::from_path(&path)), None),
        Err(HeapFileError::Output(error)) => (None, Some(output_error(error))),
        Err(error @ HeapFileError::Canceled) => return Err(Failure::new(Exit::Interrupted, error)),
        Err(error) => (None, Some(Failure::failed(error))),
    };
    let exit = report(&heap, retention.as_ref(), path, arguments)?;
    failure.map_or(Ok(exit), Err)
}

/// Walks the heap and shows the progress. The first signal ends the session, the second also the wait for its end.
async fn walk(
    client: Client,
    process: &Process,
    with_graph: bool,
    arguments: &args::Heap,
    interrupts: &mut Interrupts,
) -> Result<HeapWalk, Failure> {
    let is_wanted = AtomicBool::new(true);
    let progress = |objects, bytes| {
        let is_wanted = is_wanted.load(Ordering::Relaxed);
        if objects > 0 && is_wanted {
            print::rewrite_line(format_args!("{}, {}", Counted(objects, "object"), Bytes(bytes)));
        }
        is_wanted
    };
    let walking = walk_heap(client, process.runtime.as_ref(), with_graph, arguments.timeout, progress);
    tokio::pin!(walking);
    let walk = tokio::select! {
        walk = &mut walking => walk,
        () = interrupts.next() => {
            is_wanted.store(false, Ordering::Relaxed);
            print::rewrite_line("");
            print::message("stopping the heap walk; press Ctrl-C again to exit without waiting for the runtime");
            tokio::select! {
                walk = &mut walking => walk,
                () = interrupts.next() => return Err(interrupted("the heap walk was canceled")),
            }
        }
    };
    print::rewrite_line("");
    walk.map_err(|error| match error {
        HeapError::Start(error) => start_error(error),
        HeapError::Config(error) => Failure::usage(error),
        error @ HeapError::Canceled => Failure::new(Exit::Interrupted, error),
        error => anyhow::anyhow!("{}: {error}", display_name(process)).into(),
    })
}

/// Shows the contents of a file.
fn show(path: &Path, arguments: &args::Heap) -> Result<Exit, Failure> {
    if arguments.gcdump || arguments.graph_file.is_some() {
        return Err(Failure::usage("--output and --gcdump write the heap of a process; FILE is already a heap file"));
    }
    when::check_no_process(&arguments.when)?;
    let dump = read(path)?;
    let retention = if arguments.retained || arguments.paths.is_some() { dump.retention() } else { None };
    report(&dump.heap, retention.as_ref(), None, arguments)
}

/// Reads a `.gcdump` file.
pub(super) fn read(path: &Path) -> Result<HeapDump, Failure> {
    read_heap(path).map_err(|why| Failure::failed(anyhow::anyhow!(why)))
}

fn output_error(error: OutputError) -> Failure {
    Failure::new(Exit::of_error(error.is_denied()), error)
}

/// Asks for confirmation on the terminal.
fn confirm(process: &Process) -> anyhow::Result<bool> {
    let (name, bytes) = (display_name(process), process.usage.rss_bytes);
    let size = if bytes > 0 { format!("{name} uses {} of memory. ", Bytes(bytes)) } else { format!("{name}: ") };
    print::rewrite_line(format_args!("{size}Walking its heap forces a full GC, which pauses it. Continue? [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn report(heap: &HeapSnapshot, retention: Option<&Retention>, file: Option<SafeText>, arguments: &args::Heap) -> Result<Exit, Failure> {
    let document = Document { file, ..document(heap, retention, arguments.retained, arguments.paths.as_deref(), arguments.count) };
    print::document(arguments.output.json, &document, write_text)?;
    for problem in &document.problems {
        print::message(problem);
    }
    if let Some(file) = &document.file {
        print::message(format_args!("object graph: {file}"));
    }
    if retention.is_none() && (arguments.retained || arguments.paths.is_some()) {
        let why = if heap.has_all_references() { "there are too many objects" } else { "parts of the heap walk are missing" };
        print::message(format_args!("no retained sizes and paths: {why}"));
    } else if let Some(wanted) = arguments.paths.as_ref().filter(|_| document.paths.as_ref().is_none_or(Vec::is_empty)) {
        print::message(format_args!("{} is named {}", no_type(heap), SafeText::new(wanted)));
    }
    if !document.complete {
        print::message("the heap walk was interrupted: the figures are incomplete");
    }
    Ok(if document.complete { Exit::Done } else { Exit::Failed })
}

/// Returns the subject of a message that no type was found: a heap can have more types than are searched.
fn no_type(heap: &HeapSnapshot) -> String {
    let (others, ..) = heap.others;
    if others == 0 { "no type".to_owned() } else { format!("none of the {} largest types", heap.types.len()) }
}

fn document(heap: &HeapSnapshot, retention: Option<&Retention>, retained: bool, paths: Option<&str>, count: usize) -> Document {
    let of = |at: usize| retention.and_then(|retention| retention.types.get(at)?.as_ref());
    let mut all: Vec<_> = heap.types.iter().enumerate().map(|(at, named)| (named, of(at))).collect();
    if retained {
        all.compact_sort_by_key(|(_, of)| std::cmp::Reverse(of.map(|of| of.bytes)));
    }
    let (shown, more) = all.split_at(count.min(all.len()));
    let (types, objects, bytes) = heap.others;
    let paths = paths.zip(retention).map(|(wanted, _)| {
        let is_wanted = |name: &str| name == wanted || name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(['.', '+']));
        let wanted = all.iter().filter(|(named, _)| is_wanted(&named.name));
        wanted.filter_map(|(named, of)| Some(paths_of(named, of.as_ref()?))).collect()
    });
    let pending = PendingAsync::of(&heap.types);
    Document {
        pending_text: pending.describe().map(|text| SafeText::new(&text)),
        pending_async: pending.methods.iter().map(|(name, calls)| PendingMethod { name: SafeText::new(name), calls: *calls }).collect(),
        semaphore_waits: pending.semaphore_waits,
        objects: heap.objects,
        bytes: heap.bytes,
        references: heap.references,
        complete: heap.is_finished,
        problems: heap.problems.iter().map(ToString::to_string).collect(),
        types: shown.iter().map(|(named, of)| type_of(named, of.filter(|_| retained))).collect(),
        others: Others {
            types: types + more.len() as u64,
            objects: objects + more.iter().map(|(named, _)| named.objects).sum::<u64>(),
            bytes: bytes + more.iter().map(|(named, _)| named.bytes).sum::<u64>(),
        },
        unreached: retention.map(|retention| retention.unreached),
        paths,
        file: None,
    }
}

fn type_of(named: &HeapType, of: Option<&RetainedType>) -> Type {
    let HeapType { name, module, objects, bytes } = named;
    Type {
        name: SafeText::new(name),
        module: SafeText::new(module),
        objects: *objects,
        bytes: *bytes,
        retained_bytes: of.map(|of| of.bytes),
    }
}

fn paths_of(named: &HeapType, of: &RetainedType) -> PathsOf {
    let step = |step: &PathStep| match step {
        PathStep::Objects { name, count } => Step { name: Some(SafeText::new(name)), objects: *count },
        PathStep::Omitted(count) => Step { name: None, objects: *count },
    };
    let path = |path: &analysis::RootPath| RootPath { root: SafeText::new(&path.root), steps: path.steps.iter().map(step).collect() };
    PathsOf { name: SafeText::new(&named.name), module: SafeText::new(&named.module), paths: of.paths.iter().map(path).collect() }
}

fn write_text(out: &mut dyn Write, document: &Document) -> std::io::Result<()> {
    let Document { objects, bytes, references, pending_text, types, others, paths, .. } = document;
    let has_retained = types.iter().any(|named| named.retained_bytes.is_some());
    let column = |retained: Option<u64>| match retained {
        Some(bytes) => format!("{bytes:>12} "),
        None if has_retained => format!("{:>12} ", ""),
        None => String::new(),
    };
    let (all, references) = (Counted(*objects, "object"), Counted(*references, "reference"));
    writeln!(out, "{all:#}, {} ({bytes} bytes), {references:#}", Bytes(*bytes))?;
    if let Some(pending) = pending_text {
        writeln!(out, "{pending}")?;
    }
    writeln!(out)?;
    let title = if has_retained { format!("{:>12} ", "RETAINED") } else { String::new() };
    writeln!(out, "{title}{:>12} {:>10}  TYPE", "BYTES", "OBJECTS")?;
    for Type { name, module, objects, bytes, retained_bytes } in types {
        let module = print::module_suffix(name, module);
        writeln!(out, "{}{bytes:>12} {objects:>10}  {}{module}", column(*retained_bytes), type_title(name))?;
    }
    if others.types > 0 {
        let more = Counted(others.types, "other type");
        writeln!(out, "{}{:>12} {:>10}  in {more:#}", column(None), others.bytes, others.objects)?;
    }
    for PathsOf { name, paths, .. } in paths.iter().flatten() {
        writeln!(out, "\nPaths from roots to {}", type_title(name))?;
        for RootPath { root, steps } in paths {
            writeln!(out, "  {root}")?;
            for Step { name, objects } in steps {
                match (name, objects) {
                    (Some(name), 1) => writeln!(out, "    -> {}", type_title(name))?,
                    (Some(name), _) => writeln!(out, "    -> {} ({objects} in a row)", type_title(name))?,
                    (None, _) => writeln!(out, "    -> ... {objects} objects")?,
                }
            }
        }
        if paths.is_empty() {
            writeln!(out, "  no known root leads to any of them")?;
        }
    }
    Ok(())
}

pub(super) fn type_title(name: &str) -> &str {
    if name.is_empty() { "(unknown type)" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::HeapProblem;

    #[test]
    fn types_beyond_the_limit_are_counted() {
        let named = |name: &str, objects, bytes| HeapType { name: name.into(), module: String::new(), objects, bytes };
        let heap = HeapSnapshot {
            objects: 16,
            bytes: 160,
            references: 3,
            types: vec![named("A\u{1b}[2J", 5, 100), named("B", 4, 40), named("", 3, 15)],
            others: (2, 4, 5),
            is_finished: true,
            problems: vec![HeapProblem::ReferenceCountMismatch { expected: 4, reported: 3 }],
        };
        let document = document(&heap, None, false, None, 1);
        assert_eq!((document.others.types, document.others.objects, document.others.bytes), (4, 11, 60));
        assert_eq!(document.types[0].name, "A\u{fffd}[2J");
        assert_eq!(document.problems, ["the figures do not add up: objects hold 4 references, and 3 were reported"]);
        assert_eq!(super::document(&heap, None, false, None, 99).types.len(), 3);
    }
}
