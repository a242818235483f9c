//! The flame graph: frame positions, the selected frame, and the zoom.
//!
//! The root is at the top; a frame's width is its share of the samples. The selection is stored as a path of names, because node numbers differ
//! between snapshots.

use ratatui::layout::{Position, Rect};

use super::cursor::{Neighbor, Step};
use super::{Shape, State};
use crate::analysis::{Counts, ProfileFrame};
use crate::sorting::CompactSort;

/// The common root of all stacks.
pub(super) const ROOT: u32 = 0;

/// The position in the flame graph.
#[derive(Debug, Default)]
pub(super) struct Flame {
    /// Path of the frame shown at full width.
    pub(super) zoom: Vec<String>,
    /// Path lengths of the previous zoom levels.
    pub(super) steps: Vec<usize>,
    pub(super) selected: Vec<String>,
}

/// A frame on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlameBox {
    pub node: u32,
    /// Columns from the left end of the graph.
    pub x: u16,
    pub width: u16,
    /// Lines from the top of the graph.
    pub depth: u16,
}

/// The flame graph, laid out.
#[derive(Debug)]
pub struct FlameGraph<'a> {
    pub counts: Counts<'a>,
    /// All frames at least one column wide, parents before children.
    pub boxes: Vec<FlameBox>,
    pub selected: u32,
}

impl Flame {
    /// Returns to the previous zoom level.
    pub(super) fn zoom_out(&mut self) {
        let length = self.steps.pop().unwrap_or(0);
        self.zoom.truncate(length);
    }
}

impl<'a> FlameGraph<'a> {
    pub(super) fn new(counts: Counts<'a>, weight: impl Fn(u32) -> u64, flame: &Flame, width: u16) -> Self {
        let profile = counts.profile();
        // Follows the path as far as it still exists.
        let find = |path: &[String]| {
            let step = |node: u32, name: &String| {
                profile
                    .children(node)
                    .find(|child| weight(*child) > 0 && profile.frame_of(*child).is_some_and(|frame| frame.full_name() == *name))
            };
            let mut node = ROOT;
            for name in path {
                match step(node, name) {
                    Some(child) => node = child,
                    None => break,
                }
            }
            node
        };
        let selected = find(&flame.selected);
        let mut boxes: Vec<_> =
            path_to(&counts, find(&flame.zoom)).into_iter().zip(0..).map(|(node, depth)| FlameBox { node, x: 0, width, depth }).collect();
        let mut at = boxes.len() - 1;
        while let Some(parent) = boxes.get(at).copied() {
            at += 1;
            let mut children: Vec<_> = profile.children(parent.node).map(|child| (weight(child), child)).collect();
            children.compact_sort_by_key(|(weight, child)| (std::cmp::Reverse(*weight), *child));
            let all = weight(parent.node).max(1);
            let column = |sum: u64| (u128::from(sum) * u128::from(parent.width) / u128::from(all)) as u16;
            let mut sum = 0;
            for (weight, node) in children {
                let from = column(sum);
                sum += weight;
                let child = FlameBox { node, x: parent.x + from, width: column(sum) - from, depth: parent.depth.saturating_add(1) };
                if child.width > 0 {
                    boxes.push(child);
                }
            }
        }
        let mut graph = Self { counts, boxes, selected };
        // A frame too narrow to be drawn cannot be selected: select its nearest drawn ancestor.
        while graph.selected != ROOT && graph.place(graph.selected).is_none() {
            graph.selected = graph.counts.profile().parent(graph.selected);
        }
        graph
    }

    fn place(&self, node: u32) -> Option<FlameBox> {
        self.boxes.iter().find(|other| other.node == node).copied()
    }

    pub fn selected_box(&self) -> Option<FlameBox> {
        self.place(self.selected)
    }

    /// Returns the selected frame; `None` for the root.
    pub fn selected_frame(&self) -> Option<&'a ProfileFrame> {
        self.counts.profile().frame_of(self.selected)
    }

    /// Returns the number of lines of the graph.
    pub fn depth(&self) -> u16 {
        self.boxes.iter().map(|place| place.depth + 1).max().unwrap_or(0)
    }

    /// Splits an area into the lines of the graph and those that describe the selected frame.
    pub fn split(area: Rect) -> (Rect, Rect) {
        let words = match area.height {
            0..=4 => 1,
            5..=11 => 2,
            _ => 3,
        };
        let height = area.height.saturating_sub(words);
        (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
    }

    /// Returns the first visible line if `height` lines fit, so that the selected frame and its callees are visible.
    pub fn first_line(&self, height: u16) -> u16 {
        let line = self.selected_box().map_or(0, |place| place.depth);
        (line + 3).saturating_sub(height).min(self.depth().saturating_sub(height))
    }

    /// Returns the frame at a position in this area.
    pub(super) fn at(&self, area: Rect, x: u16, y: u16) -> Option<u32> {
        let (picture, _) = Self::split(area);
        if !picture.contains(Position::new(x, y)) {
            return None;
        }
        let depth = self.first_line(picture.height) + y - picture.y;
        let column = x - picture.x;
        let found = self.boxes.iter().find(|place| place.depth == depth && (place.x..place.x + place.width).contains(&column));
        found.map(|place| place.node)
    }

    fn heaviest_below(&self, node: u32) -> Option<u32> {
        let profile = self.counts.profile();
        self.boxes.iter().map(|place| place.node).find(|other| *other != ROOT && profile.parent(*other) == node)
    }

    /// Returns the adjacent frame in the same line.
    pub(super) fn beside(&self, to: Neighbor) -> Option<u32> {
        let here = self.selected_box()?;
        let line = self.boxes.iter().filter(|place| place.depth == here.depth);
        let next = match to {
            Neighbor::Previous => line.filter(|place| place.x < here.x).max_by_key(|place| place.x),
            Neighbor::Next => line.filter(|place| place.x > here.x).min_by_key(|place| place.x),
        };
        next.map(|place| place.node)
    }

    /// Returns the node that a step from the selected one leads to.
    pub(super) fn after(&self, step: Step) -> u32 {
        let lines = step.lines(8);
        let mut node = self.selected;
        for _ in 0..lines.unsigned_abs().min(usize::from(self.depth())) {
            node = if lines < 0 { self.counts.profile().parent(node) } else { self.heaviest_below(node).unwrap_or(node) };
        }
        node
    }
}

/// Returns the path from the root to a node.
fn path_to(counts: &Counts<'_>, node: u32) -> Vec<u32> {
    let profile = counts.profile();
    let mut path: Vec<_> = std::iter::successors(Some(node), |node| (*node != ROOT).then(|| profile.parent(*node))).collect();
    path.reverse();
    path
}

pub(super) fn names(counts: &Counts<'_>, node: u32) -> Vec<String> {
    path_to(counts, node).into_iter().filter_map(|node| Some(counts.profile().frame_of(node)?.full_name())).collect()
}

impl State {
    /// Returns the flame graph if it is open and there are samples.
    pub fn flame(&self) -> Option<FlameGraph<'_>> {
        self.flame_of(self.samples()?)
    }

    /// Returns the flame graph of these samples; `None` if none of them count.
    pub(super) fn flame_of<'a>(&self, counts: Counts<'a>) -> Option<FlameGraph<'a>> {
        let width = self.layout().detail?.body.width.saturating_sub(2);
        let sampling = &self.views.sampling;
        if sampling.counted_ns(counts.samples()) == 0 {
            return None;
        }
        let weights: Vec<u64> = counts.totals().iter().map(|total| sampling.counted_ns(*total)).collect();
        let weight = |node: u32| weights.get(node as usize).copied().unwrap_or(0);
        Some(FlameGraph::new(counts, weight, &sampling.flame, width))
    }

    /// Selects a frame of the graph, if there is one to choose.
    pub(in crate::app) fn select_frame(&mut self, choose: impl Fn(&FlameGraph<'_>) -> Option<u32>) {
        let path = self.flame().and_then(|graph| Some(names(&graph.counts, choose(&graph)?)));
        if let Some(path) = path {
            self.views.sampling.flame.selected = path;
        }
    }

    /// Shows the selected frame at full width.
    pub(in crate::app) fn zoom_in(&mut self) {
        let Some(path) = self.flame().map(|graph| names(&graph.counts, graph.selected)) else { return };
        let flame = &mut self.views.sampling.flame;
        if path.len() == flame.zoom.len() {
            return;
        }
        flame.steps.retain(|length| *length < path.len());
        if path.len() > flame.zoom.len() {
            flame.steps.push(flame.zoom.len());
        }
        flame.zoom = path;
    }

    pub(in crate::app) fn is_zoomed_flame(&self) -> bool {
        self.is_flame() && !self.views.sampling.flame.zoom.is_empty()
    }

    /// Whether the flame graph is shown.
    pub fn is_flame(&self) -> bool {
        self.views.sampling.shape == Shape::Flame && self.has_samples()
    }
}
