use super::*;
use crate::ipc::{CommandCode, Cookie, Failure, Hresult};
use crate::model::{ProcessKey, RunState};
use crate::net::endpoint::Endpoint;
use crate::net::error::Cause;

const LINE: &str = "dotnet /srv/shop.dll --urls *";

fn row() -> Process {
    Process { name: "shop".into(), command_line: LINE.into(), ..Process::new(ProcessKey { pid: 42, started: 1 }) }
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

fn reported(inquiry: &Inquiry, mut row: Process, busy: Option<Busy>, now: Instant) -> Process {
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
fn an_answer_is_asked_for_once() {
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
    let row = reported(&inquiry, row(), None, start);
    assert_eq!((row.contact, row.name.as_str(), row.runtime.unwrap().as_str()), (Contact::Ok, "Shop", "9.0.7"));
    assert_eq!(
        (row.command_line.as_str(), row.arch.as_deref()),
        ("/usr/bin/dotnet /srv/shop.dll --urls *\u{fffd}[2J", Some("x\u{fffd}64"))
    );
}

#[test]
fn an_early_answer_is_asked_for_again() {
    let start = Instant::now();
    for (line, early) in
        [("/usr/bin/dotnet", true), ("dotnet", true), ("/usr/bin/mydotnet", false), ("/usr/bin/dotnet /srv/shop.dll", false)]
    {
        let mut inquiry = Inquiry::new(false, start);
        inquiry.query_sent(start);
        inquiry.apply(Ok(Some(info(line))));
        assert!(!inquiry.is_due(&row(), false, start + MIN_QUERY_INTERVAL / 2));
        assert_eq!(inquiry.is_due(&row(), false, start + MIN_QUERY_INTERVAL), early, "{line}");
        assert_eq!(reported(&inquiry, row(), None, start).command_line == LINE, early, "{line}");
    }
    let bare = Process { command_line: "./shop".into(), run_state: RunState::Suspended, ..row() };
    let mut inquiry = Inquiry::new(false, start);
    inquiry.apply(Ok(Some(info("/srv/shop"))));
    assert!(!inquiry.is_due(&bare, false, start + MIN_QUERY_INTERVAL), "there are no arguments to wait for");
}

#[test]
fn failures_are_asked_again_less_and_less() {
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
    let row_now = reported(&inquiry, row(), None, now);
    assert!(trouble(&row_now, Trouble::Timeout).starts_with("no answer within 5 s"));
    inquiry.query_sent(now);
    assert_eq!(reported(&inquiry, row(), None, now).contact, row_now.contact, "the last answer stands while the next one is waited for");
    inquiry.apply(Ok(Some(info(LINE))));
    assert_eq!(reported(&inquiry, row(), None, now).contact, Contact::Ok);
}

#[test]
fn a_runtime_that_says_no_answers() {
    let mut inquiry = Inquiry::new(false, Instant::now());
    for answer in [Ok(None), Err(failure(Cause::Reply(Failure::from(Hresult::FAIL).into())))] {
        inquiry.apply(answer);
        assert_eq!(reported(&inquiry, row(), None, Instant::now()), Process { contact: Contact::Ok, ..row() });
        assert!(!inquiry.is_due(&row(), false, Instant::now() + MAX_RETRY_INTERVAL));
    }
}

#[test]
fn silence_is_slow_before_it_is_a_timeout() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(false, start);
    inquiry.query_sent(start);
    assert_eq!(reported(&inquiry, row(), None, start + SLOW_THRESHOLD / 2).contact, Contact::Unknown);
    let late = reported(&inquiry, row(), None, start + 3 * SLOW_THRESHOLD);
    assert!(trouble(&late, Trouble::Slow).starts_with("it has not answered for 3 s"));
    inquiry.apply(Ok(None));
    let busy = Some(Busy { command: CommandCode::GenerateCoreDump3, since: start });
    assert_eq!(reported(&inquiry, row(), busy, start + SLOW_THRESHOLD / 2).contact, Contact::Ok);
    assert_eq!(
        trouble(&reported(&inquiry, row(), busy, start + 7 * SLOW_THRESHOLD), Trouble::Slow),
        "GenerateCoreDump3 has been in progress for 7 s"
    );
}

#[test]
fn a_stale_socket_gets_one_chance() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(true, start);
    assert!(inquiry.is_due(&stale(), false, start));
    inquiry.query_sent(start);
    assert_eq!(reported(&inquiry, stale(), None, start + 3 * SLOW_THRESHOLD), stale());
    inquiry.apply(Err(failure(Cause::Gone)));
    assert_eq!(reported(&inquiry, stale(), None, start), stale());
    assert!(!inquiry.is_due(&stale(), false, start + MAX_RETRY_INTERVAL));
}

#[test]
fn a_process_of_a_namespace_that_is_not_seen_lives_as_long_as_it_answers() {
    let start = Instant::now();
    let mut inquiry = Inquiry::new(true, start);
    inquiry.apply(Ok(Some(info(LINE))));
    let found = reported(&inquiry, stale(), None, start);
    assert_eq!((found.contact, found.name.as_str()), (Contact::Ok, "Shop"));
    assert!(
        !inquiry.is_due(&stale(), false, start + UNSEEN_QUERY_INTERVAL / 2)
            && inquiry.is_due(&stale(), false, start + UNSEEN_QUERY_INTERVAL)
    );
    // Busy does not mean exited.
    inquiry.query_sent(start);
    inquiry.apply(Err(failure(Cause::Timeout(MIN_QUERY_INTERVAL))));
    let busy = reported(&inquiry, stale(), None, start);
    assert_eq!((trouble(&busy, Trouble::Timeout).is_empty(), busy.name.as_str()), (false, "Shop"));
    assert!(inquiry.is_due(&stale(), false, start + MIN_QUERY_INTERVAL));
    inquiry.apply(Err(failure(Cause::Gone)));
    assert_eq!(reported(&inquiry, stale(), None, start), stale());
    assert!(!inquiry.is_due(&stale(), false, start + 10 * MAX_RETRY_INTERVAL));
}
