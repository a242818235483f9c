//! Stacks of all threads of a process at one moment.

use std::cmp::Reverse;
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::blocking::read_process;
use super::listener::Listener;
use super::names::NAME_KEYWORDS;
use super::{StartError, StopLimit, Unfinished};
use crate::analysis::{Live, Profile, SampleFilter, StackGroup, WaitReason};
use crate::clr::{EventKind, SelectError, select};
use crate::ipc::Rundown;
use crate::model::SafeText;
use crate::net::client::Client;
use crate::nettrace::{ByMetadata, Event, Metadata, Sink, ThreadId, forward_sink};
use crate::sorting::CompactSort;

/// Time limit for the first sample of all threads; runtimes send buffered events every tenth of a second.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Stream limit, more than enough to see every thread once.
const MAX_STREAM_BYTES: u64 = 64 << 20;
/// Maximum number of threads.
const MAX_THREADS: usize = 1 << 14;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The stacks of all threads.
#[derive(Debug)]
pub struct ThreadStacks {
    /// Threads with the same stack and, if it does not show what they wait for, the same wait in the kernel. Most threads first; idle threads are
    /// last. The samples of a group are those of all threads with its stack.
    pub groups: Vec<StackGroup>,
    /// Thread names by thread id.
    pub names: HashMap<u64, SafeText>,
    /// What threads wait for in the kernel, by thread id: those for which it was the same before and after.
    pub waits: HashMap<u64, &'static str>,
    /// Whether all method names were received.
    pub ended: Result<(), Unfinished>,
}

/// Why no stacks are available.
#[derive(Debug, Error)]
pub enum StacksError {
    /// The session could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session configuration is invalid.
    #[error(transparent)]
    Config(#[from] SelectError),
    /// The stream ended before the first sample.
    #[error("no thread was sampled: {0}")]
    Ended(Unfinished),
    /// The runtime took no sample.
    #[error("no thread was sampled within {} s", SAMPLE_TIMEOUT.as_secs())]
    NoSamples,
}

/// Samples all threads of a process once, including waiting ones.
///
/// # Errors
/// [`StacksError`].
pub async fn thread_stacks(client: &Client) -> Result<ThreadStacks, StacksError> {
    let mut config = select(&["dotnet-sampled-thread-time"], &[""; 0], None)?.config;
    config.rundown = Rundown::AtLeast(NAME_KEYWORDS);
    // The runtime suspends threads to sample them, which also is a wait in the kernel.
    let waits_before = waits(client).await;
    let mut listener = Listener::start(client.clone(), &config, FirstPass::default(), MAX_STREAM_BYTES).await?;
    let began = Instant::now();
    while !listener.with_sink(|pass| pass.is_over) && !listener.is_over() && began.elapsed() < SAMPLE_TIMEOUT {
        sleep(POLL_INTERVAL).await;
    }
    // Read now, as threads may exit at any time.
    let names = read_process(client, Client::thread_names).await.unwrap_or_default();
    let over = listener.is_over();
    let ended = listener.stop(StopLimit::RUNDOWN).await;
    let mut waits = waits(client).await;
    waits.retain(|thread, wait| waits_before.get(thread) == Some(wait));
    let groups = by_wait(listener.with_sink(|pass| FirstPass::stacks(pass)), &waits);
    match ended {
        ended if groups.iter().any(|group| !group.threads.is_empty()) => Ok(ThreadStacks { groups, names, waits, ended }),
        Err(why) => Err(StacksError::Ended(why)),
        Ok(()) if over => Err(StacksError::Ended(Unfinished::Closed)),
        Ok(()) => Err(StacksError::NoSamples),
    }
}

/// Returns what threads wait for in the kernel.
async fn waits(client: &Client) -> HashMap<u64, &'static str> {
    read_process(client, Client::thread_waits).await.unwrap_or_default()
}

/// Splits groups by what the threads wait for in the kernel, if their stack does not show it: the thread that holds a lock, and waits in native
/// code, may have the same stack as those that wait for the lock.
fn by_wait(groups: Vec<StackGroup>, waits: &HashMap<u64, &'static str>) -> Vec<StackGroup> {
    let split = |group: StackGroup| {
        let mut parts: Vec<(Option<&str>, StackGroup)> = Vec::new();
        let is_shown = group.wait_reason() != Some(WaitReason::Runtime);
        for thread in &group.threads {
            let wait = thread.0.in_process().and_then(|id| waits.get(&id).copied()).filter(|_| !is_shown);
            match parts.iter_mut().find(|(of, _)| *of == wait) {
                Some((_, part)) => part.threads.push(*thread),
                None => parts.push((wait, StackGroup { threads: vec![*thread], ..group.clone() })),
            }
        }
        parts.compact_sort_by_key(|(_, part)| Reverse(part.threads.len()));
        parts.into_iter().map(|(_, part)| part)
    };
    groups.into_iter().flat_map(split).collect()
}

/// Accepts the samples of the sampler's first pass, for which it suspends all threads: one moment. The pass ends when a thread is sampled again.
#[derive(Debug, Default)]
struct FirstPass {
    live: Live,
    is_sample: ByMetadata<bool>,
    seen: HashSet<ThreadId>,
    is_over: bool,
}

impl FirstPass {
    fn stacks(&self) -> Vec<StackGroup> {
        let profile = self.live.profile();
        let stacks = |profile: &Profile| profile.count(SampleFilter::ALL).stacks(usize::MAX);
        let busy: HashSet<_> = stacks(&profile.without_idle().0).into_iter().map(|group| group.frames).collect();
        let mut groups = stacks(&profile);
        // It only exists because of this session.
        groups.retain(|group| !group.enables_session());
        groups.compact_sort_by_key(|group| !busy.contains(&group.frames));
        groups
    }
}

impl Sink for FirstPass {
    forward_sink!(self => [self.live]: trace needs_order event stacks thread loss ordered_loss sequence_point problem);

    fn metadata(&mut self, metadata: &Metadata) {
        self.is_sample.push(EventKind::of(metadata) == EventKind::ThreadSample);
        self.live.metadata(metadata);
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        if self.is_sample.of(event.metadata) {
            self.is_over |= self.seen.len() >= MAX_THREADS || !self.seen.insert(event.thread());
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

    /// Of the threads with the first stack, thread 2 holds the lock that the others wait for, and reads.
    #[test]
    fn threads_that_wait_for_something_else_are_separate() {
        let group = |frames: &[&str], threads: &[u64]| StackGroup {
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            threads: threads.iter().map(|thread| (ThreadId { thread: *thread, ..ThreadId::default() }, 1)).collect(),
            ..StackGroup::default()
        };
        let (scan, sleep): (&[&str], &[&str]) = (&["App.Scan"], &["System.Threading.Thread.Sleep", "App.Rest"]);
        let waits = HashMap::from_iter([(1, "futex"), (2, "pipe"), (3, "futex"), (4, "futex"), (6, "futex")]);
        let found = by_wait(vec![group(scan, &[2, 1, 3, 4]), group(sleep, &[5, 6]), group(&[], &[])], &waits);
        assert_eq!(found, [group(scan, &[1, 3, 4]), group(scan, &[2]), group(sleep, &[5, 6])]);
    }

    #[test]
    fn every_thread_is_sampled_once() {
        let header = TraceHeader { process_id: 7, ..TraceHeader::default() };
        let mut encoder = Encoder::new(header);
        let sample = Metadata { provider: "Microsoft-DotNETCore-SampleProfiler".into(), ..Metadata::default() };
        let sample = encoder.metadata(&sample);
        // Threads 1 and 3 have the same stack; 1 has another one in the second pass, and 4 is sampled too late.
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
        let mut pass = FirstPass::default();
        let mut decoder = Decoder::new(Limits::default());
        decoder.feed(&encoder.take(), &mut pass).unwrap();
        assert!(decoder.finish(&mut pass).is_complete());
        assert!(pass.is_over);
        let stacks: Vec<_> = pass.stacks().into_iter().map(|group| (group.frames, group.threads.len())).collect();
        assert_eq!(stacks, [(vec!["0x10".to_owned()], 2), (vec!["0x20".to_owned()], 1)]);
    }
}
