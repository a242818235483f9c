//! The code of the program itself that time goes to.

use crate::analysis::{Counts, Origin, ProfileFrame, SampleCount};

/// The code of the program itself that the time of some samples goes to.
pub(super) struct Culprit {
    /// Nanoseconds of stacks that have such code.
    pub(super) total: u64,
    /// The method that is nearest to the leaf in most of that time.
    pub(super) method: Option<String>,
}

impl Culprit {
    pub(super) fn of(counts: &Counts<'_>, time: impl Fn(SampleCount) -> u64) -> Self {
        let profile = counts.profile();
        let nodes = counts.totals().len();
        // The nearest own method of every node; a parent has a smaller number than its children.
        let mut nearest: Vec<Option<&str>> = vec![None; nodes];
        let mut by_method = foldhash::HashMap::<&str, u64>::default();
        for node in 1..nodes as u32 {
            let own = profile.frame_of(node).filter(|frame| is_own_frame(frame)).map(|frame| frame.name.as_str());
            nearest[node as usize] = own.or(nearest[profile.parent(node) as usize]);
            if let Some(method) = nearest[node as usize] {
                *by_method.entry(method).or_default() += time(counts.own_of(node));
            }
        }
        let most = by_method.iter().filter(|(_, time)| **time > 0).max_by_key(|(name, time)| (**time, std::cmp::Reverse(**name)));
        Self { total: by_method.values().sum(), method: most.map(|(name, _)| (*name).to_owned()) }
    }
}

fn is_own_frame(frame: &ProfileFrame) -> bool {
    frame.is_known() && frame.origin == Origin::Managed && is_own(&frame.name)
}

/// Whether a method is not part of .NET itself.
pub(in crate::app) fn is_own(method: &str) -> bool {
    // Code without names yet is shown by its address, or by its file in brackets.
    const LIBRARY: [&str; 7] = ["System.", "Microsoft.", "Internal.", "Interop", "dynamicClass.", "0x", "["];
    !LIBRARY.iter().any(|start| method.starts_with(start))
}
