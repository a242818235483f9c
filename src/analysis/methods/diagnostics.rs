//! Threads of the runtime that serve diagnostic tools, and are no part of the program: identified by their outermost method, as .NET Core 3.1 does
//! not name them.

use foldhash::HashMap;

use super::super::Origin;
use super::{Profile, StackGroup};
use crate::nettrace::ThreadId;

/// Methods that publish counters and meters.
const PUBLISH: [&str; 2] =
    ["System.Diagnostics.Tracing.CounterGroup.PollForValues", "System.Diagnostics.Metrics.AggregationManager.CollectWorker"];
/// Methods that enable the providers of a new session: since .NET 8, and before.
const ENABLE: [&str; 2] =
    ["System.Diagnostics.Tracing.EventPipeEventProvider.Callback", "System.Diagnostics.Tracing.EventProvider.EtwEnableCallBack"];
/// Methods that call the first method of any thread.
const START: [&str; 2] = ["System.Threading.Thread.StartCallback", "System.Threading.ThreadHelper.ThreadStart"];

impl Profile {
    /// Returns the threads that serve diagnostic tools, each with the nanoseconds of its samples.
    pub fn diagnostics_threads(&self) -> HashMap<ThreadId, u64> {
        let mut found = HashMap::<ThreadId, u64>::default();
        for cell in &self.cells {
            let frames = self.path(cell.node).filter_map(|node| self.frame_of(node));
            let methods = frames.filter(|frame| frame.origin == Origin::Managed).map(|frame| frame.name.as_str());
            if first_method(methods).is_some_and(|method| is_any(method, &PUBLISH) || is_any(method, &ENABLE)) {
                let sum = found.entry(self.threads[cell.thread as usize]).or_default();
                *sum = sum.saturating_add(cell.count.all_ns());
            }
        }
        found
    }
}

impl StackGroup {
    /// Returns whether the thread enables the providers of a new session.
    pub fn enables_session(&self) -> bool {
        first_method(self.frames.iter().map(String::as_str)).is_some_and(|method| is_any(method, &ENABLE))
    }
}

/// Returns the method with which a thread began, given its methods, innermost first.
fn first_method<'a>(methods: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    methods.filter(|method| !is_any(method, &START)).last()
}

fn is_any(method: &str, names: &[&str]) -> bool {
    names.iter().any(|name| method.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_enabled_by_the_outermost_method() {
        let callback = "System.Diagnostics.Tracing.EventPipeEventProvider.Callback";
        for (frames, expected) in [
            (&["System.Diagnostics.Tracing.EventSource.DoCommand", callback][..], true),
            (&["System.Diagnostics.Tracing.EventProvider.EtwEnableCallBack(System.Guid&)"], true),
            // A program creates an event source of its own.
            (&["App.OnEventCommand", callback, "App.Main"], false),
            (&["App.Run", "System.Threading.Thread.StartCallback"], false),
            (&["System.Threading.Thread.StartCallback"], false),
            (&[], false),
        ] {
            let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
            assert_eq!(StackGroup { frames, ..StackGroup::default() }.enables_session(), expected);
        }
    }
}
