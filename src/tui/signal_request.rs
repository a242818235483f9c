//! Requests to the dashboard by signals.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalRequest {
    End,
    /// Release the terminal and stop until continued.
    Suspend,
    /// Set up the terminal again: the program was stopped and continued.
    Resume,
    Resize,
}
