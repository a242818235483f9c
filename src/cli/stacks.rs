//! `stacks TARGET`: what every thread is doing at one moment.

use std::io::Write;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use serde::Serialize;
use tokio::time::sleep;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{called, connect_managed, not_started};
use crate::analysis::{Live, SampleFilter, StackGroup};
use crate::clr::{EventKind, select};
use crate::ipc::Rundown;
use crate::model::{NativeAotGap, Process, sanitise};
use crate::nettrace::{Event, Metadata, Sink, ThreadId, forward_sink};
use crate::session::{Listener, StopLimit, Unfinished};

/// Names of methods and modules are all that is needed of a rundown.
const NAMES: u64 = 0x38;
/// How long the first look at all threads may take to come; runtimes send what they have every tenth of a second.
const LOOK: Duration = Duration::from_secs(5);
/// More bytes are not needed to see every thread once.
const LOOK_BYTES: u64 = 64 << 20;
/// More threads are not looked at. The kernel allows a process some 10,000 unless it is told otherwise.
const MOST_THREADS: usize = 1 << 16;
const POLL: Duration = Duration::from_millis(20);

#[derive(Serialize)]
struct Document {
    pid: u32,
    name: String,
    threads: usize,
    /// Whether all names came.
    complete: bool,
    stacks: Vec<Stack>,
}

/// Threads with the same stack.
#[derive(Serialize)]
struct Stack {
    threads: Vec<ThreadName>,
    /// How many of them wait, as far as is known.
    waiting: u64,
    /// Leaf first.
    frames: Vec<String>,
}

#[derive(Serialize)]
struct ThreadName {
    /// As the process numbers it.
    id: u64,
    name: Option<String>,
}

pub(super) async fn run(host: &Host, target: &str, json: bool) -> Result<Exit, Failure> {
    let (process, client) = connect_managed(host, target, NativeAotGap::Samples).await?;
    let mut config = select(&["dotnet-sampled-thread-time"], &[] as &[&str], None).map_err(Failure::usage)?.config;
    config.rundown = Rundown::AtLeast(NAMES);
    let mut listener = Listener::start(client.clone(), &config, FirstLook::default(), LOOK_BYTES).await.map_err(not_started)?;
    let began = Instant::now();
    while !listener.look(|look| look.is_over) && !listener.is_over() && began.elapsed() < LOOK {
        sleep(POLL).await;
    }
    // Threads may end as soon as they have been looked at.
    let names = client.thread_names();
    let ended = listener.stop(StopLimit::RUNDOWN).await;
    let groups = listener.look(|look| look.live.stacks(SampleFilter::ALL, usize::MAX));
    let document = document(&process, ended.is_ok(), groups, &names);
    if document.threads == 0 {
        return Err(match &ended {
            Err(why @ Unfinished::Cut(_)) => anyhow::anyhow!("{}: no thread was sampled: {why}", called(&process)),
            _ => anyhow::anyhow!("{}: no thread was sampled within {} s", called(&process), LOOK.as_secs()),
        }
        .into());
    }
    if json {
        print::json(&document)?;
    } else {
        print::text(|out| write_text(out, &document))?;
    }
    if let Err(why) = &ended {
        print::say(format_args!("some method names may be missing and are shown as addresses: {why}"));
    }
    // One that ends is no failure.
    Ok(if matches!(ended, Ok(()) | Err(Unfinished::Closed)) { Exit::Done } else { Exit::Failed })
}

fn document(process: &Process, complete: bool, groups: Vec<StackGroup>, names: &HashMap<u64, String>) -> Document {
    let thread = |(id, _): (ThreadId, u64)| ThreadName { id: id.thread, name: id.in_process().and_then(|id| names.get(&id).cloned()) };
    let stack = |group: StackGroup| Stack {
        waiting: group.samples.waiting,
        frames: group.frames.iter().map(|frame| sanitise(frame)).collect(),
        threads: group.threads.into_iter().map(thread).collect(),
    };
    let stacks: Vec<_> = groups.into_iter().map(stack).collect();
    Document {
        pid: process.key.pid,
        name: process.name.clone(),
        threads: stacks.iter().map(|stack| stack.threads.len()).sum(),
        complete,
        stacks,
    }
}

fn write_text(out: &mut dyn Write, document: &Document) -> std::io::Result<()> {
    let Document { pid, name, threads, stacks, .. } = document;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    writeln!(
        out,
        "{name} ({pid}): {threads} thread{}, {} stack{}. Waiting threads are included.",
        plural(*threads),
        stacks.len(),
        plural(stacks.len())
    )?;
    for Stack { threads, waiting, frames } in stacks {
        let state = match *waiting as usize {
            0 => String::new(),
            count if count == threads.len() => ", waiting".to_owned(),
            count => format!(", {count} waiting"),
        };
        let thread = |thread: &ThreadName| match &thread.name {
            Some(name) => format!("{} {name}", thread.id),
            None => thread.id.to_string(),
        };
        let who: Vec<_> = threads.iter().map(thread).collect();
        writeln!(out, "\n{} thread{}{state}: {}", threads.len(), plural(threads.len()), who.join(", "))?;
        if frames.is_empty() {
            writeln!(out, "    (no managed code)")?;
        }
        frames.iter().try_for_each(|frame| writeln!(out, "    {frame}"))?;
    }
    Ok(())
}

/// Lets through what the sampler saw when it first looked at all threads, which it stops for that: one moment. It is over when a thread comes again.
#[derive(Debug, Default)]
struct FirstLook {
    live: Live,
    /// By metadata index; the first is never used.
    is_sample: Vec<bool>,
    seen: HashSet<ThreadId>,
    is_over: bool,
}

impl Sink for FirstLook {
    forward_sink!(self => [self.live]: trace wants_order event stacks thread loss ordered_loss sequence_point problem);

    fn metadata(&mut self, metadata: &Metadata) {
        let index = metadata.index as usize;
        self.is_sample.resize(self.is_sample.len().max(index + 1), false);
        self.is_sample[index] = EventKind::of(metadata) == EventKind::ThreadSample;
        self.live.metadata(metadata);
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        if self.is_sample.get(event.metadata.index as usize) == Some(&true) {
            self.is_over |= self.seen.len() >= MOST_THREADS || !self.seen.insert(event.thread());
            if self.is_over {
                return;
            }
        }
        self.live.ordered_event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, Limits, NewEvent, TraceHeader};

    #[test]
    fn every_thread_is_looked_at_once() {
        let header = TraceHeader { process_id: 7, ..TraceHeader::default() };
        let mut encoder = Encoder::new(header);
        let sample = Metadata { provider: "Microsoft-DotNETCore-SampleProfiler".into(), ..Metadata::default() };
        let sample = encoder.metadata(&sample);
        // Threads 1 and 3 have the same stack; 1 has another when it is looked at again, and 4 comes too late.
        for (at, thread, frame) in [(0, 1, 0x10), (1, 2, 0x20), (2, 3, 0x10), (3, 1, 0x30), (4, 4, 0x10)] {
            let stack = encoder.stack(&[frame]);
            encoder.event(&NewEvent {
                metadata: sample,
                timestamp: at,
                thread,
                capture_thread: 9,
                stack,
                payload: &[2, 0, 0, 0],
                ..NewEvent::default()
            });
        }
        encoder.end();
        let mut look = FirstLook::default();
        let mut decoder = Decoder::new(Limits::default());
        decoder.feed(&encoder.take(), &mut look).unwrap();
        assert!(decoder.finish(&mut look).is_complete());
        assert!(look.is_over);
        let groups = look.live.stacks(SampleFilter::ALL, usize::MAX);
        let names = HashMap::from_iter([(3, "Worker".to_owned())]);
        let process = Process::new(crate::model::ProcessKey { pid: 7, started: 1 });
        let document = document(&process, true, groups, &names);
        let mut text = Vec::new();
        write_text(&mut text, &document).unwrap();
        let expected =
            " (7): 3 threads, 2 stacks. Waiting threads are included.\n\n2 threads: 1, 3 Worker\n    0x10\n\n1 thread: 2\n    0x20\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
