//! The tabs: one module each, shared by the view, mouse handling, paging and the copy menu.
//!
//! To add a tab, write a module whose `TAB` describes it and whose `view` builds a [`View`], and add a line to `registry.rs`.

mod allocations;
mod assemblies;
mod cell;
mod compare;
mod counters;
mod environment;
mod events;
mod exceptions;
mod gc;
mod geometry;
mod heap;
mod http;
mod jit;
mod jobs;
mod list;
mod live;
mod live_http;
mod logs;
mod look;
mod methods;
mod overview;
mod quantity;
mod registry;
mod slowdown;
mod stacks;
mod threads;
mod trace;
mod type_tree;
mod view;

pub use cell::{Cell, CellValue, joined};
pub use counters::CounterLine;
pub use events::EventsView;
pub use geometry::{Geometry, LastPiece};
pub use heap::HeapView;
pub use jobs::phase_badge;
pub(in crate::app) use list::Table;
pub use list::{Column, Fit, List, Rows};
pub use logs::logged_exception;
pub use look::Look;
pub use overview::{Graph, LABEL_WIDTH, Layer, MIN_GRAPH_WIDTH, Mark, Overview, OverviewLayout};
pub use registry::Tab;
pub use stacks::Stacks;
pub use view::{Chart, Figure, Head, Line, Role, Side, Sign, View};

use self::cell::at;
use self::list::TabList;
use self::registry::{Descriptor, Live, Recorded, Shows};
use super::{State, findings};

impl State {
    /// Returns the view of a tab; `None` for a tab that draws itself, or if nothing is known of a recording.
    pub fn view_of(&self, tab: Tab) -> Option<View<'_>> {
        let mut view = self.described(tab)?;
        if let Some(problem) = self.views.filter(tab).unknown_column(&view.filtered) {
            view.empty = (problem, Role::Warning);
        }
        Some(view)
    }

    fn described(&self, tab: Tab) -> Option<View<'_>> {
        let recorded = match &tab.descriptor().shows {
            Shows::Itself => return None,
            Shows::List(view) => return Some(view(self)),
            Shows::Counters(view) => return view(self),
            Shows::Recording(recorded) => recorded,
        };
        if let Some(live) = &recorded.live
            && self.shown_recording().is_none()
            && let Some(view) = live::view(self, tab, live)
        {
            return Some(view);
        }
        let look = Look::new(self)?;
        let mut view = (recorded.view)(look);
        let found = findings(&look.analysis.snapshot, look.has_ended(), &self.options.thresholds);
        view.findings.extend(found.into_iter().filter(|finding| finding.tab == tab));
        Some(view)
    }
}
