//! `heap TARGET`: what is on the heap, by type.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::sleep;

use super::args;
use super::exit::{Exit, Failure};
use super::gcdump::GraphFile;
use super::host::Host;
use super::print;
use super::target::{called, connect_managed, not_started};
use crate::analysis::{HeapProblem, HeapSnapshot, HeapType, Live};
use crate::clr::RUNTIME;
use crate::export::HeapGraph;
use crate::ipc::{BufferMb, BufferMode, Invalid, Level, Provider, Rundown, SessionConfig};
use crate::model::{Bytes, Count, NativeAotGap, Process, sanitise};
use crate::net::client::Client;
use crate::session::{Listener, StopLimit, Unfinished, default_file};

/// Collect now, tell of every object and reference, and of their types: GC, GCHeapCollect, GCHeapDump, GCHeapAndTypeNames, Type.
const WALK: u64 = 0x198_0001;
/// A keyword that has no event of the level "critical": a session that nothing comes of.
const LOADER: u64 = 8;
/// The walk is told faster than it can be sent. As much as dotnet-gcdump allows; it is taken only as far as it is needed.
const BUFFER_MB: u32 = 1024;
/// How long all of it may take: a heap of 100 million objects takes minutes.
const LONGEST: Duration = Duration::from_secs(1800);
const STOP: StopLimit = StopLimit { time: Duration::from_secs(60), ..StopLimit::NO_RUNDOWN };
/// Nothing is to come of a session that asks for nothing.
const NOTHING: u64 = 16 << 20;
/// A heap whose process is not to be seen may have so many bytes.
const UNKNOWN: u64 = 1 << 30;
const POLL: Duration = Duration::from_millis(100);

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
    let file = arguments.graph_file.clone().or_else(default_file).as_deref().map(GraphFile::create).transpose()?;
    forget_types(&client).await?;
    // What is on a heap was in memory: a runtime that tells of more lies. An object takes 24 bytes at least, 32 of the walk and 20 of the graph; a
    // reference takes 8, 12 of the walk and 8 of the graph.
    let memory = client.peak_memory().unwrap_or(UNKNOWN);
    let (most, room) = (memory.saturating_mul(4).saturating_add(64 << 20), memory.saturating_mul(2).saturating_add(16 << 20));
    let config = session(process.runtime.as_ref().map_or(0, |version| version.major())).map_err(Failure::usage)?;
    let sink = (Live::default(), HeapGraph::new(if file.is_some() { room } else { 0 }));
    let mut listener = Listener::start(client, &config, sink, most).await.map_err(not_started)?;
    let heap = walk(&listener, arguments.timeout).await;
    let ended = listener.stop(STOP).await;
    let (live, graph) = listener.take();
    // Figures of what was lost may have come last.
    let Some(heap) = live.heap().or(heap) else {
        return Err(match ended {
            Err(why @ Unfinished::Cut(_)) => anyhow::anyhow!("{}: no object was reported: {why}", called(&process)),
            _ => anyhow::anyhow!("{}: no object was reported within {} s", called(&process), arguments.timeout.as_secs()),
        }
        .into());
    };
    if let Err(why @ (Unfinished::Cut(_) | Unfinished::NotStopped(_))) = &ended {
        print::say(format_args!("{}: {why}", called(&process)));
    }
    let written = file.map_or(Ok(None), |file| file.write(graph, &heap, &process));
    let (path, trouble) = match written {
        Ok(path) => (path.map(|path| sanitise(&path.to_string_lossy())), None),
        Err(failure) => (None, Some(failure)),
    };
    let exit = report(&heap, path, arguments)?;
    trouble.map_or(Ok(exit), Err)
}

/// The session of a walk. Its rundown says which modules the types are of: those alone where the runtime can choose.
fn session(major: u32) -> Result<SessionConfig, Invalid> {
    let mut config = SessionConfig::new(Provider::new(RUNTIME, WALK, Level::Verbose)?.into());
    config.rundown = if major >= 9 { Rundown::Preferred(LOADER) } else { Rundown::Default };
    config.buffer = BufferMb::new(BUFFER_MB)?;
    if major >= 11 {
        // The program stands still anyway, and nothing is lost.
        config.mode = BufferMode::Block;
    }
    Ok(config)
}

/// Asks the person.
fn is_allowed(process: &Process) -> anyhow::Result<bool> {
    let (name, size) = (called(process), Bytes(process.usage.rss_bytes));
    let question = format!("{name} uses {size} of memory. Walking its heap forces a full GC, which pauses it. Continue? [y/N] ");
    print::rewrite_line(sanitise(&question));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A runtime tells the name of a type once, and forgets that it did when a session asks its provider for something else. dotnet-gcdump has a session
/// of the sampler do that, which 3.1 does not forget anything for (seen on 3.1 and 9).
async fn forget_types(client: &Client) -> Result<(), Failure> {
    let provider = Provider::new(RUNTIME, LOADER, Level::Critical).map_err(Failure::usage)?;
    let mut config = SessionConfig::new(provider.into());
    config.rundown = Rundown::None;
    let mut listener = Listener::start(client.clone(), &config, Live::only_symbols(), NOTHING).await.map_err(not_started)?;
    // What is wrong with it is wrong with the walk, too, which says so.
    let _ = listener.stop(STOP).await;
    Ok(())
}

/// Waits until the walk is over, or nothing comes any more.
async fn walk(listener: &Listener<(Live, HeapGraph)>, silence: Duration) -> Option<HeapSnapshot> {
    let line = std::io::stderr().is_terminal();
    let began = Instant::now();
    let (mut heard, mut at) = (None, began);
    let heap = loop {
        sleep(POLL).await;
        let (over, progress) = (listener.is_over(), listener.look(|(live, _)| live.heap_progress()));
        if progress != heard && !over && began.elapsed() < LONGEST {
            (heard, at) = (progress, Instant::now());
            if let (true, Some((objects, bytes))) = (line, progress) {
                print::rewrite_line(format_args!("{} objects, {}", Count(objects), Bytes(bytes)));
            }
            continue;
        }
        // Whether it is finished is asked only while it is quiet: the answer takes all types.
        let heap = progress.and_then(|_| listener.look(|(live, _)| live.heap()));
        if over || at.elapsed() > silence || heap.as_ref().is_some_and(|heap| heap.is_finished) {
            break heap;
        }
    };
    if line {
        print::rewrite_line("");
    }
    heap
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
    use crate::ipc::CommandCode;

    #[test]
    fn nothing_is_lost_where_the_runtime_can_wait() {
        let session = |major| {
            let config = session(major).unwrap();
            (config.command().code(), config.mode, config.rundown.keyword())
        };
        assert_eq!(session(3), (CommandCode::CollectTracing2, BufferMode::Drop, Rundown::DEFAULT_KEYWORD));
        assert_eq!(session(9), (CommandCode::CollectTracing4, BufferMode::Drop, LOADER));
        assert_eq!(session(11), (CommandCode::CollectTracing6, BufferMode::Block, LOADER));
    }

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
