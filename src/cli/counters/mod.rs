//! `counters TARGET`: what the program and its libraries publish, as it comes.

mod print_out;
mod wanted;

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use self::print_out::Printer;
use self::wanted::Wanted;
use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::record::Interrupts;
use super::target::{called, connect_running, not_started};
use crate::analysis::{CounterTally, MeterLimits, MeterNotice};
use crate::ipc::BufferMb;
use crate::model::sanitise;
use crate::session::{CounterRequest, Listener, StopLimit, Unfinished};

/// dotnet-counters' share of the target's memory.
const BUFFER_MB: u32 = 10;
const POLL: Duration = Duration::from_millis(50);
const STOP: StopLimit = StopLimit { time: Duration::from_secs(10), ..StopLimit::NO_RUNDOWN };
/// How often a session begins anew because others changed what they ask for.
const SESSIONS: usize = 5;

/// Why a session is over.
enum Over {
    Interrupted,
    /// The duration, the target's end, or nobody reads any more.
    Done,
    /// Another session has the meters, with these limits: only who asks for the same gets values.
    OtherLimits(MeterLimits),
}

pub(super) async fn run(host: &Host, arguments: args::Counters) -> Result<Exit, Failure> {
    let wanted = Wanted::parse(&arguments.counters).map_err(Failure::usage)?;
    let (process, client) = connect_running(host, &arguments.target.target).await?;
    let mut interrupts = Interrupts::new()?;
    let version = process.runtime.as_ref();
    let major = version.map_or(0, |version| version.major());
    let buffer = BufferMb::new(BUFFER_MB).map_err(Failure::usage)?;
    let mut asked = CounterRequest::new(version, arguments.interval).with_limits(arguments.max_histograms, arguments.max_time_series);
    let deadline = arguments.duration.map(|duration| Instant::now() + duration);
    let file = arguments.output_file.as_deref().map(create).transpose()?;
    let mut printer = Printer::new(arguments.format, file);
    for _ in 0..SESSIONS {
        let config = asked.config(wanted.event_counters(major), &wanted.metrics(major), buffer).map_err(Failure::usage)?;
        let tally = CounterTally::new(asked.session());
        let mut listener = Listener::start(client.clone(), &config, tally, u64::MAX).await.map_err(not_started)?;
        printer.begin();
        let watched = Watch { listener: &listener, wanted: &wanted, printer: &mut printer, deadline, interval: arguments.interval };
        let over = watched.run(&mut interrupts, &called(&process)).await;
        let ended = tokio::select! {
            ended = listener.stop(STOP) => ended,
            // The session ends with its connection.
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let over = over?;
        // What came last.
        listener.look(|tally| printer.print(tally, &wanted))?;
        match ended {
            _ if matches!(over, Over::Interrupted) => {}
            Err(Unfinished::Closed) => print::say(format_args!("{} ended, or closed the session", called(&process))),
            Err(why) => return Err(anyhow::anyhow!("{}: {why}", called(&process)).into()),
            Ok(()) => {}
        }
        match over {
            Over::Interrupted => return Ok(Exit::Interrupted),
            Over::Done => return Ok(Exit::Done),
            Over::OtherLimits(limits) => {
                let every = sanitise(&limits.refresh_interval);
                print::say(format_args!("another session collects the meters every {every} s and with other limits: using the same"));
                asked.take_limits(limits);
            }
        }
    }
    Err(anyhow::anyhow!("{}: other sessions keep changing the meter settings", called(&process)).into())
}

/// A file that grows while values come.
fn create(path: &Path) -> Result<File, Failure> {
    let created = File::options().write(true).create_new(true).mode(0o600).open(path);
    created.map_err(|error| {
        let exit = if error.kind() == ErrorKind::PermissionDenied { Exit::Denied } else { Exit::Failed };
        Failure::new(exit, anyhow::anyhow!("cannot create {}: {error}", path.display()))
    })
}

/// One session while it runs.
struct Watch<'a> {
    listener: &'a Listener<CounterTally>,
    wanted: &'a Wanted,
    printer: &'a mut Printer,
    deadline: Option<Instant>,
    interval: Duration,
}

impl Watch<'_> {
    /// Prints what comes until there is a reason to stop.
    async fn run(self, interrupts: &mut Interrupts, name: &str) -> Result<Over, Failure> {
        let began = Instant::now();
        // The first values come after an interval, and meters begin at the next whole one.
        let patience = (self.interval * 3).max(Duration::from_secs(5));
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Events so far, and since when there are some that were not looked at.
        let (mut events, mut unseen): (u64, Option<Instant>) = (0, None);
        let (mut printed, mut complained) = (false, false);
        loop {
            tokio::select! {
                () = interrupts.next() => return Ok(Over::Interrupted),
                _ = ticks.tick() => {}
            }
            let now = self.listener.look(CounterTally::values);
            // Values of an interval come one after the other: they are shown together once it gets quiet, or has not for long.
            let quiet = now == events;
            events = now;
            unseen = unseen.or((!quiet).then(Instant::now));
            if unseen.is_some_and(|since| quiet || since.elapsed() > self.interval / 2) {
                unseen = None;
                let shown = self.listener.look(|tally| self.printer.print(tally, self.wanted))?;
                printed |= shown.any;
                if let Some(limits) = shown.other_limits {
                    return Ok(Over::OtherLimits(limits));
                }
                if !shown.is_read {
                    return Ok(Over::Done);
                }
            }
            if !printed && !complained && began.elapsed() > patience {
                complained = true;
                print::say(format_args!("{name} has published no such counter yet"));
            }
            if self.listener.is_over() {
                return Ok(Over::Done);
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Over::Done);
            }
        }
    }
}

impl Printer {
    /// Prints what is new, and says what a person should know.
    fn print(&mut self, tally: &CounterTally, wanted: &Wanted) -> anyhow::Result<Shown> {
        let snapshot = tally.snapshot();
        let mut other_limits = None;
        for notice in &snapshot.notices {
            match notice {
                MeterNotice::OtherLimits(limits) => other_limits = Some(limits.clone()),
                notice => self.say(notice),
            }
        }
        let (any, is_read) = self.counters(&snapshot.counters, wanted)?;
        Ok(Shown { any, is_read, other_limits })
    }
}

/// What came of printing.
struct Shown {
    any: bool,
    /// Whether anybody still reads.
    is_read: bool,
    other_limits: Option<MeterLimits>,
}
