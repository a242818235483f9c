//! The tabs: each is one module that says what it shows. The view, the mouse, the paging and the copy menu all ask here.
//!
//! To add a tab: a variant of [`Tab`] with its title, and a module whose `view` builds a [`View`].

mod assemblies;
mod exceptions;
mod gc;
mod geometry;
mod http;
mod jit;
mod list;
mod logs;
mod look;
mod threads;
mod view;

pub use geometry::Geometry;
pub use list::{Cell, Column, Fit, List, Rows};
pub use look::Look;
pub use threads::sampled;
pub use view::{Chart, Figure, Head, Line, Role, Side, View};

use super::pane::Tab;
use super::state::State;

impl State {
    /// What a tab shows of a recording; `None` for a tab that draws itself, and where nothing is known of a recording.
    pub fn view_of(&self, tab: Tab) -> Option<View<'_>> {
        let look = Look::new(self)?;
        Some(match tab {
            Tab::Gc => gc::view(look),
            Tab::Exceptions => exceptions::view(look),
            Tab::Threads => threads::view(look),
            Tab::Http => http::view(look),
            Tab::Logs => logs::view(look),
            Tab::Jit => jit::view(look),
            Tab::Assemblies => assemblies::view(look),
            Tab::Info | Tab::Environment | Tab::Trace | Tab::Methods | Tab::Events | Tab::Counters | Tab::Operations => return None,
        })
    }
}
