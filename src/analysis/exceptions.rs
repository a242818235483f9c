//! Exceptions by type, with rates and stacks.

use crate::clr::payload::ExceptionThrown;
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;
use crate::wire::Utf16;

use super::event_context::{EventContext, Frames};
use super::latest::Latest;
use super::methods::EventStacks;
use super::ranking::{Ranking, Row};
use super::rates::RecentRate;
use super::{Occurrence, Symbols, Timeline, TypeStacks};

/// Maximum number of types in a snapshot.
const TOP: usize = 100;
/// Maximum number of individual exceptions kept.
const RECENT: usize = 64;
/// Maximum number of frames kept per stack.
const DEPTH: usize = 64;
/// Maximum length of a message, in characters.
const MESSAGE: usize = 400;
/// Since .NET 9, exceptions are dispatched by managed code, whose frames are on the stack.
const DISPATCH: &str = "System.Runtime.EH.";

/// Counts first-chance exceptions, whether handled or not.
#[derive(Debug, Default)]
pub(super) struct Exceptions {
    thrown: u64,
    rethrown: u64,
    types: Ranking<Type>,
    over_time: Timeline,
    recent: Latest<Thrown, RECENT>,
    stacks: EventStacks,
}

#[derive(Debug, Default)]
struct Type {
    count: u64,
    recent_rate: RecentRate,
    last: Thrown,
}

impl Row for Type {
    const LIMIT: usize = 256;

    fn weight(&self) -> u64 {
        self.count
    }

    fn fold(&mut self, row: Self) {
        self.count += row.count;
        self.recent_rate.fold(row.recent_rate);
    }
}

#[derive(Debug, Default)]
struct Thrown {
    /// Without its frames, which are resolved in a snapshot.
    exception: ThrownException,
    frames: Frames,
}

impl Thrown {
    /// Overwrites this with another exception, reusing its buffers.
    fn set(&mut self, context: &EventContext<'_>, thrown: &ExceptionThrown<'_>) {
        let exception = &mut self.exception;
        (exception.at, exception.thread) = (context.at, context.thread);
        (exception.hresult, exception.rethrown) = (thrown.hresult, thrown.is_rethrown());
        thrown.type_name.copy_prefix(&mut exception.type_name, MESSAGE);
        thrown.message.copy_prefix(&mut exception.message, MESSAGE);
        self.frames.set(context.event.stack(), DEPTH);
    }

    fn snapshot(&self, symbols: &Symbols) -> ThrownException {
        let frames = self.frames.resolve(symbols).skip_while(|frame| frame.starts_with(DISPATCH)).collect();
        ThrownException { frames, ..self.exception.clone() }
    }
}

/// Exceptions of a recording.
#[derive(Debug, Clone)]
pub struct ExceptionSnapshot {
    /// Number of exceptions, including rethrown ones.
    pub thrown: u64,
    /// Number of rethrown exceptions.
    pub rethrown: u64,
    /// Exceptions per second over the last ten seconds.
    pub rate: f64,
    /// Exceptions per second before that, over up to five minutes; `None` if this period is shorter than half a minute.
    pub previous_rate: Option<f64>,
    /// Types, most frequent first; at most 100.
    pub types: Vec<ExceptionType>,
    /// Number of exceptions whose types are not listed.
    pub others: u64,
    /// The latest exceptions, newest first; at most 64.
    pub recent: Vec<ThrownException>,
    /// Stacks from which exceptions are thrown.
    pub stacks: TypeStacks,
}

/// Exceptions of one type.
#[derive(Debug, Clone)]
pub struct ExceptionType {
    /// Full type name; not sanitized.
    pub name: String,
    /// Number of exceptions.
    pub count: u64,
    /// Exceptions per second, over the last few seconds.
    pub rate: f64,
    /// The latest exception of this type.
    pub last: ThrownException,
}

/// A single exception.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThrownException {
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// The throwing thread.
    pub thread: ThreadId,
    /// HRESULT.
    pub hresult: u32,
    /// Whether it was caught before and is now rethrown.
    pub rethrown: bool,
    /// Full type name; not sanitized.
    pub type_name: String,
    /// Start of the message; not sanitized.
    pub message: String,
    /// Methods or addresses, leaf first, starting at the throwing method; empty if the event has no stack. Not sanitized.
    pub frames: Vec<String>,
}

impl Exceptions {
    /// Drops cached stack IDs, which have new meanings from here on.
    pub(super) fn forget_stacks(&mut self) {
        self.stacks.forget_stacks();
    }

    fn previous_rate(&self, now: i64) -> Option<f64> {
        const SECOND: i64 = 1_000_000_000;
        let before = now.saturating_sub(10 * SECOND);
        let seconds = usize::try_from(before / SECOND).unwrap_or(0).min(290);
        (seconds >= 30).then(|| self.over_time.recent(before, seconds).into_iter().sum::<f64>() / seconds as f64)
    }

    /// Processes an exception event. `None` if its payload is malformed.
    pub(super) fn feed(&mut self, context: &EventContext<'_>, symbols: &Symbols) -> Option<()> {
        let thrown: ExceptionThrown<'_> = context.payload()?;
        self.thrown += 1;
        self.rethrown += u64::from(thrown.is_rethrown());
        self.over_time.add(context.at, 1.0);
        let of_type = self.types.row(thrown.type_name.as_bytes());
        of_type.count += 1;
        of_type.recent_rate.add(context.at);
        of_type.last.set(context, &thrown);
        let mut latest = self.recent.take_oldest().unwrap_or_default();
        latest.set(context, &thrown);
        self.recent.push(latest);
        self.stacks.add(context, symbols, thrown.type_name, 1);
        Some(())
    }

    /// Returns the exceptions after the first `seen`, without their stacks, each with its number.
    pub(super) fn after(&self, seen: u64, symbols: Option<&Symbols>) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        let exception = move |thrown: &Thrown| symbols.map_or_else(|| thrown.exception.clone(), |symbols| thrown.snapshot(symbols));
        self.recent.after(seen).map(move |(number, thrown)| (number, Some(Occurrence::Exception(exception(thrown)))))
    }

    /// Returns the exceptions so far.
    pub(super) fn snapshot(&self, symbols: &Symbols, now: i64) -> ExceptionSnapshot {
        let named = |(name, row): (&[u8], &Type)| ExceptionType {
            name: Utf16::new(name).to_string(),
            count: row.count,
            rate: row.recent_rate.rate(now),
            last: row.last.snapshot(symbols),
        };
        let types: Vec<_> = self.types.heaviest(TOP).into_iter().map(named).collect();
        let mut recent: Vec<_> = self.recent.iter().map(|thrown| thrown.snapshot(symbols)).collect();
        recent.compact_sort_by_key(|thrown| std::cmp::Reverse(thrown.at));
        ExceptionSnapshot {
            thrown: self.thrown,
            rethrown: self.rethrown,
            rate: self.over_time.rate(now, 10),
            previous_rate: self.previous_rate(now),
            others: self.thrown - types.iter().map(|named| named.count).sum::<u64>(),
            types,
            recent,
            stacks: self.stacks.snapshot(symbols).without_frames(&|frame| frame.name.starts_with(DISPATCH)),
        }
    }
}
