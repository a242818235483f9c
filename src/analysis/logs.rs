//! What the program logs with `ILogger`.

use std::collections::VecDeque;

use crate::nettrace::{Field, FieldType, ThreadId, Value};
use crate::sorting::CompactSort;
use crate::wire::Utf16;

use super::known::{Analysis, Known, View};
use super::timeline::{Merge, Timeline};

/// Messages that are kept.
const RECENT: usize = 500;
/// Characters of a message that are kept.
const MESSAGE: usize = 1000;
/// Characters of the structured fields of a message that are kept.
const ARGUMENTS: usize = 2000;
/// The field that is missing in messages without a name, and how many texts from it on are read.
const EVENT_NAME: &str = "EventName";
const TEXTS: usize = 8;

/// Keeps the latest messages and counts all.
#[derive(Debug)]
pub(super) struct Logs {
    by_level: [u64; LEVELS.len()],
    over_time: Timeline,
    recent: VecDeque<LogMessage>,
}

/// Names of the levels, by number.
pub const LEVELS: [&str; 7] = ["trace", "debug", "info", "warn", "error", "critical", "none"];

/// What was logged.
#[derive(Debug, Clone)]
pub struct LogSnapshot {
    /// Messages by level; see [`LEVELS`].
    pub by_level: [u64; LEVELS.len()],
    /// Messages a second over the last ten seconds.
    pub rate: f64,
    /// The latest, newest first: no more than 500.
    pub recent: Vec<LogMessage>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogMessage {
    /// When, nanoseconds since the start of the session.
    pub at: i64,
    /// Where.
    pub thread: ThreadId,
    /// Index into [`LEVELS`].
    pub level: usize,
    /// Category; not sanitised.
    pub logger: String,
    /// Number of the event in the program; 0 where it has none.
    pub event_id: i64,
    /// The start of the text; not sanitised.
    pub text: String,
    /// The start of the exception, as JSON; empty where there is none. Not sanitised.
    pub exception: String,
    /// The start of its structured fields, an object in JSON; empty where they were not recorded. Not sanitised.
    pub arguments: String,
}

impl Default for Logs {
    fn default() -> Self {
        Self { by_level: [0; LEVELS.len()], over_time: Timeline::new(Merge::Sum), recent: VecDeque::new() }
    }
}

/// What of a message is read. Its fields differ from version to version of the library.
#[derive(Default)]
struct Parts<'a> {
    level: i64,
    logger: Utf16<'a>,
    event_id: i64,
    text: Utf16<'a>,
    exception: Utf16<'a>,
    arguments: Utf16<'a>,
    /// The texts from the event's name on, and how many there are.
    texts: [Utf16<'a>; TEXTS],
    count: usize,
}

impl<'a> Parts<'a> {
    /// Reads the texts from the event's name on, which the fields describe.
    ///
    /// .NET Core 3.x writes a name that is null as no bytes, not as an empty text: then one text fewer is there than fields are, and each is that of
    /// the field behind it.
    fn tell_apart(&mut self, fields: &[Field]) {
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

impl Analysis for Logs {
    type Snapshot = LogSnapshot;

    fn feed(&mut self, known: &Known<'_>) -> Option<()> {
        let mut parts = Parts::default();
        let mut named = false;
        let fields = &known.event.metadata.fields;
        let from = fields.iter().position(|field| field.name == EVENT_NAME).unwrap_or(fields.len());
        for (at, (field, value)) in known.event.values().enumerate() {
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
        parts.tell_apart(&fields[from..]);
        let level = usize::try_from(parts.level).unwrap_or(0).min(LEVELS.len() - 1);
        self.by_level[level] += 1;
        self.over_time.add(known.at, 1.0);
        let mut latest = if self.recent.len() < RECENT { LogMessage::default() } else { self.recent.pop_front().unwrap_or_default() };
        (latest.at, latest.thread, latest.level, latest.event_id) = (known.at, known.thread, level, parts.event_id);
        parts.logger.copy_start(&mut latest.logger, MESSAGE);
        parts.text.copy_start(&mut latest.text, MESSAGE);
        parts.exception.copy_start(&mut latest.exception, MESSAGE);
        parts.arguments.copy_start(&mut latest.arguments, ARGUMENTS);
        self.recent.push_back(latest);
        Some(())
    }

    fn snapshot(&self, view: &View<'_>) -> LogSnapshot {
        let mut recent: Vec<_> = self.recent.iter().cloned().collect();
        recent.compact_sort_by_key(|message| std::cmp::Reverse(message.at));
        LogSnapshot { by_level: self.by_level, rate: self.over_time.rate(view.now, 10), recent }
    }
}
