//! What the system asks of the dashboard.

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// To end.
    End,
    /// To give the terminal back and stop until it is continued.
    Suspend,
    /// To take the terminal again: the program was stopped and continued.
    Resume,
    /// To measure the window.
    Measure,
}
