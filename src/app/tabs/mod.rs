//! The tabs: each is one module with all that it shows, for the view, the mouse, the paging and the copy menu.
//!
//! To add a tab: a variant of [`Tab`] with its title, and a module whose `view` builds a [`View`].

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
mod slowdown;
mod stacks;
mod threads;
mod type_tree;
mod view;

pub use cell::{Cell, CellValue};
pub use events::EventsView;
pub use geometry::{Geometry, last_piece};
pub use heap::HeapView;
pub use jobs::phase_badge;
pub(in crate::app) use list::Table;
pub use list::{Column, Direction, Fit, List, Rows};
pub use look::Look;
pub use overview::{Graph, LABELS, Layer, Mark, Overview, OverviewLayout};
pub use stacks::Stacks;
pub use view::{Chart, Figure, Head, Line, Plot, Role, Side, Sign, View};

use super::findings::findings;
use super::pane::Tab;
use super::state::State;

impl State {
    /// What a tab shows of a recording; `None` for a tab that draws itself, and where nothing is known of a recording.
    pub fn view_of(&self, tab: Tab) -> Option<View<'_>> {
        let mut view = self.described(tab)?;
        if let Some(complaint) = self.views.filter(tab).unknown_column(&view.filtered) {
            view.empty = (complaint, Role::Warning);
        }
        Some(view)
    }

    fn described(&self, tab: Tab) -> Option<View<'_>> {
        let look = || Look::new(self);
        if self.shown_recording().is_none()
            && let Some(view) = live::view(self, tab)
        {
            return Some(view);
        }
        let view = match tab {
            Tab::Overview | Tab::Trace => return None,
            Tab::Environment => return Some(environment::view(self)),
            Tab::Jobs => return Some(jobs::view(self)),
            Tab::Compare => return Some(compare::view(self)),
            Tab::Stacks => return Some(stacks::view(self)),
            Tab::Heap => return Some(heap::view(self)),
            Tab::Counters => return counters::view(self),
            Tab::Gc => gc::view(look()?),
            Tab::Exceptions => exceptions::view(look()?),
            Tab::Threads => threads::view(look()?),
            Tab::Methods => methods::view(look()?),
            Tab::Events => events::view(look()?),
            Tab::Http => http::view(look()?),
            Tab::Logs => logs::view(look()?),
            Tab::Jit => jit::view(look()?),
            Tab::Assemblies => assemblies::view(look()?),
            Tab::Slowdown => slowdown::view(look()?),
        };
        let found = look().map(|look| findings(&look.analysis.snapshot, look.over(), &self.options.thresholds)).unwrap_or_default();
        Some(View { findings: found.into_iter().filter(|finding| finding.tab == tab).collect(), ..view })
    }
}
