//! The latest messages of `ILogger`, newest first.

use super::{Cell, Descriptor, Figure, Fit, Head, Line, Look, Recorded, Role, Shows, Side, TabList, Table, View, at};
use crate::analysis::{LEVELS, LogMessage};
use crate::app::Tab;
use crate::app::text::width;
use crate::diagnosis::Source;
use crate::model::{Count, CountRate};

pub(super) const TAB: Descriptor =
    Descriptor::new(["Logs", "Logs", "Log"], Shows::Recording(Recorded { view, sources: &[Source::Logs], live: None }));

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let logs = &look.analysis.snapshot.logs;
    let messages: Vec<&LogMessage> = logs.recent.iter().collect();
    let count: u64 = logs.by_level.iter().sum();
    let mut figures = Vec::new();
    if count > 0 {
        figures.push(Figure::new("rate", CountRate(look.rate(count, logs.rate)), Role::Strong));
    }
    for (level, count) in logs.by_level.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
        figures.push(Figure::new(LEVELS[level], Count(*count), role(level)));
    }

    let longest = messages.iter().map(|message| width(&message.logger)).max().unwrap_or(0).clamp(6, 32);
    let TabList { list, cursor, selected } = Table::new(messages, |message| format!("{} {} {}", message.at, message.thread, message.text))
        .column("AT", 7, Fit::Right, |message| Cell::new(at(message.at), Role::Dim))
        .column("LEVEL", 8, Fit::Left, |message| Cell::new(LEVELS.get(message.level).copied().unwrap_or_default(), role(message.level)))
        .column("MESSAGE", 0, Fit::Left, |message| {
            Cell::new(&message.text, if message.level > 2 { role(message.level) } else { Role::Text })
        })
        .column("LOGGER", longest, Fit::Name, |message| Cell::new(&message.logger, Role::Dim))
        .place(look.state, Tab::Logs);

    View {
        head: vec![Head::Figures(figures)],
        empty: look.empty(count == 0, Source::Logs, "No kept message matches the filter."),
        side: selected.map(|message| Side::text(message_lines(message))),
        copy: selected
            .map(|message| ("message", format!("{}: {}\n{}", message.logger, message.text, logged_exception(&message.exception)))),
        ..View::new(list, cursor, "")
    }
}

fn message_lines(message: &LogMessage) -> Vec<Line> {
    let facts = format!("   thread {}   event {}", message.thread, message.event_id);
    let mut lines = vec![vec![(message.logger.clone(), Role::Accent), (facts, Role::Dim)], vec![(message.text.clone(), Role::Text)]];
    lines.extend(logged_exception(&message.exception).lines().map(|line| vec![(line.to_owned(), Role::Warning)]));
    lines.extend(arguments(&message.arguments));
    lines
}

/// Returns the text of an exception that is logged as JSON, with its stack. The JSON may be cut, also within an escape sequence. Not sanitized.
pub fn logged_exception(json: &str) -> String {
    const LONGEST_ESCAPE: usize = "\\ud83d\\ude00".len();
    let starts = (0..=LONGEST_ESCAPE).filter_map(|cut| json.get(..json.len().checked_sub(cut)?));
    let mut whole = std::iter::once(json.to_owned()).chain(starts.map(|start| format!("{start}\"}}")));
    let parsed = whole.find_map(|json| serde_json::from_str::<serde_json::Value>(&json).ok());
    let field = |name| parsed.as_ref().and_then(|parsed| parsed.get(name)?.as_str()).filter(|text| !text.is_empty());
    field("VerboseMessage").or_else(|| field("Message")).unwrap_or(json).to_owned()
}

/// Formats the structured fields, one per line; unparsed if they were truncated.
fn arguments(json: &str) -> Vec<Line> {
    use serde_json::Value;
    match serde_json::from_str::<serde_json::Map<String, Value>>(json) {
        Ok(fields) => {
            let text = |value: Value| if let Value::String(text) = value { text } else { value.to_string() };
            fields.into_iter().map(|(name, value)| vec![(format!("{name} "), Role::Dim), (text(value), Role::Text)]).collect()
        }
        Err(_) if json.is_empty() => Vec::new(),
        Err(_) => vec![vec![("fields ".to_owned(), Role::Dim), (json.to_owned(), Role::Text)]],
    }
}

fn role(level: usize) -> Role {
    match level {
        0 | 1 => Role::Dim,
        2 => Role::Good,
        3 => Role::Warning,
        _ => Role::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_fields_are_shown_one_per_line() {
        let shown = |json: &str| -> Vec<String> {
            arguments(json).into_iter().map(|line| line.into_iter().map(|(text, _)| text).collect()).collect()
        };
        let json = r#"{"Number":"17","Total":2.5,"{OriginalFormat}":"Order {Number}"}"#;
        assert_eq!(shown(json), ["Number 17", "Total 2.5", "{OriginalFormat} Order {Number}"]);
        assert_eq!(shown(r#"{"b":"1","a":"2"}"#), ["b 1", "a 2"], "in the order of the message");
        assert_eq!(shown(""), [""; 0]);
        assert_eq!(shown("{}"), [""; 0]);
        assert_eq!(shown(r#"{"Number":"1"#), [r#"fields {"Number":"1"#]);
    }

    #[test]
    fn logged_exception_is_shown_with_its_stack_also_if_it_is_cut() {
        let json = r#"{"TypeName":"A.B","Message":"m","HResult":"-1","VerboseMessage":"A.B: \u0022\ud83d\ude00\u0022\r\n   at C.D()"}"#;
        let whole = "A.B: \"😀\"\r\n   at C.D()";
        assert_eq!(logged_exception(json), whole);
        let start = json.find("A.B: ").unwrap();
        for end in start + 1..json.len() {
            let text = logged_exception(&json[..end]);
            assert!(whole.starts_with(&text), "{end}: {text}");
        }
        for other in ["", "{}", "{\"TypeName\":\"", "[1]", "é"] {
            assert_eq!(logged_exception(other), other);
        }
    }
}
