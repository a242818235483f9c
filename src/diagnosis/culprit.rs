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
        let mut by_method = foldhash::HashMap::<Option<&str>, u64>::default();
        for node in 1..nodes as u32 {
            let frame = profile.frame_of(node);
            let (above, inside) = nearest[profile.parent(node) as usize];
            let own = frame.filter(|frame| is_own_frame(frame)).map(|frame| frame.name.as_str());
            let inside = inside || frame.is_some_and(is);
            nearest[node as usize] = (own.or(above), inside);
            if inside {
                let sum = by_method.entry(own.or(above)).or_default();
                *sum = sum.saturating_add(time(counts.own_of(node)));
            }
        }
        let named = by_method.iter().filter_map(|(name, time)| Some(((*name)?, *time)));
        let most = named.filter(|(_, time)| *time > 0).max_by_key(|(name, time)| (*time, std::cmp::Reverse(*name)));
        Self {
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
    let mut inside = vec![false; nodes];
    let mut total = 0;
    for node in 1..nodes as u32 {
        let above = inside[profile.parent(node) as usize];
        let is_inside = profile.frame_of(node).is_some_and(|frame| is_dispatch(frame) || above && frame.origin != Origin::Managed);
        inside[node as usize] = is_inside;
        total = u64::saturating_add(total, if is_inside { counts.own_of(node).running_ns } else { 0 });
    }
    total
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
