//! Requests of the operating system to the dashboard.

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    End,
    /// To give the terminal back and stop until it is continued.
    Suspend,
    /// To take the terminal again: the program was stopped and continued.
    Resume,
    Measure,
}
