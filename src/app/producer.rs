//! The status of the producer for Perfetto's tracing service while dn-top serves it.

use super::Ticket;
use crate::model::{Counted, PacketCounts, ProducerReport, SafeText};

#[derive(Debug)]
pub struct Producer {
    pub(super) ticket: Ticket,
    /// Address of the service, or why it is not connected; empty before the first attempt.
    connection: Result<SafeText, SafeText>,
    sessions: Vec<Session>,
    ended: (u64, PacketCounts),
    /// The last recoverable error.
    trouble: Option<SafeText>,
}

/// An active session of the service.
#[derive(Debug)]
struct Session {
    instance: u64,
    processes: Vec<SafeText>,
    troubles: Vec<SafeText>,
    packets: PacketCounts,
}

impl Producer {
    pub(super) fn new(ticket: Ticket) -> Self {
        Self { ticket, connection: Err(SafeText::default()), sessions: Vec::new(), ended: Default::default(), trouble: None }
    }

    pub(super) fn take(&mut self, report: ProducerReport) {
        match report {
            ProducerReport::Connected(address) => {
                self.connection = Ok(address);
                self.trouble = None;
            }
            ProducerReport::Waiting(why) => {
                self.connection = Err(why);
                // Sessions end when their connection is lost.
                self.sessions.drain(..).for_each(|session| end(&mut self.ended, session.packets));
            }
            ProducerReport::Started { instance, processes, troubles } => {
                self.sessions.push(Session { instance, processes, troubles, packets: PacketCounts::default() });
            }
            ProducerReport::Progress { instance, packets } => {
                let session = self.sessions.iter_mut().find(|session| session.instance == instance);
                session.into_iter().for_each(|session| session.packets = packets);
            }
            ProducerReport::Ended { instance, packets } => {
                self.sessions.retain(|session| session.instance != instance);
                end(&mut self.ended, packets);
            }
            ProducerReport::Trouble(trouble) => self.trouble = Some(trouble),
        }
    }

    pub fn packets(&self) -> PacketCounts {
        let mut sum = self.ended.1;
        self.sessions.iter().for_each(|session| sum += session.packets);
        sum
    }

    /// Returns a short status.
    pub fn summary(&self) -> String {
        match (&self.connection, self.sessions.len()) {
            (Err(why), _) if why.is_empty() => "connecting".to_owned(),
            (Err(_), _) => "no service".to_owned(),
            (Ok(_), count) => Counted(count as u64, "session").to_string(),
        }
    }

    /// Returns the status as sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![match &self.connection {
            Ok(address) => format!("Connected to the tracing service at {address}."),
            Err(why) if why.is_empty() => "Connecting to the tracing service.".to_owned(),
            Err(why) => format!("{why}. dn-top retries."),
        }];
        sentences.extend(self.trouble.as_ref().map(ToString::to_string));
        for Session { instance, processes, troubles, packets } in &self.sessions {
            let names = if processes.is_empty() { "nothing".to_owned() } else { processes.join(", ") };
            sentences.push(format!("Session {instance} records {names}: {packets}."));
            sentences.extend(troubles.iter().map(ToString::to_string));
        }
        match self.ended {
            (0, _) if self.sessions.is_empty() => sentences.push("No session has recorded the data source dotnet so far.".to_owned()),
            (0, _) => {}
            (count, packets) => sentences.push(format!("Ended: {}, {packets}.", Counted(count, "session"))),
        }
        sentences
    }
}

fn end((sessions, sum): &mut (u64, PacketCounts), packets: PacketCounts) {
    *sessions += 1;
    *sum += packets;
}
