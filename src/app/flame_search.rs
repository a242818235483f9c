//! The search of the flame graph: the frames that match, and their share of the time.
//!
//! Determined when the search or the samples change, not while drawing: a profile can have very many nodes.

use std::sync::{Arc, Weak};

use super::flame::ROOT;
use super::{State, Tab};
use crate::analysis::{Counts, Filter, ThreadId};
use crate::model::RecordingAnalysis;

/// What was searched, and for what.
#[derive(Debug)]
struct Searched {
    analysis: Weak<RecordingAnalysis>,
    filter: Filter,
    waiting: bool,
    thread: Option<ThreadId>,
}

impl PartialEq for Searched {
    fn eq(&self, other: &Self) -> bool {
        let same = (&self.filter, self.waiting, self.thread) == (&other.filter, other.waiting, other.thread);
        same && self.analysis.ptr_eq(&other.analysis)
    }
}

/// The frames that match the search.
#[derive(Debug)]
pub struct FlameMatches {
    of: Searched,
    /// By frame index.
    matches: Vec<bool>,
    /// Share of the time with a match anywhere in the stack.
    pub share: f64,
}

impl FlameMatches {
    /// Returns whether the frame of a node matches.
    pub fn contains(&self, counts: &Counts<'_>, node: u32) -> bool {
        counts.profile().frame_index(node).is_some_and(|frame| self.matches.get(frame as usize) == Some(&true))
    }
}

impl State {
    /// Returns the matches of the search in the flame graph; `None` without a search.
    pub fn flame_matches(&self) -> Option<&FlameMatches> {
        self.views.sampling.matches.as_ref()
    }

    /// Searches again if the search or the samples have changed.
    pub(super) fn refresh_flame_matches(&mut self) {
        let known = self.views.sampling.matches.take();
        self.views.sampling.matches = self.shown_search().and_then(|now| match known {
            Some(known) if known.of == now => Some(known),
            _ => self.search(now),
        });
    }

    fn shown_search(&self) -> Option<Searched> {
        let filter = self.views.filter(Tab::Methods);
        if self.tab != Tab::Methods || !self.is_flame() || filter.is_empty() {
            return None;
        }
        Some(Searched {
            analysis: Arc::downgrade(self.shown_recording()?.value.analysis.as_ref()?),
            filter: filter.clone(),
            waiting: self.views.sampling.waiting,
            thread: self.shown_thread(),
        })
    }

    fn search(&self, of: Searched) -> Option<FlameMatches> {
        let counts = self.samples()?;
        let profile = counts.profile();
        let matches = (0..).map_while(|frame| profile.frame_at(frame)).map(|frame| self.matches_filter(frame)).collect();
        let mut found = FlameMatches { of, matches, share: 0.0 };
        let counted = |node| self.views.sampling.counted_ns(counts.total_of(node));
        let (mut sum, mut walk) = (0, vec![ROOT]);
        while let Some(node) = walk.pop() {
            if found.contains(&counts, node) {
                sum += counted(node);
            } else {
                walk.extend(profile.children(node).filter(|child| counted(*child) > 0));
            }
        }
        found.share = sum as f64 / counted(ROOT).max(1) as f64;
        Some(found)
    }
}
