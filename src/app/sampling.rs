//! The presentation of samples: as a list of methods, a call tree or a flame graph, of all threads or a single one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::call_tree::MAX_NODES;
use super::flame::Flame;
use super::flame_search::FlameMatches;
use super::state::State;
use super::tabs::{Look, Tab};
use super::top_frames::TopFrame;
use crate::analysis::{CallNode, Counts, Field, MethodCount, ProfileFrame, SampleCount, SampleFilter, ThreadId, ThreadSamples};
use crate::model::{CpuThread, RecordingId, ThreadUse};
use crate::sorting::CompactSort;

/// How samples are presented.
#[derive(Debug, Default)]
pub struct Sampling {
    pub shape: Shape,
    /// Whether samples of waiting threads count.
    pub waiting: bool,
    /// Position in the flame graph.
    pub(super) flame: Flame,
    /// The matches of the search in the flame graph, while it is shown.
    pub(super) matches: Option<FlameMatches>,
    /// The selected thread of a recording.
    pub(super) thread: Option<(RecordingId, ThreadId)>,
    /// Full name of the method whose callers are shown.
    pub(super) callee: String,
    /// The shape to return to after selecting a thread or leaving the callers.
    before: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    #[default]
    List,
    /// The call tree.
    Tree,
    Flame,
    Callers,
    Threads,
}

/// A selectable thread; `None` for all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRow<'a> {
    pub thread: Option<ThreadId>,
    pub samples: SampleCount,
    pub usage: Option<&'a ThreadUse>,
    /// On-CPU and off-CPU time, if sampled by the kernel.
    pub cpu: Option<&'a CpuThread>,
    /// Name from /proc or the stream; empty if unknown, not sanitized.
    pub name: &'a str,
    /// The innermost method, if known.
    pub(super) top: Option<TopFrame<'a>>,
}

impl ThreadRow<'_> {
    /// Returns the identity of the row.
    pub(super) fn id(&self) -> String {
        format!("{:?}", self.thread)
    }
}

impl Sampling {
    /// The columns that a filter searches.
    pub const COLUMNS: [&str; 2] = ["METHOD", "MODULE"];

    /// Returns the time of the samples that count, nanoseconds, which is the basis of shares.
    pub fn counted_ns(&self, samples: SampleCount) -> u64 {
        if self.waiting { samples.all_ns() } else { samples.running_ns }
    }

    pub fn counted_samples(&self, samples: SampleCount) -> u64 {
        if self.waiting { samples.all() } else { samples.running }
    }

    /// Toggles between the threads or callers and the previous shape.
    fn toggle(&mut self, shape: Shape) {
        if self.shape == shape {
            self.shape = self.before;
        } else {
            let before = std::mem::replace(&mut self.shape, shape);
            if !matches!(before, Shape::Threads | Shape::Callers) {
                self.before = before;
            }
        }
    }
}

/// Maximum number of methods listed.
const MAX_METHODS: usize = 500;

impl State {
    /// Switches between list, tree and flame graph.
    pub(in crate::app) fn next_shape(&mut self) {
        let sampling = &mut self.views.sampling;
        sampling.shape = match sampling.shape {
            Shape::List => Shape::Tree,
            Shape::Tree => Shape::Flame,
            Shape::Flame => Shape::List,
            Shape::Threads | Shape::Callers => sampling.before,
        };
        self.views.select_first(Tab::Methods);
    }

    pub(in crate::app) fn toggle_threads(&mut self) {
        self.views.sampling.toggle(Shape::Threads);
        self.views.select_first(Tab::Methods);
    }

    /// Toggles between the callers of the selected method and the previous shape.
    pub(in crate::app) fn toggle_callers(&mut self) {
        match self.view_of(Tab::Methods).and_then(|view| view.copy) {
            _ if self.views.sampling.shape == Shape::Callers => {}
            Some(("method", name)) => self.views.sampling.callee = name,
            _ => return,
        }
        self.views.sampling.toggle(Shape::Callers);
        self.views.of_mut(Tab::Methods).expanded.clear();
        self.views.select_first(Tab::Methods);
    }

    /// Whether there are any samples.
    pub(in crate::app) fn has_samples(&self) -> bool {
        self.analysis().is_some_and(|analysis| {
            [false, true].iter().any(|waiting| !analysis.profile(*waiting).is_empty()) || analysis.waits().is_some()
        })
    }

    /// Returns the thread whose samples are shown; `None` for all.
    pub fn shown_thread(&self) -> Option<ThreadId> {
        let (recording, thread) = self.views.sampling.thread?;
        (self.shown_recording()?.value.id == recording).then_some(thread)
    }

    /// Returns the shown samples: those of the selected thread, or all.
    pub fn samples(&self) -> Option<Counts<'_>> {
        Look::new(self).map(|look| look.counts())
    }

    /// Returns the methods that match the filter and have samples that count, those with the most time in the sort column first.
    #[cfg(test)]
    pub(in crate::app) fn methods(&self) -> Vec<(MethodCount, &ProfileFrame)> {
        self.samples().map(|counts| self.methods_of(&counts)).unwrap_or_default()
    }

    /// Returns the methods that match the filter and have samples that count, those with the most time in the sort column first.
    pub(super) fn methods_of<'a>(&self, counts: &Counts<'a>) -> Vec<(MethodCount, &'a ProfileFrame)> {
        let sampling = &self.views.sampling;
        let profile = counts.profile();
        let frames = counts.by_method().into_iter().filter_map(|method| Some((method, profile.frame_at(method.frame)?)));
        let shown =
            |(method, frame): &(MethodCount, &ProfileFrame)| sampling.counted_samples(method.total) > 0 && self.matches_filter(frame);
        let mut methods: Vec<_> = frames.filter(shown).collect();
        let column = self.views.of(Tab::Methods).sort.map_or("SELF", |sort| sort.column);
        methods.compact_sort_by(|(a, first), (b, second)| {
            let weight = |method: &MethodCount| {
                let (own, total) = (sampling.counted_ns(method.own), sampling.counted_ns(method.total));
                Reverse(match column {
                    "TOTAL" => (total, own),
                    "NOW%" => (method.own.recent_ns, own),
                    _ => (own, total),
                })
            };
            (weight(a), &first.name, a.frame).cmp(&(weight(b), &second.name, b.frame))
        });
        methods.truncate(MAX_METHODS);
        methods
    }

    /// Whether a method matches the filter.
    pub(super) fn matches_filter(&self, frame: &ProfileFrame) -> bool {
        let [method, module] = Sampling::COLUMNS;
        self.views.filter(Tab::Methods).passes(&[Field::text(method, &frame.name), Field::text(module, &frame.module)])
    }

    /// Returns the call tree, or that of a method's callers, heaviest first.
    pub(super) fn call_tree<'a>(&self, counts: &Counts<'a>) -> Vec<CallNode<'a>> {
        let Sampling { shape, callee, .. } = &self.views.sampling;
        let weight = |samples| self.views.sampling.counted_ns(samples);
        if *shape != Shape::Callers {
            return counts.call_tree(weight, MAX_NODES);
        }
        let profile = counts.profile();
        let method =
            counts.by_method().into_iter().find(|method| profile.frame_at(method.frame).is_some_and(|frame| frame.full_name() == *callee));
        method.map(|method| counts.callers(method.frame, weight, MAX_NODES)).unwrap_or_default()
    }

    /// Returns a row for all threads, followed by the individual threads, highest CPU use first.
    pub fn thread_rows(&self) -> Vec<ThreadRow<'_>> {
        let Some(analysis) = self.analysis() else { return Vec::new() };
        // The runtime samples all threads, the kernel only running ones.
        let counts = analysis.profile(true).count(SampleFilter::ALL);
        let mut threads = counts.threads();
        let cpu = analysis.cpu.as_ref().map_or(&[][..], |cpu| &cpu.threads);
        let sampled: BTreeSet<_> = threads.iter().map(|thread| thread.thread.thread).collect();
        let idle = cpu.iter().filter(|thread| !sampled.contains(&thread.thread));
        threads.extend(idle.map(|thread| ThreadSamples { thread: ThreadId::of(thread.thread), samples: SampleCount::default() }));
        let cpu: BTreeMap<_, _> = cpu.iter().map(|thread| (thread.thread, thread)).collect();
        // Sorted by the displayed times, which are exact if measured by the kernel.
        threads.compact_sort_by_key(|ThreadSamples { thread, samples }| {
            let counted = cpu.get(&thread.thread).and_then(|known| u64::try_from(known.cpu.as_nanos()).ok());
            (Reverse(counted.unwrap_or(samples.running_ns)), Reverse(samples.waiting_ns), *thread)
        });
        let usages = self.shown_recording().map_or(&[][..], |tracked| &tracked.value.threads);
        let (names, tops) = (&analysis.snapshot.thread_names, self.top_frames());
        let row = |ThreadSamples { thread, samples }: ThreadSamples| {
            let known = thread.in_process().and_then(|thread| usages.binary_search_by_key(&thread, |usage| usage.thread).ok());
            let usage = known.map(|at| &usages[at]);
            let recorded = names.binary_search_by_key(&thread, |(thread, _)| *thread).map_or("", |at| &names[at].1);
            let cpu = cpu.get(&thread.thread).copied();
            let name = usage.map(|usage| &usage.name).or(cpu.map(|cpu| &cpu.name)).map_or(recorded, |name| name);
            ThreadRow { thread: Some(thread), samples, usage, cpu, name, top: tops.get(&thread).copied() }
        };
        let all = ThreadRow { thread: None, samples: counts.samples(), usage: None, cpu: None, name: "", top: None };
        [all].into_iter().chain(threads.into_iter().map(row)).collect()
    }

    /// Opens the selection: zooms into a frame of the flame graph, or shows the methods of a thread.
    pub(in crate::app) fn enter_sampling(&mut self) {
        match self.views.sampling.shape {
            Shape::Flame => self.zoom_in(),
            Shape::Threads => {
                let id = self.view_of(Tab::Methods).map(|view| view.list.id(view.cursor.at)).unwrap_or_default();
                let chosen = self.thread_rows().into_iter().find(|row| row.id() == id).and_then(|row| row.thread);
                let recording = self.shown_recording().map(|tracked| tracked.value.id);
                self.views.sampling.thread = recording.zip(chosen);
                self.toggle_threads();
            }
            Shape::List => {}
            Shape::Tree | Shape::Callers => self.toggle_row(),
        }
    }

    /// Whether the view can be widened: from a zoomed flame graph, from callers, or from a single thread.
    pub(in crate::app) fn can_widen(&self) -> bool {
        self.is_zoomed_flame() || self.views.sampling.shape == Shape::Callers || self.shown_thread().is_some()
    }

    /// Widens the view by one step.
    pub(in crate::app) fn widen(&mut self) {
        if self.is_zoomed_flame() {
            self.views.sampling.flame.zoom_out();
        } else if self.views.sampling.shape == Shape::Callers {
            self.toggle_callers();
        } else {
            self.views.sampling.thread = None;
        }
    }
}
