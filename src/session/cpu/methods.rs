//! Methods of a process, from which sampled addresses get names.

use std::sync::{Arc, Mutex, PoisonError};

use crate::analysis::{Live, Symbols};

/// A symbol table, which may be shared with the thread that fills it.
pub(in crate::session) trait Methods {
    /// Calls `action` with the table if there is one. A shared table is locked until `action` returns, so it must be short.
    fn with(&self, action: &mut dyn FnMut(&Symbols));
}

impl Methods for Symbols {
    fn with(&self, action: &mut dyn FnMut(&Symbols)) {
        action(self);
    }
}

impl Methods for Mutex<Live> {
    fn with(&self, action: &mut dyn FnMut(&Symbols)) {
        action(self.lock().unwrap_or_else(PoisonError::into_inner).symbols());
    }
}

impl<T: Methods> Methods for Option<T> {
    fn with(&self, action: &mut dyn FnMut(&Symbols)) {
        if let Some(methods) = self {
            methods.with(action);
        }
    }
}

impl<T: Methods + ?Sized> Methods for Arc<T> {
    fn with(&self, action: &mut dyn FnMut(&Symbols)) {
        (**self).with(action);
    }
}
