//! `--follow`: shows what occurs in a process, one line each.

use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::fields::{Field, Fields, Value};
use super::occurrence::{fields, heap};
use super::request::Request;
use crate::analysis::{AllocationSample, Collection, FinishedActivity, LEVELS, Live, Occurrence, OccurrenceKind, Outcome};
use crate::app::logged_exception;
use crate::cli::exit::{Exit, Failure};
use crate::cli::host::Host;
use crate::cli::stdout::StdoutWriter;
use crate::cli::target::{connect_running, display_name, exchange_error, start_error};
use crate::cli::{interrupt, print};
use crate::clr::{silent_provider_hint, without_events};
use crate::model::{Bytes, Counted, Nanoseconds, Process, safe};
use crate::net::interrupts::Interrupts;
use crate::session::{Follower, Unfinished};

/// A specified provider whose name may be wrong is reported if it has sent no event for this time.
const PROVIDER_SILENCE: Duration = Duration::from_secs(5);
/// Major versions of runtimes whose events of lock waits have only one frame (seen in .NET 8 and 9; .NET Core 3.1 and .NET 10 send the whole stack).
const VERSIONS_HIDING_CALLERS: Range<u32> = 5..10;
/// Number of bytes from which output is passed on.
const PIECE: usize = 64 << 10;

pub(super) async fn follow(host: &Host, request: &Request<'_>, kind: OccurrenceKind) -> Result<Exit, Failure> {
    let config = request.config().map_err(Failure::usage)?;
    let (process, client) = connect_running(host, &request.arguments.source).await?;
    let mut interrupts = interrupt::listen()?;
    let follower = Follower::start(client, &config, request.filtered(Live::default())).await.map_err(start_error)?;
    host.resume_program().await.map_err(exchange_error)?;
    let name = display_name(&process);
    print::message(format_args!("following {name}; press Ctrl-C to stop"));
    let writer = StdoutWriter::start()?;
    match request.analysis.native_aot_gap(&process) {
        Some(gap) => print::message(gap),
        None => hints(kind, request.stacks, &process).into_iter().for_each(print::message),
    }
    let requests_names = request.stacks && !process.native_aot;
    let output = Output {
        kind,
        with_stacks: request.stacks,
        requests_names,
        is_json: request.arguments.output.json,
        providers: request.specified_providers().collect(),
        seen: 0,
        writer: &writer,
    };
    let duration = request.arguments.duration.unwrap_or(Duration::MAX);
    let followed = print_all(follower, output, duration, &name, &mut interrupts).await;
    writer.exit(followed, &mut interrupts).await
}

/// Returns sentences about what the events of this process show.
fn hints(kind: OccurrenceKind, with_stacks: bool, process: &Process) -> Vec<&'static str> {
    let hides_callers = process.runtime.as_ref().is_some_and(|version| VERSIONS_HIDING_CALLERS.contains(&version.major()));
    let mut hints = Vec::new();
    if with_stacks && process.native_aot {
        hints.push("a NativeAOT program does not name its methods; one of .NET 8 sends no stacks either");
    }
    if kind == OccurrenceKind::Allocations && !process.native_aot {
        hints.push(
            "each line is a sample: the bytes allocated on a heap since the previous line, about 100 kB, and the object allocated last",
        );
    }
    if kind == OccurrenceKind::LockWaits && with_stacks && hides_callers && !process.native_aot {
        hints.push(
            "before .NET 10, the runtime reports only the method that takes a lock, without its callers; `dn-top stacks` shows those of threads that wait now",
        );
    }
    hints
}

/// Prints what occurs until the end of the process or of the time, the end of the output, or a signal, and ends the session.
async fn print_all(
    mut follower: Follower,
    mut output: Output<'_>,
    duration: Duration,
    name: &str,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    let writer = output.writer;
    let mut is_over = false;
    let exit = tokio::select! {
        () = interrupts.next() => Exit::Interrupted,
        () = sleep(duration) => Exit::Done,
        () = writer.closed() => Exit::Done,
        over = print_new(&mut follower, &mut output) => {
            is_over = true;
            over.map(|()| Exit::Done)?
        }
    };
    let (live, ending) = tokio::select! {
        stopped = follower.stop() => stopped,
        // The session ends with its connection.
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    output.print(&live, true)?;
    if output.kind == OccurrenceKind::LockWaits {
        let waiting = live.snapshot(live.end()).contention.waiting as u64;
        // A wait is shown once it ends.
        if waiting > 0 {
            print::message(format_args!("{} still waiting for a lock at the end; `dn-top stacks` shows where", Counted(waiting, "thread")));
        }
    }
    let dropped = live.throughput().snapshot().dropped;
    if dropped > 0 {
        print::message(format_args!("the runtime dropped {}: some are missing", Counted(dropped, "event")));
    }
    match ending {
        Err(Unfinished::Closed) => {
            print::message(format_args!("{name} ended, or closed the session"));
            if output.kind == OccurrenceKind::Exceptions {
                // Seen with .NET 3.1, 8, 9 and 10.
                print::message(
                    "an unhandled exception is not shown: the runtime aborts before it sends it, but writes it to standard error",
                );
            }
        }
        Err(why) if exit != Exit::Interrupted => return Err(anyhow::anyhow!("{name}: {why}").into()),
        // The stream of a process that exits regularly is usually complete.
        Ok(()) if is_over => print::message(format_args!("{name} ended")),
        _ => {}
    }
    Ok(exit)
}

/// Prints what occurs until the stream ends. While the output is not read, it is counted.
async fn print_new(follower: &mut Follower, output: &mut Output<'_>) -> anyhow::Result<()> {
    if output.requests_names {
        // The process may end with the first exception. A failure only matters once names are missing.
        let _ = follower.find_names().await;
    }
    let mut silence = pin!(sleep(PROVIDER_SILENCE));
    let mut awaits_providers = !output.providers.is_empty();
    loop {
        if output.lacks_names(follower.live())
            && let Err(why) = follower.find_names().await
        {
            print::message(format_args!("some methods have no names: {why}"));
        }
        let is_behind = !output.writer.has_room();
        if !is_behind {
            output.print(follower.live(), false)?;
        }
        // Otherwise, neither a signal nor the end of the time is noticed while more data has arrived whenever this is printed.
        yield_now().await;
        tokio::select! {
            more = follower.next() => if !more.context("cannot decode the event stream")? {
                return Ok(());
            },
            () = output.writer.room(), if is_behind => {}
            () = &mut silence, if awaits_providers => {
                awaits_providers = false;
                let seen = follower.live().throughput().providers();
                let silent = without_events(output.providers.iter().copied(), &seen);
                silent.filter_map(|name| silent_provider_hint(name, PROVIDER_SILENCE)).for_each(print::message);
            }
        }
    }
}

/// Returns the start of the session, in nanoseconds since the Unix epoch.
fn start(live: &Live) -> Option<i128> {
    let header = live.throughput().trace()?;
    Some(i128::from(header.sync_utc?.unix_ms()) * 1_000_000)
}

struct Output<'a> {
    kind: OccurrenceKind,
    with_stacks: bool,
    /// Whether the names of the methods in stacks are requested.
    requests_names: bool,
    is_json: bool,
    /// Providers that were specified one by one.
    providers: Vec<&'a str>,
    /// Number of occurrences printed or skipped.
    seen: u64,
    writer: &'a StdoutWriter,
}

impl Output<'_> {
    /// Whether a stack to be printed contains methods without a name.
    fn lacks_names(&self, live: &Live) -> bool {
        let is_unnamed = |frame: &String| frame.starts_with("0x");
        let lacks = |occurrence: &Occurrence| occurrence.frames().iter().any(is_unnamed);
        self.requests_names && live.occurrences(self.kind, true, &mut self.seen.clone(), false).occurrences.iter().any(lacks)
    }

    /// Prints what has occurred since the last call.
    fn print(&mut self, live: &Live, is_over: bool) -> anyhow::Result<()> {
        let new = live.occurrences(self.kind, self.with_stacks, &mut self.seen, is_over);
        let start = start(live);
        let mut out = String::new();
        let now = Timestamp::now();
        let time = |at: i64| start.and_then(|start| Timestamp::from_nanosecond(start + i128::from(at)).ok()).unwrap_or(now);
        if new.missed > 0 {
            let missed = vec![("missed", Value::Count(new.missed))];
            out.push_str(&if self.is_json { json(now, missed)? } else { format!("({} more: too many to show)\n", new.missed) });
        }
        for occurrence in &new.occurrences {
            let time = time(occurrence.at());
            out.push_str(&if self.is_json { json(time, fields(occurrence))? } else { text(time, occurrence) });
            if out.len() >= PIECE {
                self.writer.write(std::mem::take(&mut out).into_bytes());
            }
        }
        if !out.is_empty() {
            self.writer.write(out.into_bytes());
        }
        Ok(())
    }
}

fn json(time: Timestamp, mut fields: Vec<Field>) -> anyhow::Result<String> {
    fields.splice(0..0, [("schema", Value::Count(print::SCHEMA.into())), ("time", Value::text(&format!("{time:.3}")))]);
    print::json_line(&Fields(fields))
}

fn text(time: Timestamp, occurrence: &Occurrence) -> String {
    lines(&time.to_zoned(TimeZone::system()).strftime("%H:%M:%S%.3f").to_string(), occurrence)
}

/// Returns the lines for an occurrence: the first is its time and a summary.
pub(super) fn lines(time: &str, occurrence: &Occurrence) -> String {
    let mut details: String = occurrence.frames().iter().map(|frame| format!("at {frame}\n")).collect();
    let line = match occurrence {
        Occurrence::Collection(Collection { generation, kind, reason, pause_ns, heap_before, heap_after, .. }) => {
            let bytes = |known: Option<u64>| known.map_or("?".to_owned(), |bytes| Bytes(bytes).to_string());
            let pause = pause_ns.map_or("?".to_owned(), |ns| Nanoseconds(ns).to_string());
            let (kind, reason) = (kind.name(), reason.name());
            format!("gen{generation} {kind:<10}  pause {pause:>8}  {} → {}  {reason}", bytes(*heap_before), bytes(*heap_after))
        }
        Occurrence::Exception(thrown) => {
            let again = if thrown.rethrown { " (rethrown)" } else { "" };
            format!("thread {}  {}{again}: {}", thrown.thread.thread, thrown.type_name, thrown.message)
        }
        Occurrence::Allocation(AllocationSample { thread, kind, bytes, object_bytes, type_name, .. }) => {
            let object = object_bytes.map(|bytes| format!(" of {}", Bytes(bytes))).unwrap_or_default();
            format!("thread {}  {} {:>7}  {type_name}{object}", thread.thread, heap(*kind), Bytes(*bytes).to_string())
        }
        Occurrence::LockWait(wait) => {
            let owner = wait.owner.map(|owner| format!("  lock held by thread {owner}")).unwrap_or_default();
            format!("thread {}  waited {}{owner}", wait.thread.thread, Nanoseconds(wait.wait_ns))
        }
        Occurrence::Activity(finished) => {
            let what = match finished.layer.direction() {
                "" => &finished.operation,
                direction => direction,
            };
            let FinishedActivity { duration_ns, subject, outcome, .. } = finished;
            let outcome = if *outcome == Outcome::Unknown { "-".to_owned() } else { outcome.to_string() };
            format!("{:>8}  {outcome:<6}  {what:<3}  {subject}", Nanoseconds(*duration_ns).to_string())
        }
        Occurrence::Message(message) => {
            let level = LEVELS.get(message.level).copied().unwrap_or_default();
            let (first, rest) = message.text.split_once('\n').unwrap_or((&message.text, ""));
            details = [rest, &logged_exception(&message.exception)].join("\n");
            format!("{level:<8}  {}: {}", message.logger, first.trim_end())
        }
        Occurrence::Event(event, _) => {
            format!("thread {}  {}/{}  {}", event.thread.thread, event.kind.provider, event.title(), event.payload.text())
        }
    };
    // An event may have no payload, and an exception no message.
    let mut lines = format!("{time}  {}\n", safe(line.trim_end()));
    details.lines().filter(|line| !line.is_empty()).for_each(|line| lines.extend(["    ", &safe(line), "\n"]));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Layer, LogMessage, ThreadId, ThrownException};
    use crate::clr::payload::AllocationKind;
    use crate::ipc::RuntimeVersion;
    use crate::model::ProcessKey;

    #[test]
    fn hints_are_those_that_apply_to_the_process() {
        use OccurrenceKind::{Allocations, Exceptions, LockWaits};
        let (sample, callers, native) = ("each line is a sample", "before .NET 10", "a NativeAOT program");
        for (kind, with_stacks, version, native_aot, expected) in [
            (Exceptions, true, "9.0.7", false, &[][..]),
            (Exceptions, false, "9.0.7", true, &[]),
            (Exceptions, true, "9.0.7", true, &[native]),
            (Allocations, true, "8.0.1", false, &[sample]),
            (Allocations, false, "9.0.7", true, &[]),
            (LockWaits, true, "3.1.23", false, &[]),
            (LockWaits, true, "8.0.1", false, &[callers]),
            (LockWaits, true, "9.0.7", false, &[callers]),
            (LockWaits, false, "9.0.7", false, &[]),
            (LockWaits, true, "10.0.1", false, &[]),
            (LockWaits, true, "9.0.7", true, &[native]),
        ] {
            let process = Process { runtime: Some(RuntimeVersion::new(version)), native_aot, ..Process::new(ProcessKey::default()) };
            let found = hints(kind, with_stacks, &process);
            let agrees = found.len() == expected.len() && found.iter().zip(expected).all(|(hint, start)| hint.starts_with(start));
            assert!(agrees, "{kind:?} {with_stacks} {version} {native_aot}: {found:?}");
        }
    }

    #[test]
    fn allocation_has_the_size_of_its_object_if_known() {
        let line = |object_bytes| {
            let (thread, kind, type_name) = (ThreadId::of(7), AllocationKind::Large, "byte[]".to_owned());
            let sample = AllocationSample { at: 0, thread, kind, bytes: 106_496, object_bytes, type_name, frames: Vec::new() };
            text(Timestamp::UNIX_EPOCH, &Occurrence::Allocation(sample))
        };
        for (object_bytes, end) in [(None, "thread 7  LOH  106 kB  byte[]\n"), (Some(40), "thread 7  LOH  106 kB  byte[] of 40 B\n")] {
            assert!(line(object_bytes).ends_with(end), "{:?}", line(object_bytes));
        }
    }

    #[test]
    fn line_without_a_message_does_not_end_in_spaces() {
        let thrown = |rethrown| ThrownException { type_name: "App.Failed".to_owned(), rethrown, ..ThrownException::default() };
        for (rethrown, end) in [(false, "  App.Failed:\n"), (true, "  App.Failed (rethrown):\n")] {
            let line = text(Timestamp::UNIX_EPOCH, &Occurrence::Exception(thrown(rethrown)));
            assert!(line.ends_with(end), "{line:?}");
        }
    }

    #[test]
    fn activity_without_a_known_outcome_has_a_dash() {
        let line = |outcome| {
            let (operation, subject, route) = ("Request".to_owned(), "GET /a".to_owned(), String::new());
            let finished = FinishedActivity { end: 0, duration_ns: 5_000_000, layer: Layer::Server, operation, subject, route, outcome };
            text(Timestamp::UNIX_EPOCH, &Occurrence::Activity(finished))
        };
        for (outcome, end) in [(Outcome::Unknown, "5.0 ms  -       in   GET /a\n"), (Outcome::Status(404), "5.0 ms  404     in   GET /a\n")]
        {
            assert!(line(outcome).ends_with(end), "{:?}", line(outcome));
        }
    }

    #[test]
    fn log_message_of_several_lines_is_indented_and_cannot_control_the_terminal() {
        let message = LogMessage {
            level: 4,
            logger: "Shop.\x1b[2JStock".to_owned(),
            text: "SELECT *\r\nFROM a\x1b[31m\n\nWHERE b".to_owned(),
            exception: r#"{"Message":"m","VerboseMessage":"A.B: m\n   at C.D()"}"#.to_owned(),
            ..LogMessage::default()
        };
        let lines = text(Timestamp::UNIX_EPOCH, &Occurrence::Message(message));
        assert!(!lines.contains('\x1b'), "{lines:?}");
        let lines: Vec<_> = lines.lines().collect();
        assert!(lines[0].ends_with("Stock: SELECT *") && lines[1].starts_with("    FROM a"), "{lines:#?}");
        assert_eq!(lines[2..], ["    WHERE b", "    A.B: m", "       at C.D()"]);
    }
}
