//! The flame graph that is shown, and ways through it.

use crate::app::cursor::Step;
use crate::app::flame::{FlameGraph, names};
use crate::app::sampling::Shape;
use crate::app::state::State;

impl State {
    /// The flame graph, where it is open and there are samples.
    pub fn flame(&self) -> Option<FlameGraph<'_>> {
        let width = self.layout().detail?.body.width.saturating_sub(2);
        let sampling = &self.views.sampling;
        let counts = self.samples().filter(|counts| sampling.counted(counts.samples()) > 0)?;
        let weights: Vec<u64> = counts.totals().iter().map(|total| sampling.counted(*total)).collect();
        let weight = |node: u32| weights.get(node as usize).copied().unwrap_or(0);
        Some(FlameGraph::new(counts, weight, &sampling.flame, width))
    }

    fn select_frame(&mut self, choose: impl Fn(&FlameGraph<'_>) -> Option<u32>) {
        let path = self.flame().and_then(|graph| Some(names(&graph.counts, choose(&graph)?)));
        if let Some(path) = path {
            self.views.sampling.flame.selected = path;
        }
    }

    pub(in crate::app) fn step_flame(&mut self, step: Step) {
        self.select_frame(|graph| Some(graph.after(step)));
    }

    /// To the next frame of the same line.
    pub(in crate::app) fn step_sideways(&mut self, right: bool) {
        self.select_frame(|graph| graph.beside(right));
    }

    /// Gives the selected frame the whole width.
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

    /// Whether the flame graph is zoomed in.
    pub(in crate::app) fn is_zoomed_flame(&self) -> bool {
        self.is_flame() && self.views.sampling.flame.is_zoomed()
    }

    /// Whether the flame graph has the keys.
    pub fn is_flame(&self) -> bool {
        self.views.sampling.shape == Shape::Flame && self.has_samples()
    }
}
