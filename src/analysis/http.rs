//! What is special about HTTP requests, and what is beneath them, among all that begins and ends: which event sources report the same request, what a
//! request is about, and how it ended.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::Write as _;

use crate::nettrace::{Value, Values};
use crate::wire::Utf16;

const CLIENT: &str = "System.Net.Http";
const SERVER: &str = "Microsoft.AspNetCore.Hosting";
const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
/// Providers of steps of requests, and of what lies beneath them.
const BENEATH: [&str; 3] = ["System.Net.Sockets", "System.Net.Security", "System.Net.NameResolution"];
const REQUEST: &str = "Request";
/// Fields that differ from request to request, or from connection to connection, and say nothing of what these are about.
const IDS: [&str; 5] = ["connectionId", "requestId", "httpVersion", "remoteEndPoint", "traceIdentifier"];

/// What an operation is to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// A request that the process sends.
    Client,
    /// A request that it serves.
    Server,
    /// The same request once more, as Kestrel reports it.
    Kestrel,
    /// A part of a request, or what it takes: a connection, a name to look up.
    Part,
    /// Nothing of a request: an operation of its own.
    Other,
}

impl Layer {
    pub(super) fn of(provider: &str, name: &str) -> Self {
        match (provider, name) {
            (CLIENT, REQUEST) => Self::Client,
            (SERVER, REQUEST) => Self::Server,
            (KESTREL, REQUEST) => Self::Kestrel,
            (CLIENT | SERVER | KESTREL, _) => Self::Part,
            (provider, _) if BENEATH.contains(&provider) => Self::Part,
            _ => Self::Other,
        }
    }

    /// Whether a request that ended so has failed: one that is sent by any error status, one that is served by those that are the server's fault.
    pub fn is_failure(self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Unknown => false,
            Outcome::Status(status) => status >= if self == Self::Client { 400 } else { 500 },
            Outcome::Failed => true,
        }
    }
}

/// How an activity ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Outcome {
    /// It ended; how is not in the stream.
    #[default]
    Unknown,
    /// With this status code.
    Status(u16),
    /// Without an answer, or by an exception.
    Failed,
}

impl Outcome {
    /// As the start of a key.
    pub(super) fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::Unknown => 0,
            Self::Status(status) => status.clamp(1, u16::MAX - 1),
            Self::Failed => u16::MAX,
        }
        .to_le_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; 2]) -> Self {
        match u16::from_le_bytes(bytes) {
            0 => Self::Unknown,
            u16::MAX => Self::Failed,
            status => Self::Status(status),
        }
    }

    /// What the end of a request says (System.Net.Http, .NET 8): its status, or -1 where none came.
    pub(super) fn of_stop(values: Values<'_>) -> Self {
        let status = values.into_iter().find_map(|(field, value)| match value {
            Value::Int(status) if field.name == "statusCode" => Some(status),
            _ => None,
        });
        match status {
            None => Self::Unknown,
            Some(status) => u16::try_from(status).map_or(Self::Failed, Self::Status),
        }
    }
}

/// The operation of which an event of this name says that it failed.
pub(super) fn failed_operation<'a>(provider: &str, event: &'a str) -> Option<&'a str> {
    match (provider, event) {
        (SERVER, "UnhandledException") => Some(REQUEST),
        _ => event.strip_suffix("Failed"),
    }
}

/// Appends the URL of a request that is sent, without what follows its path: that differs from request to request. `false` where there is none.
pub(super) fn add_url(subject: &mut String, values: Values<'_>, room: usize) -> bool {
    let (mut scheme, mut host, mut path, mut port) = (None, None, None, 0);
    for (field, value) in values {
        match (field.name.as_str(), value) {
            ("scheme", Value::Text(text)) => scheme = Some(text),
            ("host", Value::Text(text)) => host = Some(text),
            ("pathAndQuery", Value::Text(text)) => path = Some(text),
            ("port", Value::Int(number)) => port = number,
            _ => {}
        }
    }
    let (Some(scheme), Some(host)) = (scheme, host) else { return false };
    let start = subject.len();
    add(subject, scheme, room);
    let usual = [("http", 80), ("https", 443)].contains(&(&subject[start..], port));
    subject.push_str("://");
    let is_v6 = host.chars().any(|c| c == ':');
    subject.push_str(if is_v6 { "[" } else { "" });
    add(subject, host, room);
    subject.push_str(if is_v6 { "]" } else { "" });
    if !usual && port > 0 {
        let _ = write!(subject, ":{port}");
    }
    if let Some(path) = path {
        let room = room.saturating_sub(subject.len());
        subject.extend(path.chars().take_while(|c| *c != '?').take(room));
    }
    true
}

fn add(subject: &mut String, text: Utf16<'_>, room: usize) {
    let room = room.saturating_sub(subject.len());
    subject.extend(text.chars().take(room));
}

/// Whether a field says nothing of what an activity is about.
pub(super) fn is_id(field: &str) -> bool {
    IDS.contains(&field)
}

/// Appends an address as .NET writes it, `InterNetwork:16:{31,144,127,0,0,1,..}` (RFC 2553 structures without their family), the way people do:
/// `127.0.0.1:8080`. `false` where it is none.
pub(super) fn add_address(subject: &mut String, text: Utf16<'_>) -> bool {
    const V4: &str = "InterNetwork:";
    const V6: &str = "InterNetworkV6:";
    let starts_with = |start: &str| text.chars().zip(start.chars()).filter(|(a, b)| a == b).count() == start.len();
    let is_v6 = starts_with(V6);
    if !is_v6 && !starts_with(V4) {
        return false;
    }
    let mut bytes = [0_u8; 28];
    let (mut count, mut number) = (0, 0_u32);
    for c in text.chars().skip_while(|c| *c != '{').skip(1) {
        match (c, c.to_digit(10)) {
            (_, Some(digit)) => number = number.saturating_mul(10).saturating_add(digit),
            _ => {
                let Some(byte) = bytes.get_mut(count) else { return false };
                *byte = u8::try_from(number).unwrap_or(0);
                (count, number) = (count + 1, 0);
            }
        }
    }
    let port = u16::from_be_bytes([bytes[0], bytes[1]]);
    let v4 = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let v6 = || Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[6..22]).unwrap_or_default());
    let _ = match (is_v6, count) {
        (false, 6..) => write!(subject, "{}", v4(2)),
        (true, 22..) => match v6().to_ipv4_mapped() {
            Some(mapped) => write!(subject, "{mapped}"),
            None => write!(subject, "[{}]", v6()),
        },
        _ => return false,
    };
    if port != 0 {
        let _ = write!(subject, ":{port}");
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Put;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("InterNetwork:16:{0,0,127,0,0,1,0,0,0,0,0,0,0,0}", Some("127.0.0.1")),
            ("InterNetwork:16:{31,144,10,0,0,7,0,0,0,0,0,0,0,0}", Some("10.0.0.7:8080")),
            ("InterNetworkV6:28:{163,19,0,0,0,0,0,0,0,0,0,0,0,0,0,0,255,255,127,0,0,1,0,0,0,0}", Some("127.0.0.1:41747")),
            ("InterNetworkV6:28:{1,187,0,0,0,0,32,1,13,184,0,0,0,0,0,0,0,0,0,0,0,1,0,0,0,0}", Some("[2001:db8::1]:443")),
            ("InterNetworkV6:28:{1}", None),
            ("InterNetwork:", None),
            ("Unix:/run/a", None),
            ("", None),
        ] {
            let (mut bytes, mut subject) = (Vec::new(), String::new());
            bytes.put_utf16z(text);
            let known = add_address(&mut subject, Utf16::new(&bytes[..bytes.len() - 2]));
            assert_eq!(known.then_some(subject.as_str()), expected, "{text}");
        }
    }

    #[test]
    fn outcomes_keep_as_keys() {
        for outcome in [Outcome::Unknown, Outcome::Status(200), Outcome::Status(503), Outcome::Failed] {
            assert_eq!(Outcome::from_bytes(outcome.to_bytes()), outcome);
        }
        assert!(Layer::Client.is_failure(Outcome::Status(404)) && !Layer::Server.is_failure(Outcome::Status(404)));
        assert!(Layer::Server.is_failure(Outcome::Status(500)) && Layer::Part.is_failure(Outcome::Failed));
    }
}
