//! What libraries report through `DiagnosticSource`, commands to a database above all: one event source hands it on, under names that mean nothing
//! (`Activity1`), so that what it is and what it is about have to be looked for in the payload.

use super::http::{Layer, Outcome};
use crate::nettrace::{Value, Values};
use crate::wire::Utf16;

/// The event source that hands it on.
pub(super) const PROVIDER: &str = "Microsoft-Diagnostics-DiagnosticSource";
/// Arguments that mean nothing, differ from command to command, or are too private for a screen.
const UNTOLD: [&str; 5] = ["ConnectionId", "ConnectionString", "CommandType", "CommandTimeout", "ServerVersion"];

/// The library: the name of its listener.
pub(super) fn source<'a>(values: Values<'a>) -> Option<Utf16<'a>> {
    text(values, "SourceName")
}

/// What an event in a request has of it. The arguments have the names that the profiles `http` and `slow` give them.
#[derive(Debug, Default)]
pub(super) struct RequestDetail<'a> {
    pub(super) method: Option<Utf16<'a>>,
    /// Route values as `[name, value],[name, value]`.
    pub(super) route_values: Option<Utf16<'a>>,
    pub(super) outcome: Outcome,
}

impl<'a> RequestDetail<'a> {
    /// What it is to a request, and what it has of it; `None` where it is not of a library that sends or serves requests.
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
                _ if key == *"StatusCode" => detail.outcome = Outcome::of_text(value),
                _ => {}
            }
        }
        Some((layer, detail))
    }
}

/// Appends what it is about, no more than `room` bytes or so: the text of the command where it is known, else its other arguments.
pub(super) fn add_subject(subject: &mut String, values: Values<'_>, room: usize) {
    let command = arguments(values.clone()).find(|(key, _)| *key == *"CommandText").map(|(_, value)| value);
    let others = arguments(values).filter(|(key, _)| !UNTOLD.iter().any(|untold| *key == **untold)).map(|(_, value)| value);
    for reported in command.into_iter().chain(others.take(if command.is_some() { 0 } else { usize::MAX })) {
        if !subject.is_empty() {
            subject.push(' ');
        }
        // A command of many lines is one line of a list.
        let line = reported.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
        subject.extend(line.take(room.saturating_sub(subject.len())));
    }
}

/// The requested arguments, as names and values.
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
