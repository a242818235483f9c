//! HTTP requests among all activities: which event sources report the same request, its subject, its outcome, and the operations beneath it.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::{self, Write as _};

use crate::clr::{HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER};
use crate::nettrace::{Value, Values};
use crate::wire::Utf16;

const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
/// Providers of the steps of requests and of the layers below.
const LOWER_LAYER_PROVIDERS: [&str; 3] = ["System.Net.Sockets", "System.Net.Security", "System.Net.NameResolution"];
const REQUEST: &str = "Request";
/// Fields that differ per request or connection and do not describe the subject.
pub(super) const IDS: [&str; 5] = ["connectionId", "requestId", "httpVersion", "remoteEndPoint", "traceIdentifier"];

/// Role of an operation in the processing of an HTTP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layer {
    /// An outgoing request.
    Client,
    /// An incoming request.
    Server,
    /// The same incoming request as reported by Kestrel.
    Kestrel,
    /// A part of a request or an operation beneath it: a connection, a DNS lookup.
    Part,
    /// Unrelated to requests.
    #[default]
    Other,
}

impl Layer {
    /// Returns the provider and name of the operation that represents requests of this layer.
    pub(super) fn request(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Client => Some((HTTP_CLIENT_PROVIDER, REQUEST)),
            Self::Server => Some((HOSTING_PROVIDER, REQUEST)),
            Self::Kestrel | Self::Part | Self::Other => None,
        }
    }

    /// Returns the direction of requests; empty for other operations.
    pub fn direction(self) -> &'static str {
        match self {
            Self::Server => "in",
            Self::Client => "out",
            Self::Kestrel | Self::Part | Self::Other => "",
        }
    }

    pub(super) fn of(provider: &str, name: &str) -> Self {
        match (provider, name) {
            (HTTP_CLIENT_PROVIDER, REQUEST) => Self::Client,
            (HOSTING_PROVIDER, REQUEST) => Self::Server,
            (KESTREL, REQUEST) => Self::Kestrel,
            (HTTP_CLIENT_PROVIDER | HOSTING_PROVIDER | KESTREL, _) => Self::Part,
            (provider, _) if LOWER_LAYER_PROVIDERS.contains(&provider) => Self::Part,
            _ => Self::Other,
        }
    }

    /// Returns whether this outcome is a failure: any error status for outgoing requests, only server errors for incoming ones.
    pub fn is_failure(self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Unknown => false,
            Outcome::Status(status) => status >= if self == Self::Client { 400 } else { 500 },
            Outcome::Failed => true,
        }
    }
}

/// Outcome of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Outcome {
    /// The activity ended, but the stream has no outcome.
    #[default]
    Unknown,
    /// Ended with this status code.
    Status(u16),
    /// Ended without a response or with an exception.
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Failed => f.write_str("failed"),
        }
    }
}

impl Outcome {
    /// Parses a status code.
    pub(super) fn from_text(text: Utf16<'_>) -> Self {
        let status = text.chars().try_fold(0_u16, |status, c| status.checked_mul(10)?.checked_add(c.to_digit(10)? as u16));
        status.map_or(Self::Unknown, Self::Status)
    }

    /// Reads the outcome from the stop event of a request (System.Net.Http, .NET 8): its status, or -1 if there was no response.
    pub(super) fn from_stop_event(values: Values<'_>) -> Self {
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

/// Returns the operation marked as failed by an event with this name.
pub(super) fn failed_operation<'a>(provider: &str, event: &'a str) -> Option<&'a str> {
    match (provider, event) {
        (HOSTING_PROVIDER, "UnhandledException") => Some(REQUEST),
        _ => event.strip_suffix("Failed"),
    }
}

/// Route values that are not path segments: MVC and Razor Pages use them for selection.
const SELECTOR_KEYS: [&str; 4] = ["controller", "action", "area", "page"];

/// Replaces path segments with the names of their route values: `GET /orders/7` with `[id, 7]` becomes the route `GET /orders/{id}`.
pub(super) fn add_route(subject: &mut String, values: &str) {
    for pair in values.split("],[") {
        let pair = pair.strip_prefix('[').unwrap_or(pair);
        let Some((name, value)) = pair.strip_suffix(']').unwrap_or(pair).split_once(", ") else { continue };
        if value.is_empty() || SELECTOR_KEYS.contains(&name) {
            continue;
        }
        let is_segment =
            |at: &usize| subject[..*at].ends_with('/') && matches!(subject.as_bytes().get(at + value.len()), None | Some(b'/'));
        // If a value occurs in several places, the last one is the most likely.
        if let Some(at) = subject.rmatch_indices(value).map(|(at, _)| at).find(is_segment) {
            subject.replace_range(at..at + value.len(), "{}");
            subject.insert_str(at + 1, name);
        }
    }
}

/// Appends the subject of a request without a known route, with a placeholder for each path segment that is an identifier, so that requests
/// differing only in these have the same text: `GET /orders/7` becomes `GET /orders/{number}`.
pub(super) fn add_without_ids(text: &mut Vec<u8>, subject: &str) {
    // The host is not a path segment.
    let host = subject.find("://").filter(|at| subject.find('/') == Some(at + 1)).map_or(0, |at| at + 3);
    let path = subject[host..].find('/').map_or(subject.len(), |at| host + at);
    text.extend_from_slice(&subject.as_bytes()[..path]);
    // Kestrel puts the method after the path.
    for piece in subject[path..].split_inclusive(['/', ' ']) {
        let segment = piece.trim_end_matches(['/', ' ']);
        text.extend_from_slice(placeholder(segment).unwrap_or(segment).as_bytes());
        text.extend_from_slice(&piece.as_bytes()[segment.len()..]);
    }
}

/// Returns the placeholder for a segment that is an identifier.
fn placeholder(segment: &str) -> Option<&'static str> {
    /// Minimum number of hexadecimal digits, more than in any word.
    const HEX: usize = 16;
    const GUID: usize = 36;
    let bytes = segment.as_bytes();
    let is_of_guid = |(at, byte): (usize, &u8)| if [8, 13, 18, 23].contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    match bytes {
        [] => None,
        _ if bytes.iter().all(u8::is_ascii_digit) => Some("{number}"),
        _ if bytes.len() == GUID && bytes.iter().enumerate().all(is_of_guid) => Some("{guid}"),
        _ if bytes.len() >= HEX && bytes.iter().all(u8::is_ascii_hexdigit) => Some("{hex}"),
        _ if is_token(bytes) => Some("{token}"),
        _ => None,
    }
}

/// Returns whether a segment looks like random data in Base64, Base32 or similar: long, and alternating between lower case, upper case and
/// digits more often than words do. The capital letter at the start of a word does not count as a change.
fn is_token(segment: &[u8]) -> bool {
    /// Minimum length without `-`, which joins the words of a name.
    const LENGTH: usize = 24;
    let is_change = |before: u8, after: u8| {
        let begins_word = before.is_ascii_uppercase() && after.is_ascii_lowercase();
        let class = |byte: u8| (byte.is_ascii_lowercase(), byte.is_ascii_uppercase());
        before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric() && class(before) != class(after) && !begins_word
    };
    let (mut length, mut changes, mut has_digit) = (0_usize, 0, false);
    let (mut rest, mut before) = (segment, b'-');
    while let [byte, behind @ ..] = rest {
        (rest, before) = match behind {
            // Percent-encoded, as the letters of most languages are: its digits are not part of a token.
            [high, low, behind @ ..] if *byte == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => (behind, b'-'),
            _ if byte.is_ascii_alphanumeric() || b"-_.~=+".contains(byte) => {
                length += usize::from(*byte != b'-');
                changes += usize::from(is_change(before, *byte));
                has_digit |= byte.is_ascii_digit();
                (behind, *byte)
            }
            _ => return false,
        };
    }
    length >= LENGTH && changes * 4 >= length && (has_digit || changes * 3 >= length)
}

/// Appends the URL of an outgoing request without its query, which differs from request to request. Returns `false` if there is none.
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
    let is_default_port = [("http", 80), ("https", 443)].contains(&(&subject[start..], port));
    subject.push_str("://");
    let is_v6 = host.chars().any(|c| c == ':');
    subject.push_str(if is_v6 { "[" } else { "" });
    add(subject, host, room);
    subject.push_str(if is_v6 { "]" } else { "" });
    if !is_default_port && port > 0 {
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

/// Appends an address formatted by .NET, `InterNetwork:16:{31,144,127,0,0,1,..}` (RFC 2553 structures without their family), in the usual
/// notation: `127.0.0.1:8080`. Returns `false` if it is not an address.
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
    fn socket_addresses_are_parsed() {
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
    fn route_values_turn_paths_into_routes() {
        for (subject, values, route) in [
            ("GET /orders/7", "[id, 7]", "GET /orders/{id}"),
            ("GET /a/7/b/8", "[x, 7],[y, 8]", "GET /a/{x}/b/{y}"),
            ("GET /files/a/b.txt", "[path, a/b.txt]", "GET /files/{path}"),
            ("GET /7/7", "[id, 7]", "GET /7/{id}"),
            ("GET /orders/get", "[action, get],[controller, orders]", "GET /orders/get"),
            ("GET /orders/70", "[id, 7]", "GET /orders/70"),
            ("GET /x7/a", "[id, 7]", "GET /x7/a"),
            ("GET /é/日", "[id, 日]", "GET /é/{id}"),
            ("GET /orders", "[id, ]", "GET /orders"),
            ("GET /orders", "", "GET /orders"),
            ("GET /a", "][,], [ , ],[", "GET /a"),
            ("", "[id, 7]", ""),
        ] {
            let mut subject = subject.to_owned();
            add_route(&mut subject, values);
            assert_eq!(subject, route, "{values}");
        }
    }

    #[test]
    fn identifiers_in_paths_become_placeholders() {
        for (subject, text) in [
            ("GET /orders/7", "GET /orders/{number}"),
            ("GET /7/8/", "GET /{number}/{number}/"),
            ("GET /a/0d6ad7a5-7d3c-4b1e-9f0a-2b7d1c9e8f10/b", "GET /a/{guid}/b"),
            ("GET /a/0123456789abcDEF", "GET /a/{hex}"),
            ("GET /a/0d6ad7a57d3c4b1e9f0a2b7d1c9e8f10", "GET /a/{hex}"),
            ("GET /s/9bJ2xQeT7uK0aLmZ4vR1wg==/x", "GET /s/{token}/x"),
            ("GET /s/dQw4w9WgXcQ-_zPq81LmNv7Rk", "GET /s/{token}"),
            ("GET /s/9bJ2xQeT7uK0aLmZ4vR1wgXy5t%3D%3D/x", "GET /s/{token}/x"),
            ("GET /s/01ARZ3NDEKTSV4RRFFQ69G5FAV", "GET /s/{token}"),
            // As many changes as a token with digits.
            ("GET /s/ggGGggGGggGGggGGggGGggGG", "GET /s/ggGGggGGggGGggGGggGGggGG"),
            ("GET /s/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N", "GET /s/{token}"),
            ("/orders/7 GET", "/orders/{number} GET"),
            ("GET http://shop:8080/orders/7", "GET http://shop:8080/orders/{number}"),
            ("https://1234567890123456/7", "https://1234567890123456/{number}"),
            ("GET /7/http://shop/8", "GET /{number}/http://shop/{number}"),
            // Words, versions, and segments that only start like an identifier.
            ("GET /v1/facade/2024-01-02", "GET /v1/facade/2024-01-02"),
            ("GET /0123456789abcde", "GET /0123456789abcde"),
            ("GET /0d6ad7a5-7d3c-4b1e-9f0a-2b7d1c9e8f1x", "GET /{token}"),
            ("GET /7.json", "GET /7.json"),
            ("GET /getOrdersByCustomerIdAndDate2", "GET /getOrdersByCustomerIdAndDate2"),
            ("GET /Getting-Started-With-Dotnet9-Release", "GET /Getting-Started-With-Dotnet9-Release"),
            ("GET /bootstrap-5.3.2-dist.bundle.min.js", "GET /bootstrap-5.3.2-dist.bundle.min.js"),
            ("GET /report-2024-01-02T10-20-30Z-v2", "GET /report-2024-01-02T10-20-30Z-v2"),
            ("GET /%D0%9C%D0%BE%D1%81%D0%BA%D0%B2%D0%B0", "GET /%D0%9C%D0%BE%D1%81%D0%BA%D0%B2%D0%B0"),
            ("GET /%D0%9A%D0%B0%D0%B7%D0%B0%D0%BD%D1%8C/7", "GET /%D0%9A%D0%B0%D0%B7%D0%B0%D0%BD%D1%8C/{number}"),
            ("GET /%D0%A0%D0%BE%D1%81%D1%81%D0%B8%D1%8F", "GET /%D0%A0%D0%BE%D1%81%D1%81%D0%B8%D1%8F"),
            ("GET /iPhone14ProMax256GBBlue", "GET /iPhone14ProMax256GBBlue"),
            ("GET /B2B-S3-EC2-x86-64-v2-to-v3", "GET /B2B-S3-EC2-x86-64-v2-to-v3"),
            // A percent sign that does not encode anything.
            ("GET /9bJ2xQeT7uK0aLmZ4vR1wgXy5t%3", "GET /9bJ2xQeT7uK0aLmZ4vR1wgXy5t%3"),
            ("x:/é/7", "x:/é/{number}"),
            ("GET http://7", "GET http://7"),
            ("", ""),
        ] {
            let mut bytes = Vec::new();
            add_without_ids(&mut bytes, subject);
            assert_eq!(String::from_utf8(bytes).unwrap(), text);
        }
    }

    #[test]
    fn failures_are_distinguished_from_responses() {
        for (text, outcome) in [("404", Outcome::Status(404)), ("70000", Outcome::Unknown), ("NotFound", Outcome::Unknown)] {
            let mut bytes = Vec::new();
            bytes.put_utf16z(text);
            assert_eq!(Outcome::from_text(Utf16::new(&bytes[..bytes.len() - 2])), outcome);
        }
        assert!(Layer::Client.is_failure(Outcome::Status(404)) && !Layer::Server.is_failure(Outcome::Status(404)));
        assert!(Layer::Server.is_failure(Outcome::Status(500)) && Layer::Part.is_failure(Outcome::Failed));
    }
}
