use super::*;
use crate::ipc::{CommandCode, Cookie, Failure, Hresult};
use crate::model::{ProcessKey, RunState};
use crate::net::endpoint::Endpoint;
use crate::net::error::Cause;

const COMMAND_LINE: &str = "dotnet /srv/shop.dll --urls *";

fn row() -> Process {
    Process { name: "shop".into(), command_line: COMMAND_LINE.into(), ..Process::new(ProcessKey { pid: 42, started: 1 }) }
}

fn stale() -> Process {
    Process { contact: Contact::Trouble { kind: Trouble::Stale, reason: "gone".into() }, ..row() }
}

fn info(command_line: &str) -> ProcessInfo {
    ProcessInfo {
        pid: 42,
        cookie: Cookie([7; 16]),
        command_line: command_line.into(),
        os: "Linux".into(),
        arch: "x\x1b64".into(),
        entry_assembly: Some("Shop".into()),
        clr_version: Some(RuntimeVersion::new("9.0.7")),
        rid: None,
    }
}

fn failure(cause: Cause) -> ExchangeError {
    ExchangeError { command: CommandCode::ProcessInfo3, endpoint: Endpoint { key: row().key, socket: "/tmp/s".into() }, cause }
}

fn published(inquiry: &Inquiry, mut row: Process, busy: Option<Busy>, now: Instant) -> Process {
    inquiry.publish(&mut row, busy, now);
    row
}

/// Returns the reason of a row's trouble, which must be of this kind.
#[track_caller]
fn trouble(row: &Process, is: Trouble) -> &str {
    match &row.contact {
        Contact::Trouble { kind, reason } if *kind == is => reason,
        other => panic!("{is:?}, not {other:?}"),
    }
}

#[test]
fn answered_query_is_not_repeated() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(false, start);
    assert!(inquiry.is_due(&row(), false, start));
    assert!(!inquiry.is_due(&row(), true, start), "never a second command while one is under way");
    let denied = Process { contact: Contact::Trouble { kind: Trouble::Denied, reason: String::new().into() }, ..row() };
    assert!(!inquiry.is_due(&denied, false, start));
    inquiry.query_sent(start);
    assert!(!inquiry.is_due(&row(), false, start + MAX_RETRY_INTERVAL));
    inquiry.apply(Ok(Some(info("/usr/bin/dotnet /srv/shop.dll --urls *\x1b[2J"))));
    assert!(!inquiry.is_due(&row(), false, start + 10 * MAX_RETRY_INTERVAL));
    let with_pid = |ns_pid| published(&inquiry, Process { ns_pid, ..row() }, None, start).ns_pid;
    assert_eq!([with_pid(0), with_pid(7)], [42, 7], "the name of a socket is more reliable");
    let row = published(&inquiry, row(), None, start);
    assert_eq!((row.contact, row.name.as_str(), row.runtime.unwrap().as_str()), (Contact::Ok, "Shop", "9.0.7"));
    assert_eq!(
        (row.command_line.as_str(), row.arch.as_deref()),
        ("/usr/bin/dotnet /srv/shop.dll --urls *\u{fffd}[2J", Some("x\u{fffd}64"))
    );
}

#[test]
fn query_answered_too_early_is_repeated() {
    let start = Instant::now();
    for (line, early) in
        [("/usr/bin/dotnet", true), ("dotnet", true), ("/usr/bin/mydotnet", false), ("/usr/bin/dotnet /srv/shop.dll", false)]
    {
        let mut inquiry = Inquiry::new(false, start);
        inquiry.query_sent(start);
        inquiry.apply(Ok(Some(info(line))));
        assert!(!inquiry.is_due(&row(), false, start + MIN_QUERY_INTERVAL / 2));
        assert_eq!(inquiry.is_due(&row(), false, start + MIN_QUERY_INTERVAL), early, "{line}");
        let suspended = Process { run_state: RunState::Suspended, ..row() };
        assert!(!inquiry.is_due(&suspended, false, start + MIN_QUERY_INTERVAL), "{line}: it is sent the rest when it is resumed");
        assert_eq!(published(&inquiry, row(), None, start).command_line == COMMAND_LINE, early, "{line}");
    }
    let bare = Process { command_line: "./shop".into(), run_state: RunState::Suspended, ..row() };
    let mut inquiry = Inquiry::new(false, start);
    inquiry.apply(Ok(Some(info("/srv/shop"))));
    assert!(!inquiry.is_due(&bare, false, start + MIN_QUERY_INTERVAL), "there are no arguments to wait for");
}

#[test]
fn failed_queries_are_retried_with_backoff() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(false, start);
    let mut now = start;
    for pause in [5, 10, 20, 40, 60, 60] {
        inquiry.query_sent(now);
        inquiry.apply(Err(failure(Cause::Timeout(MIN_QUERY_INTERVAL))));
        let pause = Duration::from_secs(pause);
        assert!(!inquiry.is_due(&row(), false, now + pause - Duration::from_millis(1)));
        now += pause;
        assert!(inquiry.is_due(&row(), false, now));
    }
    let row_now = published(&inquiry, row(), None, now);
    assert!(trouble(&row_now, Trouble::Timeout).starts_with("no answer within 5 s"));
    inquiry.query_sent(now);
    assert_eq!(published(&inquiry, row(), None, now).contact, row_now.contact, "the last answer stands while the next one is waited for");
    inquiry.apply(Ok(Some(info(COMMAND_LINE))));
    assert_eq!(published(&inquiry, row(), None, now).contact, Contact::Ok);
}

#[test]
fn error_reply_counts_as_contact() {
    let mut inquiry = Inquiry::new(false, Instant::now());
    for answer in [Ok(None), Err(failure(Cause::Reply(Failure::from(Hresult::FAIL).into())))] {
        inquiry.apply(answer);
        assert_eq!(published(&inquiry, row(), None, Instant::now()), Process { contact: Contact::Ok, ..row() });
        assert!(!inquiry.is_due(&row(), false, Instant::now() + MAX_RETRY_INTERVAL));
    }
}

#[test]
fn pending_query_is_slow_before_it_times_out() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(false, start);
    inquiry.query_sent(start);
    assert_eq!(published(&inquiry, row(), None, start + SLOW_THRESHOLD / 2).contact, Contact::Unknown);
    for busy in [None, Some(Busy { command: CommandCode::ProcessInfo3, since: start })] {
        let late = published(&inquiry, row(), busy, start + 3 * SLOW_THRESHOLD);
        assert!(trouble(&late, Trouble::Slow).starts_with("it has not answered for 3 s"));
    }
    inquiry.apply(Ok(None));
    let busy = Some(Busy { command: CommandCode::GenerateCoreDump3, since: start });
    assert_eq!(published(&inquiry, row(), busy, start + SLOW_THRESHOLD / 2).contact, Contact::Ok);
    assert_eq!(
        trouble(&published(&inquiry, row(), busy, start + 7 * SLOW_THRESHOLD), Trouble::Slow),
        "stopped while it writes a dump, for 7 s"
    );
    let busy = Some(Busy { command: CommandCode::ResumeRuntime, since: start });
    let slow = published(&inquiry, row(), busy, start + 7 * SLOW_THRESHOLD);
    assert_eq!(trouble(&slow, Trouble::Slow), "ResumeRuntime has been in progress for 7 s");
}

#[test]
fn stale_socket_is_queried_once() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(true, start);
    assert!(inquiry.is_due(&stale(), false, start));
    inquiry.query_sent(start);
    assert_eq!(published(&inquiry, stale(), None, start + 3 * SLOW_THRESHOLD), stale());
    inquiry.apply(Err(failure(Cause::Gone)));
    assert_eq!(published(&inquiry, stale(), None, start), stale());
    assert!(!inquiry.is_due(&stale(), false, start + MAX_RETRY_INTERVAL));
}

#[test]
fn unseen_process_is_kept_as_long_as_it_answers() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(true, start);
    inquiry.apply(Ok(Some(info(COMMAND_LINE))));
    let found = published(&inquiry, stale(), None, start);
    assert_eq!((found.contact, found.name.as_str()), (Contact::Ok, "Shop"));
    assert!(
        !inquiry.is_due(&stale(), false, start + UNSEEN_QUERY_INTERVAL / 2)
            && inquiry.is_due(&stale(), false, start + UNSEEN_QUERY_INTERVAL)
    );
    // Busy does not mean exited.
    inquiry.query_sent(start);
    inquiry.apply(Err(failure(Cause::Timeout(MIN_QUERY_INTERVAL))));
    let busy = published(&inquiry, stale(), None, start);
    assert_eq!((trouble(&busy, Trouble::Timeout).is_empty(), busy.name.as_str()), (false, "Shop"));
    assert!(inquiry.is_due(&stale(), false, start + MIN_QUERY_INTERVAL));
    inquiry.apply(Err(failure(Cause::Gone)));
    assert_eq!(published(&inquiry, stale(), None, start), stale());
    assert!(!inquiry.is_due(&stale(), false, start + 10 * MAX_RETRY_INTERVAL));
}
