//! `stacks TARGET`: the current stacks of all threads.

use std::io::Write;

use foldhash::HashMap;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, Value, json};
use super::target::{connect_managed, display_name, start_error};
use super::{args, when};
use crate::analysis::StackGroup;
use crate::diagnosis::{may_be_lock, wait_of_stack};
use crate::ipc::RuntimeVersion;
use crate::model::{Counted, NativeAotGap, Process, SafeText};
use crate::nettrace::ThreadId;
use crate::session::{StacksError, ThreadStacks, Unfinished, thread_stacks};

/// Maximum number of threads listed for a stack in text, so that its frames stay in sight.
const LISTED_THREADS: usize = 16;

/// What is shown of a process.
struct Stacks<'a> {
    process: &'a Process,
    /// What all threads of a stack wait for, if they wait and that is known; those that may block one another first.
    groups: Vec<(Option<&'static str>, StackGroup)>,
    names: &'a HashMap<u64, SafeText>,
}

pub(super) async fn run(host: &Host, arguments: &args::Stacks) -> Result<Exit, Failure> {
    let (mut process, client) = connect_managed(host, &arguments.target.target, NativeAotGap::Samples).await?;
    when::wait_running(host, &mut process, &client, &arguments.when).await?;
    let ThreadStacks { groups, names, waits, ended } = thread_stacks(&client).await.map_err(|error| match error {
        StacksError::Start(error) => start_error(error),
        error => anyhow::anyhow!("{}: {error}", display_name(&process)).into(),
    })?;
    let stacks = Stacks::new(&process, groups, &names, &waits);
    print::result(arguments.output.json, || stacks.document(ended.is_ok()), |out| stacks.write_text(out))?;
    if let Err(why) = &ended {
        print::message(format_args!("some method names may be missing and are shown as addresses: {why}"));
    }
    // A target that exits is not a failure.
    Ok(if matches!(ended, Ok(()) | Err(Unfinished::Closed)) { Exit::Done } else { Exit::Failed })
}

impl<'a> Stacks<'a> {
    fn new(process: &'a Process, groups: Vec<StackGroup>, names: &'a HashMap<u64, SafeText>, waits: &HashMap<u64, &'static str>) -> Self {
        let runtime = process.runtime.as_ref().map(RuntimeVersion::major);
        let wait = |group: &StackGroup| wait_of_stack(group, group.common_wait(|thread| waits.get(&thread).copied()), runtime);
        let mut groups: Vec<_> = groups.into_iter().map(|group| (wait(&group), group)).collect();
        groups.sort_by_key(|(wait, _)| !may_be_lock(*wait));
        Self { process, groups, names }
    }

    fn threads(&self) -> usize {
        self.groups.iter().map(|(_, group)| group.threads.len()).sum()
    }

    fn name(&self, thread: ThreadId) -> Option<&SafeText> {
        thread.in_process().and_then(|id| self.names.get(&id))
    }

    /// Returns the document of the command line contract; `complete` if all names of methods were received.
    fn document(&self, complete: bool) -> Value {
        let safe = |texts: &[String]| texts.iter().map(|text| SafeText::new(text)).collect::<Vec<_>>();
        let stack = |(wait, group): &(Option<&str>, StackGroup)| {
            // The ids are those in the pid namespace of the target.
            let threads = group.threads.iter().map(|(id, _)| json!({ "id": id.thread, "name": self.name(*id) }));
            // `wait` is null if they run or that is unknown. Frames are leaf first; the module of each is empty if unknown.
            json!({ "threads": threads.collect::<Vec<_>>(), "wait": wait, "frames": safe(&group.frames), "modules": safe(&group.modules) })
        };
        json!({
            "pid": self.process.key.pid,
            "name": self.process.name,
            "threads": self.threads(),
            "complete": complete,
            "stacks": self.groups.iter().map(stack).collect::<Vec<_>>(),
        })
    }

    fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (Process { key, name, .. }, threads_of) = (self.process, |count: usize| Counted(count as u64, "thread"));
        let different = Counted(self.groups.len() as u64, "stack");
        writeln!(out, "{name} ({}): {:#}, {different:#}. Waiting threads are included.", key.pid, threads_of(self.threads()))?;
        let in_locks = self.groups.iter().filter(|(wait, _)| may_be_lock(*wait)).map(|(_, group)| group.threads.len()).sum();
        if in_locks > 0 {
            writeln!(out, "{:#} may wait for locks, in the stacks listed first.", threads_of(in_locks))?;
        }
        for (wait, StackGroup { frames, modules, threads, .. }) in &self.groups {
            let thread = |(id, _): &(ThreadId, u64)| match self.name(*id) {
                Some(name) => format!("{} {name}", id.thread),
                None => id.thread.to_string(),
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
                writeln!(out, "    {}{}", SafeText::new(frame), print::module_suffix(frame, &SafeText::new(module)))?;
            }
        }
        Ok(())
    }
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
        let stacks = Stacks::new(&process, vec![group("App.Run", &[1, 3]), group("0x20", &[2])], &names, &waits);
        let mut text = Vec::new();
        stacks.write_text(&mut text).unwrap();
        let expected = " (7): 3 threads, 2 stacks. Waiting threads are included.\n\n2 threads: 1, 3 Worker\n    App.Run  [App]\n\n1 thread (disk): 2\n    0x20\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn many_threads_of_a_stack_are_counted() {
        let threads: Vec<_> = (1..=18).map(|thread| (ThreadId { thread, ..ThreadId::default() }, 1)).collect();
        let group = StackGroup { frames: Vec::new(), modules: Vec::new(), samples: SampleCount::default(), threads };
        let process = Process::new(crate::model::ProcessKey { pid: 7, started: 1 });
        let names = HashMap::default();
        let stacks = Stacks::new(&process, vec![group], &names, &HashMap::default());
        let mut text = Vec::new();
        stacks.write_text(&mut text).unwrap();
        assert!(
            String::from_utf8(text).unwrap().contains("18 threads: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, and 2 more\n")
        );
    }
}
