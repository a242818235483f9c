//! The recordings of a process, live. The tab draws itself.

use super::registry::{Descriptor, Shows};
use crate::app::action::Context;

pub(super) const TAB: Descriptor = Descriptor { context: |_| Context::Trace, ..Descriptor::new(["Trace", "Trace", "Trc"], Shows::Itself) };
