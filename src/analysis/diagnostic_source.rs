//! Events that libraries publish through `DiagnosticSource`, mainly database commands. A single event source forwards them under generic names
//! (`Activity1`), so the operation and its subject have to be read from the payload.

use super::http::{Layer, Outcome};
use crate::nettrace::{Value, Values};
use crate::wire::Utf16;

/// Arguments that are meaningless, differ with every command, or are too private for a screen.
const IGNORED_ARGUMENTS: [&str; 5] = ["ConnectionId", "ConnectionString", "CommandType", "CommandTimeout", "ServerVersion"];

/// Returns the library: the name of its listener.
pub(super) fn source<'a>(values: Values<'a>) -> Option<Utf16<'a>> {
    text(values, "SourceName")
}

/// Data of an event within a request. The argument names are those assigned by the profiles `http` and `slow`.
#[derive(Debug, Default)]
pub(super) struct RequestDetail<'a> {
    pub(super) method: Option<Utf16<'a>>,
    /// Route values as `[name, value],[name, value]`.
    pub(super) route_values: Option<Utf16<'a>>,
    pub(super) outcome: Outcome,
}

impl<'a> RequestDetail<'a> {
    /// Reads the layer and the details; `None` if the library neither sends nor serves requests.
    pub(super) fn read(values: Values<'a>) -> Option<(Layer, Self)> {
        let source = source(values.clone())?;
        let layer = [("Microsoft.AspNetCore", Layer::Server), ("HttpHandlerDiagnosticListener", Layer::Client)]
            .into_iter()
            .find_map(|(name, layer)| (source == *name).then_some(layer))?;
        let mut detail = Self::default();
        for (key, value) in arguments(values) {
            match key {
                _ if key == *"Method" => detail.method = Some(value),
                _ if key == *"RouteValues" => detail.route_values = Some(value),
                _ if key == *"StatusCode" => detail.outcome = Outcome::from_text(value),
                _ => {}
            }
        }
        Some((layer, detail))
    }
}

/// Appends the subject, up to about `room` bytes: the command text if present, otherwise the other arguments.
pub(super) fn add_subject(subject: &mut String, values: Values<'_>, room: usize) {
    let command = arguments(values.clone()).find(|(key, _)| *key == *"CommandText").map(|(_, value)| value);
    let others = arguments(values).filter(|(key, _)| !IGNORED_ARGUMENTS.iter().any(|ignored| *key == **ignored)).map(|(_, value)| value);
    for reported in command.into_iter().chain(others.take(if command.is_some() { 0 } else { usize::MAX })) {
        if subject.len() >= room {
            return;
        }
        if !subject.is_empty() {
            subject.push(' ');
        }
        // Multi-line commands are shown in a single line.
        let line = reported.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
        subject.extend(line.take(room.saturating_sub(subject.len())));
    }
}

/// Returns the requested arguments as names and values.
fn arguments<'a>(values: Values<'a>) -> impl Iterator<Item = (Utf16<'a>, Utf16<'a>)> {
    let elements = values.into_iter().filter_map(|(_, value)| if let Value::Array(elements) = value { Some(elements) } else { None });
    elements.flatten().filter_map(|element| {
        let Value::Object(pair) = element else { return None };
        Some((text(pair.clone(), "Key")?, text(pair, "Value").filter(|value| !value.is_empty())?))
    })
}

fn text<'a>(values: Values<'a>, name: &str) -> Option<Utf16<'a>> {
    values.into_iter().find_map(|(field, value)| match value {
        Value::Text(text) if field.name == name => Some(text),
        _ => None,
    })
}
