//! A request about the selected process that is repeated with each process scan.

use super::Ticket;

/// State of the request.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    request: Option<Ticket>,
    /// Whether the latest request is as recent as the process table.
    is_current: bool,
}

impl Refresh {
    /// Whether the request has to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.request.is_none() && !self.is_current
    }

    pub(super) fn requested(&mut self, ticket: Ticket) {
        (self.request, self.is_current) = (Some(ticket), true);
    }

    /// Accepts an answer. Returns false if it is not for the pending request.
    pub(super) fn take(&mut self, ticket: Ticket) -> bool {
        let is_expected = self.request == Some(ticket);
        if is_expected {
            self.request = None;
        }
        is_expected
    }

    /// Marks the answer as outdated, because processes were scanned again.
    pub(super) fn mark_outdated(&mut self) {
        self.is_current = false;
    }
}
