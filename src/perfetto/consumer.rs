//! The consumer port: its methods, and the state of a service.
//!
//! Source: the specification "Tracing API and ABI", and `protos/perfetto/ipc/consumer_port.proto`, `common/tracing_service_state.proto`.

use super::call::Method;
use super::read::{Malformed, fields};

/// The methods that this program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the method of that name")]
pub enum ConsumerMethod {
    EnableTracing,
    DisableTracing,
    ReadBuffers,
    FreeBuffers,
    Flush,
    GetTraceStats,
    QueryServiceState,
}

impl Method for ConsumerMethod {
    const PORT: &'static str = "ConsumerPort";
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::EnableTracing, "EnableTracing"),
        (Self::DisableTracing, "DisableTracing"),
        (Self::ReadBuffers, "ReadBuffers"),
        (Self::FreeBuffers, "FreeBuffers"),
        (Self::Flush, "Flush"),
        (Self::GetTraceStats, "GetTraceStats"),
        (Self::QueryServiceState, "QueryServiceState"),
    ];
}

/// State of a service. Text is not sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceState {
    /// Version for display: it does not indicate capabilities.
    pub version: String,
    /// Connected producers.
    pub producers: Vec<ProducerState>,
    /// Names of data sources, each with the ID of its producer.
    pub data_sources: Vec<(String, u32)>,
    /// Recordings (tracing sessions).
    pub sessions: Vec<SessionState>,
}

/// State of a producer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProducerState {
    /// Producer ID.
    pub id: u32,
    /// Name of the producer.
    pub name: String,
    /// Process ID; 0 if unknown.
    pub pid: u32,
    /// User ID of the process.
    pub uid: u32,
    /// Version for display.
    pub version: String,
}

/// State of a recording (tracing session).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionState {
    /// Session ID.
    pub id: u64,
    /// ID of the user that started it.
    pub uid: u32,
    /// State, such as `STARTED`.
    pub state: String,
    /// Name; may be empty.
    pub name: String,
    /// Total size of all buffers, in kilobytes.
    pub buffer_kb: u64,
    /// Requested duration in milliseconds; 0 if unlimited.
    pub duration_ms: u64,
    /// Number of participating data sources.
    pub data_sources: u32,
}

impl ServiceState {
    /// Adds a reply to `QueryServiceState`: a state consists of one or more parts.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn add(&mut self, reply: &[u8]) -> Result<(), Malformed> {
        for field in fields(reply) {
            let (1, state) = field? else { continue };
            for field in fields(state.bytes()?) {
                match field? {
                    (1, value) => self.producers.push(producer(value.bytes()?)?),
                    (2, value) => self.data_sources.push(data_source(value.bytes()?)?),
                    (5, value) => self.version = value.text()?,
                    (6, value) => self.sessions.push(session(value.bytes()?)?),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn producer(bytes: &[u8]) -> Result<ProducerState, Malformed> {
    let fields = fields(bytes);
    Ok(ProducerState { id: fields.int(1)?, name: fields.text(2)?, uid: fields.int(3)?, version: fields.text(4)?, pid: fields.int(5)? })
}

fn data_source(bytes: &[u8]) -> Result<(String, u32), Malformed> {
    let source = fields(bytes);
    Ok((fields(source.bytes(1)?).text(1)?, source.int(2)?))
}

fn session(bytes: &[u8]) -> Result<SessionState, Malformed> {
    let mut this = SessionState::default();
    for field in fields(bytes) {
        match field? {
            (1, value) => this.id = value.number()?,
            (2, value) => this.uid = value.int()?,
            (3, value) => this.state = value.text()?,
            (4, value) => this.name = value.text()?,
            (5, value) => this.buffer_kb = this.buffer_kb.saturating_add(value.number().unwrap_or(0)),
            (6, value) => this.duration_ms = value.number()?,
            (7, value) => this.data_sources = value.int()?,
            _ => {}
        }
    }
    Ok(this)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::Message;

    /// P13, S4: parts are merged, and unknown fields are skipped.
    #[test]
    fn p13_s4_service_state_is_merged_from_parts() {
        let part = |fill: &dyn Fn(&mut Message<'_>)| Message::encode(|reply| reply.message(1, fill));
        let mut state = ServiceState::default();
        let first = part(&|state| {
            state.text(5, "Perfetto v56.0");
            state.message(1, |producer| {
                producer.uint(1, 3);
                producer.text(2, "dn-top");
                producer.uint(5, 4242);
                producer.text(99, "new");
            });
            state.message(2, |source| {
                source.message(1, |descriptor| descriptor.text(1, "dotnet"));
                source.uint(2, 3);
            });
        });
        let second = part(&|state| {
            state.message(6, |session| {
                session.uint(1, 7);
                session.text(3, "STARTED");
                session.uint(5, 1024);
                session.uint(5, 32);
            });
        });
        state.add(&first).unwrap();
        state.add(&second).unwrap();
        let producer = ProducerState { id: 3, name: "dn-top".to_owned(), pid: 4242, ..ProducerState::default() };
        let session = SessionState { id: 7, state: "STARTED".to_owned(), buffer_kb: 1056, ..SessionState::default() };
        let expected = ServiceState {
            version: "Perfetto v56.0".to_owned(),
            producers: vec![producer],
            data_sources: vec![("dotnet".to_owned(), 3)],
            sessions: vec![session],
        };
        assert_eq!(state, expected);
    }
}
