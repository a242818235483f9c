//! Finds the application code responsible for time spent.

use crate::analysis::{Counts, Origin, ProfileFrame, SampleCount};

/// The application code responsible for the time of some samples.
pub(super) struct Culprit {
    /// Nanoseconds of stacks with application code.
    pub(super) total: u64,
    /// Nanoseconds of the selected stacks without application code.
    without_application_ns: u64,
    /// The application method closest to the leaf for most of that time.
    pub(super) method: Option<String>,
    /// The library method that it calls for most of its own time.
    pub(super) calls: Option<String>,
}

impl Culprit {
    pub(super) fn of(counts: &Counts<'_>, time: fn(SampleCount) -> u64) -> Self {
        let mut own = Self::below_frame(counts, |_| true, time);
        own.total -= own.without_application_ns;
        own
    }

    /// Considers only stacks that contain a frame selected by `is`, with all of their time.
    pub(super) fn below_frame(counts: &Counts<'_>, is: fn(&ProfileFrame) -> bool, time: fn(SampleCount) -> u64) -> Self {
        let profile = counts.profile();
        let nodes = counts.totals().len();
        // For each node, the nearest application method, and whether it is beneath a selected frame; parents have smaller indexes than their
        // children.
        let mut nearest: Vec<(Option<&str>, bool)> = vec![(None, false); nodes];
        // The library method that the nearest application method calls.
        let mut called: Vec<Option<&str>> = vec![None; nodes];
        let mut by_method = foldhash::HashMap::<Option<&str>, u64>::default();
        let mut by_call = foldhash::HashMap::<(&str, &str), u64>::default();
        for node in 1..nodes as u32 {
            let frame = profile.frame_of(node);
            let (above, inside) = nearest[profile.parent(node) as usize];
            let own = frame.filter(|frame| is_own_frame(frame)).map(|frame| frame.name.as_str());
            let inside = inside || frame.is_some_and(is);
            nearest[node as usize] = (own.or(above), inside);
            let call_above = called[profile.parent(node) as usize];
            let library = frame.filter(|frame| frame.is_known() && frame.origin == Origin::Managed && above.is_some());
            let call = if own.is_some() { None } else { call_above.or_else(|| library.map(|frame| frame.name.as_str())) };
            called[node as usize] = call;
            if inside {
                if let (Some(method), Some(call)) = (own.or(above), call) {
                    let sum = by_call.entry((method, call)).or_default();
                    *sum = sum.saturating_add(time(counts.own_of(node)));
                }
                let sum = by_method.entry(own.or(above)).or_default();
                *sum = sum.saturating_add(time(counts.own_of(node)));
            }
        }
        let named = by_method.iter().filter_map(|(name, time)| Some(((*name)?, *time)));
        let most = named.filter(|(_, time)| *time > 0).max_by_key(|(name, time)| (*time, std::cmp::Reverse(*name)));
        let calls = most.and_then(|(method, all)| {
            let of_method = by_call.iter().filter(|((caller, _), _)| *caller == method);
            let (call, time) =
                of_method.map(|((_, call), time)| (*call, *time)).max_by_key(|(call, time)| (*time, std::cmp::Reverse(*call)))?;
            (time > all / 2).then(|| call.to_owned())
        });
        Self {
            calls,
            total: by_method.values().fold(0, |sum, time| sum.saturating_add(*time)),
            without_application_ns: by_method.get(&None).copied().unwrap_or(0),
            method: most.map(|(name, _)| name.to_owned()),
        }
    }
}

/// Returns the nanoseconds spent throwing exceptions and looking up their handlers, excluding the handlers themselves.
pub(super) fn dispatch_ns(counts: &Counts<'_>) -> u64 {
    let profile = counts.profile();
    let nodes = counts.totals().len();
    // For each node, whether it is part of exception dispatch, and whether it is beneath code that walks stacks for another purpose.
    let mut inside = vec![(false, false); nodes];
    let mut total = 0;
    for node in 1..nodes as u32 {
        let (above, walks_above) = inside[profile.parent(node) as usize];
        let frame = profile.frame_of(node);
        let walks = walks_above || frame.is_some_and(walks_stacks);
        let is_inside = !walks && frame.is_some_and(|frame| is_dispatch(frame) || above && frame.origin != Origin::Managed);
        inside[node as usize] = (is_inside, walks);
        total = u64::saturating_add(total, if is_inside { counts.own_of(node).running_ns } else { 0 });
    }
    total
}

/// Returns whether native code calls the functions that exception dispatch walks stacks with: a GC, and the sampler of .NET Core 3.1, whose
/// functions have names.
fn walks_stacks(frame: &ProfileFrame) -> bool {
    frame.origin == Origin::Gc || frame.origin == Origin::Native && frame.name.starts_with("SampleProfiler::")
}

/// Returns whether a frame is part of exception dispatch: native code, since .NET 9 mostly managed code of the runtime.
fn is_dispatch(frame: &ProfileFrame) -> bool {
    frame.origin == Origin::Exception || frame.name.starts_with("System.Runtime.EH.")
}

/// Returns whether a method belongs to a logging library.
pub(super) fn is_logger(method: &str) -> bool {
    LOGGERS.iter().any(|start| method.starts_with(start))
}

/// Namespaces of logging libraries.
const LOGGERS: [&str; 4] = ["Microsoft.Extensions.Logging.", "Serilog.", "NLog.", "log4net."];

fn is_own_frame(frame: &ProfileFrame) -> bool {
    frame.is_known() && frame.origin == Origin::Managed && is_own(&frame.name)
}

/// Returns whether a method is the program's own: not part of .NET itself or of a logging library.
pub fn is_own(method: &str) -> bool {
    // Code without names yet is represented by its address, or by its file in brackets.
    const LIBRARY: [&str; 8] = ["System.", "Microsoft.", "Windows.", "Internal.", "Interop", "dynamicClass", "0x", "["];
    !is_logger(method) && !LIBRARY.iter().any(|start| method.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{CpuSamples, CpuStack, NativeFunction, SampleFilter, Symbols, ThreadId};

    /// The time of each stack, innermost method first, and the method called for most of the time.
    #[test]
    fn library_method_with_most_of_the_time_is_named() {
        let matches = "System.Text.RegularExpressions.Regex.IsMatch";
        let names = ["App.Check", matches, "System.Text.RegularExpressions.Regex.Scan", "System.String.Concat"];
        let [check, is_match, scan, concat] = [100, 200, 300, 400];
        for (stacks, expected) in [
            (&[(&[scan, is_match, check][..], 600), (&[check], 300), (&[concat, check], 100)][..], Some(matches)),
            (&[(&[is_match, check], 400), (&[check], 300), (&[concat, check], 300)], None),
            (&[(&[check], 900)], None),
        ] {
            let (mut samples, mut symbols) = (CpuSamples::of_waits(), Symbols::default());
            for (user, time) in stacks {
                samples.add_time(&CpuStack { thread: ThreadId::of(7), at: 0, kernel: &[], user, missing: None }, *time);
            }
            for address in samples.addresses().into_iter().filter(|address| *address > 0) {
                let nearest = names.iter().zip([check, is_match, scan, concat]).min_by_key(|(_, start)| start.abs_diff(address));
                let name = nearest.map_or("", |(name, _)| name);
                symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "", origin: Origin::Managed });
            }
            let profile = samples.profile(&symbols);
            let culprit = Culprit::of(&profile.count(SampleFilter::ALL), SampleCount::all_ns);
            assert_eq!((culprit.method.as_deref(), culprit.calls.as_deref()), (Some("App.Check"), expected));
        }
    }

    /// The innermost function first.
    #[test]
    fn stack_walks_of_a_sampler_and_a_gc_are_no_exception_dispatch() {
        let functions = [
            ("App.Check", Origin::Managed),
            ("IL_Throw", Origin::Exception),
            ("StackFrameIterator::Next", Origin::Exception),
            ("Frame::HasValidVTablePtr", Origin::Native),
            ("SampleProfiler::ThreadProc", Origin::Native),
            ("WKS::gc_heap::mark_phase", Origin::Gc),
        ];
        let [check, throw, next, frame, sampler, gc] = [100, 200, 300, 400, 500, 600];
        for (stack, is_dispatch) in [
            (&[frame, next, throw, check][..], true),
            (&[frame, next], true),
            (&[frame, next, sampler], false),
            (&[next, gc, check], false),
            (&[check, next], false),
        ] {
            let (mut samples, mut symbols) = (CpuSamples::new(1), Symbols::default());
            samples.add(&CpuStack { thread: ThreadId::of(7), at: 0, kernel: &[], user: stack, missing: None });
            for address in samples.addresses().into_iter().filter(|address| *address > 0) {
                let (name, origin) = functions[(address as usize).div_ceil(100) - 1];
                symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "", origin });
            }
            let profile = samples.profile(&symbols);
            assert_eq!(dispatch_ns(&profile.count(SampleFilter::BUSY)) > 0, is_dispatch, "{stack:?}");
        }
    }
}
