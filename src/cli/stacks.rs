//! `stacks TARGET`: the current stacks of all threads.

use std::io::Write;

use foldhash::HashMap;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::target::{connect_managed, display_name, start_error};
use super::{args, print, when};
use crate::analysis::StackGroup;
use crate::diagnosis::{may_be_lock, wait_of_stack};
use crate::ipc::RuntimeVersion;
use crate::model::{Counted, NativeAotGap, Process, SafeText};
use crate::nettrace::ThreadId;
use crate::session::{StacksError, ThreadStacks, Unfinished, thread_stacks};

/// Maximum number of threads listed for a stack in text, so that its frames stay in sight.
const LISTED_THREADS: usize = 16;

#[derive(Serialize)]
struct Document {
    pid: u32,
    name: SafeText,
    threads: usize,
    /// Whether all names were received.
    complete: bool,
    stacks: Vec<Stack>,
}

/// Threads with the same stack.
#[derive(Serialize)]
struct Stack {
    threads: Vec<ThreadName>,
    /// What all of the threads wait for; null if they run or that is unknown.
    wait: Option<&'static str>,
    /// Leaf first.
    frames: Vec<SafeText>,
    /// Module of each frame; empty if unknown.
    modules: Vec<SafeText>,
}

#[derive(Serialize)]
struct ThreadName {
    /// Thread id in the pid namespace of the target.
    id: u64,
    name: Option<SafeText>,
}

pub(super) async fn run(host: &Host, arguments: &args::Stacks) -> Result<Exit, Failure> {
    let (mut process, client) = connect_managed(host, &arguments.target.target, NativeAotGap::Samples).await?;
    when::wait_running(host, &mut process, &client, &arguments.when).await?;
    let ThreadStacks { groups, names, waits, ended } = thread_stacks(&client).await.map_err(|error| match error {
        StacksError::Start(error) => start_error(error),
        error => anyhow::anyhow!("{}: {error}", display_name(&process)).into(),
    })?;
    let document = document(&process, ended.is_ok(), groups, &names, &waits);
    print::document(arguments.output.json, &document, write_text)?;
    if let Err(why) = &ended {
        print::message(format_args!("some method names may be missing and are shown as addresses: {why}"));
    }
    // A target that exits is not a failure.
    Ok(if matches!(ended, Ok(()) | Err(Unfinished::Closed)) { Exit::Done } else { Exit::Failed })
}

fn document(
    process: &Process,
    complete: bool,
    groups: Vec<StackGroup>,
    names: &HashMap<u64, SafeText>,
    waits: &HashMap<u64, &'static str>,
) -> Document {
    let runtime = process.runtime.as_ref().map(RuntimeVersion::major);
    let thread = |(id, _): (ThreadId, u64)| ThreadName { id: id.thread, name: id.in_process().and_then(|id| names.get(&id)).cloned() };
    let stack = |group: StackGroup| Stack {
        wait: wait_of_stack(&group, group.common_wait(|thread| waits.get(&thread).copied()), runtime),
        frames: group.frames.iter().map(|frame| SafeText::new(frame)).collect(),
        modules: group.modules.iter().map(|module| SafeText::new(module)).collect(),
        threads: group.threads.into_iter().map(thread).collect(),
    };
    let mut stacks: Vec<_> = groups.into_iter().map(stack).collect();
    // Threads that wait for locks may block one another.
    stacks.sort_by_key(|stack| !may_be_lock(stack.wait));
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
    let threads_of = |count: usize| Counted(count as u64, "thread");
    let different = Counted(stacks.len() as u64, "stack");
    writeln!(out, "{name} ({pid}): {:#}, {different:#}. Waiting threads are included.", threads_of(*threads))?;
    let in_locks: usize = stacks.iter().filter(|stack| may_be_lock(stack.wait)).map(|stack| stack.threads.len()).sum();
    if in_locks > 0 {
        writeln!(out, "{:#} may wait for locks, in the stacks listed first.", threads_of(in_locks))?;
    }
    for Stack { threads, wait, frames, modules } in stacks {
        let thread = |thread: &ThreadName| match &thread.name {
            Some(name) => format!("{} {name}", thread.id),
            None => thread.id.to_string(),
        };
        let names: Vec<_> = threads.iter().take(LISTED_THREADS).map(thread).collect();
        let others = threads.len() - names.len();
        let others = if others > 0 { format!(", and {others} more") } else { String::new() };
        let wait = wait.map(|wait| format!(" ({wait})")).unwrap_or_default();
        writeln!(out, "\n{:#}{wait}: {}{others}", threads_of(threads.len()), names.join(", "))?;
        if frames.is_empty() {
            writeln!(out, "    (no managed code)")?;
        }
        for (frame, module) in frames.iter().zip(modules) {
            writeln!(out, "    {frame}{}", print::module_suffix(frame, module))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::SampleCount;

    #[test]
    fn threads_with_the_same_stack_are_grouped() {
        let group = |frame: &str, threads: &[u64]| StackGroup {
            frames: vec![frame.to_owned()],
            modules: vec![if frame == "App.Run" { "App" } else { "" }.to_owned()],
            // The first sample of a thread does not show whether it is waiting.
            samples: SampleCount { waiting: 1, ..SampleCount::default() },
            threads: threads.iter().map(|thread| (ThreadId { thread: *thread, ..ThreadId::default() }, 1)).collect(),
        };
        let names = HashMap::from_iter([(3, "Worker".into())]);
        let process = Process::new(crate::model::ProcessKey { pid: 7, started: 1 });
        let waits = HashMap::from_iter([(1, "futex"), (3, "disk"), (2, "disk")]);
        let document = document(&process, true, vec![group("App.Run", &[1, 3]), group("0x20", &[2])], &names, &waits);
        let mut text = Vec::new();
        write_text(&mut text, &document).unwrap();
        let expected = " (7): 3 threads, 2 stacks. Waiting threads are included.\n\n2 threads: 1, 3 Worker\n    App.Run  [App]\n\n1 thread (disk): 2\n    0x20\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn many_threads_of_a_stack_are_counted() {
        let threads: Vec<_> = (1..=18).map(|thread| (ThreadId { thread, ..ThreadId::default() }, 1)).collect();
        let group = StackGroup { frames: Vec::new(), modules: Vec::new(), samples: SampleCount::default(), threads };
        let process = Process::new(crate::model::ProcessKey { pid: 7, started: 1 });
        let document = document(&process, true, vec![group], &HashMap::default(), &HashMap::default());
        let mut text = Vec::new();
        write_text(&mut text, &document).unwrap();
        assert!(
            String::from_utf8(text).unwrap().contains("18 threads: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, and 2 more\n")
        );
    }
}
