//! Something that is requested of the selected process as often as the processes are listed.

use super::Ticket;

/// The open request.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    request: Option<Ticket>,
    /// Whether the latest answer is as new as the table of processes.
    is_current: bool,
}

impl Refresh {
    /// Whether it is to be requested.
    pub(super) fn is_due(&self) -> bool {
        self.request.is_none() && !self.is_current
    }

    pub(super) fn requested(&mut self, ticket: Ticket) {
        (self.request, self.is_current) = (Some(ticket), true);
    }

    /// Whether this is the answer that was waited for.
    pub(super) fn take(&mut self, ticket: Ticket) -> bool {
        let is_expected = self.request == Some(ticket);
        if is_expected {
            self.request = None;
        }
        is_expected
    }

    /// The processes were listed again.
    pub(super) fn age(&mut self) {
        self.is_current = false;
    }
}
