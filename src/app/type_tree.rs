//! Call trees of the code that allocates objects of a type or throws exceptions of a type, shown in a tab instead of its list of types.

use super::{State, Tab};
use crate::analysis::{AllocatedType, AllocationSnapshot, Counts, Filter};

/// The type whose call tree is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeTree {
    Type(String),
    /// All types together.
    All,
}

impl State {
    /// Returns the recorded allocations, if any.
    pub(super) fn allocations(&self) -> Option<&AllocationSnapshot> {
        self.analysis()?.snapshot.gc.allocations.as_ref()
    }

    /// Whether allocated types or a type's call tree are shown instead of collections.
    pub(in crate::app) fn lists_allocations(&self) -> bool {
        self.views.lists_allocations && self.allocations().is_some()
    }

    /// Returns the allocated type whose call tree is shown.
    pub(in crate::app) fn allocation_tree(&self) -> Option<&AllocatedType> {
        match self.views.of(Tab::Gc).type_tree.as_ref().filter(|_| self.lists_allocations())? {
            TypeTree::Type(name) => self.allocations()?.top.iter().find(|kind| kind.name == *name),
            TypeTree::All => None,
        }
    }

    /// Returns the type whose throw sites are shown instead of the list of types, or all types.
    pub(in crate::app) fn throw_tree(&self) -> Option<&TypeTree> {
        self.views.of(Tab::Exceptions).type_tree.as_ref().filter(|_| self.analysis().is_some())
    }

    /// Returns the events of the call tree shown by a tab, by stack; `None` if it shows none.
    pub(in crate::app) fn type_stacks(&self, tab: Tab) -> Option<Counts<'_>> {
        if tab == Tab::Gc {
            let name = &self.allocation_tree()?.full_name;
            return Some(self.allocations()?.stacks.of(Some(name)));
        }
        let name = match self.throw_tree()? {
            TypeTree::Type(name) => Some(name.as_str()),
            TypeTree::All => None,
        };
        Some(self.analysis()?.snapshot.exceptions.stacks.of(name))
    }

    fn selected_type(&self, tab: Tab) -> Option<TypeTree> {
        let view = self.view_of(tab).filter(|view| !view.list.is_empty())?;
        Some(TypeTree::Type(view.list.id(view.cursor.at)))
    }

    fn show_type_tree(&mut self, tab: Tab, tree: Option<TypeTree>) {
        let state = self.views.of_mut(tab);
        state.type_tree = tree;
        state.expanded.clear();
        self.views.select_first(tab);
    }

    /// Toggles between collections and allocated types, or returns from a call tree to the types.
    pub(in crate::app) fn toggle_allocations(&mut self) {
        if !self.leave_allocation_tree() {
            self.views.lists_allocations = !self.views.lists_allocations;
            self.views.of_mut(Tab::Gc).filter = Filter::default();
            self.views.select_first(Tab::Gc);
        }
    }

    /// Shows the call tree of the selected allocated type.
    pub(in crate::app) fn open_allocation_tree(&mut self) {
        if let Some(selected) = self.selected_type(Tab::Gc) {
            self.show_type_tree(Tab::Gc, Some(selected));
        }
    }

    /// Returns from a call tree to the allocated types, with its type selected. Returns false if no call tree was shown.
    pub(in crate::app) fn leave_allocation_tree(&mut self) -> bool {
        let shown = self.allocation_tree().map(|kind| kind.name.clone());
        self.show_type_tree(Tab::Gc, None);
        let Some(name) = shown else { return false };
        self.views.select(Tab::Gc, name);
        true
    }

    /// Cycles through exceptions by type, the call tree of the selected type, and the call tree of all types.
    pub(in crate::app) fn next_exception_tree(&mut self) {
        let next = match self.views.of(Tab::Exceptions).type_tree.as_ref() {
            None => Some(self.selected_type(Tab::Exceptions).unwrap_or(TypeTree::All)),
            Some(TypeTree::Type(_)) => Some(TypeTree::All),
            Some(TypeTree::All) => None,
        };
        self.show_type_tree(Tab::Exceptions, next);
    }
}
