//! Messages that the application logs with `ILogger`.

use crate::nettrace::{Field, FieldType, ThreadId, Value};
use crate::sorting::CompactSort;
use crate::wire::Utf16;

use super::event_context::EventContext;
use super::latest::Latest;
use super::{Occurrence, Timeline};

/// Maximum number of messages kept.
const RECENT: usize = 500;
/// Maximum length of a message, in characters.
const MESSAGE: usize = 1000;
/// Maximum length of an exception with its stack, in characters.
const EXCEPTION: usize = 4000;
/// Maximum length of the structured fields of a message, in characters.
const ARGUMENTS: usize = 2000;
/// The field that is missing from messages without an event name, and the maximum number of texts read from it on.
const EVENT_NAME: &str = "EventName";
const TEXTS: usize = 8;

/// Keeps the latest messages and counts all of them.
#[derive(Debug, Default)]
pub(super) struct Logs {
    by_level: [u64; LEVELS.len()],
    over_time: Timeline,
    recent: Latest<LogMessage, RECENT>,
    filter: LogFilter,
}

/// Names of the log levels, by number.
pub const LEVELS: [&str; 7] = ["trace", "debug", "info", "warn", "error", "critical", "none"];

/// Which log messages are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Lowest level, as an index into [`LEVELS`].
    pub level: usize,
    /// Beginnings of logger categories, in any case; empty for all categories.
    pub categories: Vec<String>,
}

impl LogFilter {
    fn passes(&self, level: usize, logger: Utf16<'_>) -> bool {
        let begins = |category: &String| {
            let mut letters = logger.chars().flat_map(char::to_lowercase);
            category.chars().flat_map(char::to_lowercase).all(|expected| letters.next() == Some(expected))
        };
        level >= self.level && (self.categories.is_empty() || self.categories.iter().any(begins))
    }
}

/// Log messages of a recording.
#[derive(Debug, Clone)]
pub struct LogSnapshot {
    /// Number of messages by level, whether they are kept or not; see [`LEVELS`].
    pub by_level: [u64; LEVELS.len()],
    /// Messages per second over the last ten seconds.
    pub rate: f64,
    /// The latest messages, newest first; at most 500.
    pub recent: Vec<LogMessage>,
}

/// A log message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogMessage {
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// The logging thread.
    pub thread: ThreadId,
    /// Index into [`LEVELS`].
    pub level: usize,
    /// Logger category; not sanitized.
    pub logger: String,
    /// Event ID assigned by the application; 0 if there is none.
    pub event_id: i64,
    /// Start of the formatted message; not sanitized.
    pub text: String,
    /// Start of the exception as JSON; empty if there is none. Not sanitized.
    pub exception: String,
    /// Start of the structured fields as a JSON object; empty if they were not recorded. Not sanitized.
    pub arguments: String,
}

/// The parts of a message in use. Its fields differ between versions of the library.
#[derive(Default)]
struct Parts<'a> {
    level: i64,
    logger: Utf16<'a>,
    event_id: i64,
    text: Utf16<'a>,
    exception: Utf16<'a>,
    arguments: Utf16<'a>,
    /// The texts from the event name on, and their number.
    texts: [Utf16<'a>; TEXTS],
    count: usize,
}

impl<'a> Parts<'a> {
    /// Assigns the texts from the event name on to their fields.
    ///
    /// .NET Core 3.x writes a null name as no bytes instead of an empty text: then there is one text fewer than fields, and each text belongs
    /// to the field after it.
    fn assign_texts(&mut self, fields: &[Field]) {
        let texts = || fields.iter().filter(|field| field.kind == FieldType::String);
        let missing = usize::from(texts().count().min(TEXTS) == self.count + 1);
        for (field, text) in texts().skip(missing).zip(&self.texts[..self.count]) {
            match field.name.as_str() {
                "FormattedMessage" => self.text = *text,
                "ExceptionJson" if *text != *"{}" => self.exception = *text,
                "ArgumentsJson" => self.arguments = *text,
                _ => {}
            }
        }
    }
}

impl Logs {
    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        let mut parts = Parts::default();
        let mut named = false;
        let fields = &context.event.metadata.fields;
        let from = fields.iter().position(|field| field.name == EVENT_NAME).unwrap_or(fields.len());
        for (at, (field, value)) in context.event.values().enumerate() {
            match (field.name.as_str(), value) {
                (_, Value::Text(text)) if at >= from => {
                    if let Some(place) = parts.texts.get_mut(parts.count) {
                        *place = text;
                        parts.count += 1;
                    }
                }
                ("Level", Value::Int(level)) => parts.level = level,
                ("LoggerName", Value::Text(name)) => {
                    parts.logger = name;
                    named = true;
                }
                ("EventId", Value::Int(id)) => parts.event_id = id,
                ("FormattedMessage", Value::Text(text)) => parts.text = text,
                ("ExceptionJson", Value::Text(text)) if text != *"{}" => parts.exception = text,
                ("ArgumentsJson", Value::Text(text)) => parts.arguments = text,
                _ => {}
            }
        }
        if !named {
            return None;
        }
        parts.assign_texts(&fields[from..]);
        let level = usize::try_from(parts.level).unwrap_or(0).min(LEVELS.len() - 1);
        self.by_level[level] += 1;
        self.over_time.add(context.at, 1.0);
        if !self.filter.passes(level, parts.logger) {
            return Some(());
        }
        let mut latest = self.recent.take_oldest().unwrap_or_default();
        (latest.at, latest.thread, latest.level, latest.event_id) = (context.at, context.thread, level, parts.event_id);
        parts.logger.copy_prefix(&mut latest.logger, MESSAGE);
        parts.text.copy_prefix(&mut latest.text, MESSAGE);
        parts.exception.copy_prefix(&mut latest.exception, EXCEPTION);
        parts.arguments.copy_prefix(&mut latest.arguments, ARGUMENTS);
        self.recent.push(latest);
        Some(())
    }

    /// Sets which messages are kept.
    pub(super) fn set_filter(&mut self, filter: LogFilter) {
        self.filter = filter;
    }

    /// Returns the messages after the first `seen` that were kept, each with its number.
    pub(super) fn after(&self, seen: u64) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        self.recent.after(seen).map(|(number, message)| (number, Some(Occurrence::Message(message.clone()))))
    }

    pub(super) fn snapshot(&self, now: i64) -> LogSnapshot {
        let mut recent: Vec<_> = self.recent.iter().cloned().collect();
        recent.compact_sort_by_key(|message| std::cmp::Reverse(message.at));
        LogSnapshot { by_level: self.by_level, rate: self.over_time.rate(now, 10), recent }
    }
}
