//! Requests and other things that begin and end.

use super::script::MS;
use super::{Bytes, Script};
use crate::nettrace::{Field, FieldType};

#[test]
fn requests_are_paired_by_activity() {
    let fields =
        [("scheme", FieldType::String), ("host", FieldType::String), ("port", FieldType::Int32), ("pathAndQuery", FieldType::String)];
    let start = |path| Bytes::default().text("http").text("shop").u32(80).text(path);
    let mut script = Script::new();
    script.activity(1).described("System.Net.Http", "RequestStart", &fields, 0, start("/a?user=7"));
    script.activity(2).described("System.Net.Http", "RequestStart", &fields, MS, start("/b"));
    script.activity(1).described("System.Net.Http", "RequestStop", &[], 5 * MS, Bytes::default());
    script.activity(3).described("System.Net.Http", "RequestStart", &fields, 6 * MS, start("/a?user=8"));
    script.activity(3).described("System.Net.Http", "RequestStop", &[], 7 * MS, Bytes::default());
    script.activity(9).described("System.Net.Http", "RequestStop", &[], 7 * MS, Bytes::default());
    script.activity(0).described("System.Net.Http", "RequestStart", &fields, 8 * MS, start("/c"));
    let activities = script.snapshot().activities;
    let [http] = &activities.operations[..] else { panic!("{activities:?}") };
    assert_eq!((http.name.as_str(), http.started, http.ended, http.running, http.longest_ns), ("Request", 4, 2, 1, 5_000_000));
    let subjects: Vec<_> = http.subjects.iter().map(|subject| (subject.text.as_str(), subject.count, subject.total_ns)).collect();
    assert_eq!(subjects, [("http://shop/a", 2, 6_000_000)]);
    assert_eq!((activities.running.len(), activities.running[0].subject.as_str(), activities.running[0].since), (1, "http://shop/b", MS));
}

/// A request is one, however many event sources tell of it, and has its status; what differs from one to the next is not what it is about.
#[test]
fn requests_are_counted_once_and_have_their_outcome() {
    let text = |names: &[&'static str]| names.iter().map(|name| (*name, FieldType::String)).collect::<Vec<_>>();
    let mut script = Script::new();
    // As Kestrel serves two requests on two connections, the second of which ends in an exception.
    for (id, connection) in [(1, "0HN1"), (2, "0HN2")] {
        let at = i64::from(id) * 100 * MS;
        const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
        const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
        let connected = Bytes::default().text(connection).text("127.0.0.1:80").text("127.0.0.1:5001");
        script.activity(10 + id).described("System.Net.Sockets", "AcceptStart", &[], at, Bytes::default());
        script.activity(10 + id).described("System.Net.Sockets", "AcceptStop", &[], at, Bytes::default());
        script.activity(20 + id).described(
            KESTREL,
            "ConnectionStart",
            &text(&["connectionId", "localEndPoint", "remoteEndPoint"]),
            at,
            connected,
        );
        let served = Bytes::default().text("GET").text("/a");
        script.activity(30 + id).described(HOSTING, "RequestStart", &text(&["method", "path"]), at, served);
        let fields = text(&["connectionId", "requestId", "httpVersion", "path", "method"]);
        let reported = Bytes::default().text(connection).text(connection).text("HTTP/1.1").text("/a").text("GET");
        script.activity(40 + id).described(KESTREL, "RequestStart", &fields, at, reported.clone());
        script.activity(40 + id).described(KESTREL, "RequestStop", &fields, at + MS, reported);
        if id == 2 {
            script.activity(30 + id).described(HOSTING, "UnhandledException", &[], at + MS, Bytes::default());
        }
        script.activity(30 + id).described(HOSTING, "RequestStop", &[], at + 2 * MS, Bytes::default());
        script.activity(20 + id).described(
            KESTREL,
            "ConnectionStop",
            &text(&["connectionId"]),
            at + 3 * MS,
            Bytes::default().text(connection),
        );
    }
    // And as it sends three: one is answered well, one not, and one not at all.
    let fields =
        [("scheme", FieldType::String), ("host", FieldType::String), ("port", FieldType::Int32), ("pathAndQuery", FieldType::String)];
    let status = [("statusCode", FieldType::Int32)];
    for (id, port, code) in [(51, 8080, 200_i32), (52, 8080, 404), (53, 443, -1)] {
        let at = i64::from(id) * 100 * MS;
        let sent = Bytes::default().text(if port == 443 { "https" } else { "http" }).text("shop").u32(port).text("/a?user=7");
        script.activity(id).described("System.Net.Http", "RequestStart", &fields, at, sent);
        if code < 0 {
            script.activity(id).described("System.Net.Http", "RequestFailed", &[], at + MS, Bytes::default());
        }
        script.activity(id).described("System.Net.Http", "RequestStop", &status, at + 2 * MS, Bytes::default().u32(code as u32));
    }
    let activities = script.snapshot().activities;
    assert_eq!(activities.requests(), 5);
    let of = |provider: &str, name: &str| {
        let found =
            activities.operations.iter().find(|operation| operation.provider.ends_with(provider) && operation.name == name).unwrap();
        let mut subjects: Vec<_> = found.subjects.iter().map(|subject| (subject.text.as_str(), subject.outcome, subject.count)).collect();
        subjects.sort_unstable();
        (found.started, found.ended, found.failed, subjects)
    };
    use crate::analysis::Outcome::{Failed, Status, Unknown};
    assert_eq!(of("Hosting", "Request"), (2, 2, 1, vec![("GET /a", Unknown, 1), ("GET /a", Failed, 1)]));
    assert_eq!(of("Kestrel", "Request"), (2, 2, 0, vec![("/a GET", Unknown, 2)]));
    assert_eq!(of("Kestrel", "Connection"), (2, 2, 0, vec![("127.0.0.1:80", Unknown, 2)]));
    let sent = vec![("http://shop:8080/a", Status(200), 1), ("http://shop:8080/a", Status(404), 1), ("https://shop/a", Failed, 1)];
    assert_eq!(of("Http", "Request"), (3, 3, 2, sent));
}

/// The end stands first in the stream where another thread's block does.
#[test]
fn ends_that_stand_before_their_begins_are_paired() {
    let mut script = Script::new();
    let mut tell = |id, name: &str, at: i64| {
        script.activity(id).described("System.Net.Sockets", name, &[], at * MS, Bytes::default());
    };
    tell(1, "AcceptStop", 30);
    tell(1, "AcceptStart", 10);
    // The begin of this one was lost, and the next has its number.
    tell(2, "AcceptStop", 40);
    tell(2, "AcceptStart", 50);
    // This one took long.
    tell(3, "AcceptStop", 9000);
    tell(3, "AcceptStart", 60);
    let activities = script.snapshot().activities;
    let [accept] = &activities.operations[..] else { panic!("{activities:?}") };
    assert_eq!((accept.started, accept.ended, accept.running, accept.longest_ns), (3, 2, 1, 8_940_000_000));
}

/// What comes by way of `DiagnosticSource` is grouped by its source and by the command, whatever connection it is sent on.
#[test]
fn commands_to_databases_are_named_by_their_text() {
    let text = |name: &str| Field { name: name.to_owned(), kind: FieldType::String };
    let pairs = FieldType::Array(Box::new(FieldType::Object(vec![text("Key"), text("Value")])));
    let fields = [("SourceName", FieldType::String), ("EventName", FieldType::String), ("Arguments", pairs)];
    let reported = |source: &str, arguments: &[(&str, &str)]| {
        let head = Bytes::default().text(source).text("Before").u16(arguments.len() as u16);
        arguments.iter().fold(head, |bytes, (key, value)| bytes.text(key).text(value))
    };
    const BRIDGE: &str = "Microsoft-Diagnostics-DiagnosticSource";
    let mut script = Script::new();
    let mut command = |at: i64, source: &str, connection: &str, arguments: &[(&str, &str)]| {
        let all: Vec<_> = [("ConnectionId", connection), ("ConnectionString", "Password=x")].iter().chain(arguments).copied().collect();
        script.activity(1).described(BRIDGE, "Activity1Start", &fields, at * MS, reported(source, &all));
        script.activity(1).described(BRIDGE, "Activity1Stop", &fields, (at + 2) * MS, reported(source, &all[..1]));
    };
    let select = [("Database", "shop"), ("CommandText", "SELECT *\nFROM t WHERE id = ?")];
    command(0, "Sql", "a", &select);
    command(10, "Sql", "b", &select);
    command(20, "Ef", "c", &[("Database", "shop"), ("DataSource", "db,1433")]);
    let activities = script.snapshot().activities;
    let all: Vec<_> = activities
        .operations
        .iter()
        .map(|operation| {
            let [subject] = &operation.subjects[..] else { panic!("{operation:?}") };
            (operation.name.as_str(), operation.started, operation.ended, subject.text.as_str(), subject.total_ns)
        })
        .collect();
    assert_eq!(all, [("Sql", 2, 2, "SELECT * FROM t WHERE id = ?", 4_000_000), ("Ef", 1, 1, "shop db,1433", 2_000_000)]);
}
