//! `heap TARGET` and `heap FILE`: the objects on the heap, by type.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::awaited::port_path;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::{self, interrupted, interruptible};
use super::print::{self, Value, json};
use super::target::{connect_managed, display_name, start_error};
use super::{args, when};
use crate::analysis::{HeapSnapshot, HeapType, PathStep, PendingAsync, RetainedType, Retention, RootPath};
use crate::export::HeapDump;
use crate::model::{Bytes, Counted, NativeAotGap, Process, SafeText, check_heap_file};
use crate::net::client::Client;
use crate::net::interrupts::Interrupts;
use crate::session::{HeapError, HeapFile, HeapFileError, HeapWalk, OutputError, Unfinished, default_file, read_heap, walk_heap};
use crate::sorting::CompactSort;

/// Default time without data after which a heap walk ends.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is shown of a heap.
struct Shown<'a> {
    heap: &'a HeapSnapshot,
    pending: PendingAsync,
    types: Vec<(&'a HeapType, Option<&'a RetainedType>)>,
    /// Number of types that are not listed, of their objects, and of their bytes.
    others: (u64, u64, u64),
    /// Number of objects that are not reachable from any known root, if paths or retained sizes were requested.
    unreached: Option<u64>,
    /// The requested types whose paths are known.
    paths: Option<Vec<(&'a HeapType, &'a RetainedType)>>,
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
    let walking = walk_heap(client, process.runtime.as_ref(), with_graph, arguments.timeout.unwrap_or(TIMEOUT), progress);
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
    if arguments.timeout.is_some() || arguments.yes {
        return Err(Failure::usage("--timeout and --yes are for the heap walk of a process; this is a file"));
    }
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
    let shown = shown(heap, retention, arguments.retained, arguments.paths.as_deref(), arguments.count);
    print::result(arguments.output.json, || document(&shown, file.as_ref()), |out| write_text(out, &shown))?;
    heap.problems.iter().for_each(print::message);
    if let Some(file) = &file {
        print::message(format_args!("object graph: {file}"));
    }
    if retention.is_none() && (arguments.retained || arguments.paths.is_some()) {
        let why = if heap.has_all_references() { "there are too many objects" } else { "parts of the heap walk are missing" };
        print::message(format_args!("no retained sizes and paths: {why}"));
    } else if let Some(wanted) = arguments.paths.as_ref().filter(|_| shown.paths.as_ref().is_none_or(Vec::is_empty)) {
        print::message(format_args!("{} is named {}", no_type(heap), SafeText::new(wanted)));
    }
    if !heap.is_finished {
        print::message("the heap walk was interrupted: the figures are incomplete");
    }
    Ok(if heap.is_finished { Exit::Done } else { Exit::Failed })
}

/// Returns the subject of a message that no type was found: a heap can have more types than are searched.
fn no_type(heap: &HeapSnapshot) -> String {
    let (others, ..) = heap.others;
    if others == 0 { "no type".to_owned() } else { format!("none of the {} largest types", heap.types.len()) }
}

fn shown<'a>(heap: &'a HeapSnapshot, retention: Option<&'a Retention>, retained: bool, paths: Option<&str>, count: usize) -> Shown<'a> {
    let of = |at: usize| retention.and_then(|retention| retention.types.get(at)?.as_ref());
    let mut all: Vec<_> = heap.types.iter().enumerate().map(|(at, named)| (named, of(at))).collect();
    if retained {
        all.compact_sort_by_key(|(_, of)| std::cmp::Reverse(of.map(|of| of.bytes)));
    }
    let paths = paths.zip(retention).map(|(wanted, _)| {
        let is_wanted = |name: &str| name == wanted || name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(['.', '+']));
        let wanted = all.iter().filter(|(named, _)| is_wanted(&named.name));
        wanted.filter_map(|(named, of)| Some((*named, (*of)?))).collect()
    });
    let (listed, more) = all.split_at(count.min(all.len()));
    let add = |(types, objects, bytes), (named, _): &(&HeapType, _)| (types + 1, objects + named.objects, bytes + named.bytes);
    Shown {
        heap,
        pending: PendingAsync::of(&heap.types),
        types: listed.iter().map(|(named, of)| (*named, of.filter(|_| retained))).collect(),
        others: more.iter().fold(heap.others, add),
        unreached: retention.map(|retention| retention.unreached),
        paths,
    }
}

fn document(shown: &Shown<'_>, file: Option<&SafeText>) -> Value {
    let Shown { heap, pending, types, others: (other_types, other_objects, other_bytes), unreached, paths } = shown;
    let method = |(name, calls): &(String, u64)| json!({ "name": SafeText::new(name), "calls": calls });
    let type_of = |(HeapType { name, module, objects, bytes }, of): &(&HeapType, Option<&RetainedType>)| {
        let mut document = json!({ "name": SafeText::new(name), "module": SafeText::new(module), "objects": objects, "bytes": bytes });
        // Lower bound of the bytes that would be freed with these objects.
        of.iter().for_each(|of| document["retained_bytes"] = of.bytes.into());
        document
    };
    // Consecutive objects of one type on a path; objects that were left out have no type.
    let step = |step: &PathStep| match step {
        PathStep::Objects { name, count } => json!({ "name": SafeText::new(name), "objects": count }),
        PathStep::Omitted(count) => json!({ "name": null, "objects": count }),
    };
    // The objects of the type at the ends of the paths that lead from such roots through the same types.
    let path = |RootPath { root, steps, objects, bytes }: &RootPath| {
        let steps: Value = steps.iter().map(step).collect();
        json!({ "root": SafeText::new(root), "objects": objects, "bytes": bytes, "steps": steps })
    };
    // The shortest different paths from roots to objects of a type.
    let paths_of = |(HeapType { name, module, .. }, of): &(&HeapType, &RetainedType)| {
        let paths: Value = of.paths.iter().map(path).collect();
        json!({ "name": SafeText::new(name), "module": SafeText::new(module), "paths": paths })
    };
    let mut document = json!({
        "objects": heap.objects,
        "bytes": heap.bytes,
        "references": heap.references,
        // Whether the heap walk finished.
        "complete": heap.is_finished,
        // Reasons why the figures may be wrong; empty if everything adds up.
        "problems": heap.problems.iter().map(ToString::to_string).collect::<Value>(),
        // Async methods that have not completed, with the number of their calls, descending.
        "pending_async": pending.methods.iter().map(method).collect::<Value>(),
        // Number of waits for a `SemaphoreSlim`.
        "semaphore_waits": pending.semaphore_waits,
        "types": types.iter().map(type_of).collect::<Value>(),
        // Totals of the types that are not listed.
        "others": json!({ "types": other_types, "objects": other_objects, "bytes": other_bytes }),
    });
    unreached.iter().for_each(|unreached| document["unreached"] = (*unreached).into());
    paths.iter().for_each(|paths| document["paths"] = paths.iter().map(paths_of).collect());
    // The file with the object graph, if one was requested.
    document["file"] = json!(file);
    document
}

fn write_text(out: &mut dyn Write, shown: &Shown<'_>) -> std::io::Result<()> {
    let Shown { heap, pending, types, others: (other_types, other_objects, other_bytes), paths, .. } = shown;
    let has_retained = types.iter().any(|(_, of)| of.is_some());
    let column = |of: Option<&RetainedType>| match of {
        Some(of) => format!("{:>12} ", of.bytes),
        None if has_retained => format!("{:>12} ", ""),
        None => String::new(),
    };
    let (all, references) = (Counted(heap.objects, "object"), Counted(heap.references, "reference"));
    writeln!(out, "{all:#}, {} ({} bytes), {references:#}", Bytes(heap.bytes), heap.bytes)?;
    if let Some(pending) = pending.describe() {
        writeln!(out, "{}", SafeText::new(&pending))?;
    }
    writeln!(out)?;
    let title = if has_retained { format!("{:>12} ", "RETAINED") } else { String::new() };
    writeln!(out, "{title}{:>12} {:>10}  TYPE", "BYTES", "OBJECTS")?;
    for (HeapType { name, module, objects, bytes }, of) in types {
        let (name, module) = (SafeText::new(name), SafeText::new(module));
        let module = print::module_suffix(&name, &module);
        writeln!(out, "{}{bytes:>12} {objects:>10}  {}{module}", column(*of), type_title(&name))?;
    }
    if *other_types > 0 {
        let more = Counted(*other_types, "other type");
        writeln!(out, "{}{other_bytes:>12} {other_objects:>10}  in {more:#}", column(None))?;
    }
    for (HeapType { name, .. }, RetainedType { paths, .. }) in paths.iter().flatten() {
        writeln!(out, "\nPaths from roots to {}", type_title(&SafeText::new(name)))?;
        for RootPath { root, steps, objects, bytes } in paths {
            writeln!(out, "  {}: {} in {:#}", SafeText::new(root), Bytes(*bytes), Counted(*objects, "object"))?;
            for step in steps {
                match step {
                    PathStep::Objects { name, count: 1 } => writeln!(out, "    -> {}", type_title(&SafeText::new(name)))?,
                    PathStep::Objects { name, count } => writeln!(out, "    -> {} ({count} in a row)", type_title(&SafeText::new(name)))?,
                    PathStep::Omitted(count) => writeln!(out, "    -> ... {count} objects")?,
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
    fn types_are_found_by_the_end_of_their_name() {
        let names = ["Shop.Order", "Shop.BadOrder", "Shop.Cart+Order"];
        let named = |name: &str| HeapType { name: name.into(), module: String::new(), objects: 1, bytes: 10 };
        let types = names.map(named).to_vec();
        let heap = HeapSnapshot { objects: 3, bytes: 30, references: 0, types, others: (0, 0, 0), is_finished: true, problems: Vec::new() };
        let of = [10, 500, 30].map(|bytes| Some(RetainedType { bytes, paths: Vec::new() })).to_vec();
        let retention = Retention { types: of, unreached: 0 };
        let found = shown(&heap, Some(&retention), false, Some("Order"), 9);
        let named: Vec<_> = found.paths.unwrap().iter().map(|(named, _)| named.name.as_str()).collect();
        assert_eq!((named, found.types[0].1), (vec![names[0], names[2]], None));
        // With retained sizes, the types are sorted by them.
        let found = shown(&heap, Some(&retention), true, None, 9);
        let sizes: Vec<_> = found.types.iter().map(|(_, of)| of.map(|of| of.bytes)).collect();
        assert_eq!((sizes, found.paths.is_none()), (vec![Some(500), Some(30), Some(10)], true));
    }

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
        let document = document(&shown(&heap, None, false, None, 1), None);
        assert_eq!(document["others"], json!({ "types": 4, "objects": 11, "bytes": 60 }));
        assert_eq!(document["types"][0]["name"], "A\u{fffd}[2J");
        assert_eq!(document["problems"], json!(["the figures do not add up: objects hold 4 references, and 3 were reported"]));
        assert_eq!(shown(&heap, None, false, None, 99).types.len(), 3);
    }
}
