//! Requests and other activities.

use super::script::MS;
use super::{Bytes, Script};
use crate::analysis::{ActivitySubject, Outcome};
use crate::nettrace::{Field, FieldType};

const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const CLIENT: &str = "System.Net.Http";
const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const ASP_NET: &str = "Microsoft.AspNetCore";

/// The fields of the start event of an incoming request.
const SERVED: [(&str, FieldType); 2] = [("method", FieldType::String), ("path", FieldType::String)];
/// The fields of the start event of an outgoing request.
const SENT: [(&str, FieldType); 4] =
    [("scheme", FieldType::String), ("host", FieldType::String), ("port", FieldType::Int32), ("pathAndQuery", FieldType::String)];

#[test]
fn requests_are_paired_by_activity() {
    let start = |path| Bytes::default().text("http").text("shop").u32(80).text(path);
    let mut script = Script::new();
    script.activity(1).described(CLIENT, "RequestStart", &SENT, 0, start("/a?user=7"));
    script.activity(2).described(CLIENT, "RequestStart", &SENT, MS, start("/b"));
    script.activity(1).described(CLIENT, "RequestStop", &[], 5 * MS, Bytes::default());
    script.activity(3).described(CLIENT, "RequestStart", &SENT, 6 * MS, start("/a?user=8"));
    script.activity(3).described(CLIENT, "RequestStop", &[], 7 * MS, Bytes::default());
    script.activity(9).described(CLIENT, "RequestStop", &[], 7 * MS, Bytes::default());
    script.activity(0).described(CLIENT, "RequestStart", &SENT, 8 * MS, start("/c"));
    let activities = script.snapshot().activities;
    let [http] = &activities.operations[..] else { panic!("{activities:?}") };
    assert_eq!((http.name.as_str(), http.started, http.ended, http.running, http.longest_ns), ("Request", 4, 2, 1, 5_000_000));
    let subjects: Vec<_> = http.subjects.iter().map(|subject| (subject.text.as_str(), subject.count, subject.total_ns)).collect();
    assert_eq!(subjects, [("http://shop/a", 2, 6_000_000)]);
    assert_eq!((activities.running.len(), activities.running[0].subject.as_str(), activities.running[0].since), (1, "http://shop/b", MS));
}

/// A request reported by several event sources is counted once and has its status; its subject excludes everything specific to a single
/// request.
#[test]
fn requests_are_counted_once_and_have_their_outcome() {
    let text = |names: &[&'static str]| names.iter().map(|name| (*name, FieldType::String)).collect::<Vec<_>>();
    let mut script = Script::new();
    // As Kestrel serves two requests on two connections, the second of which ends with an exception.
    for (id, connection) in [(1, "0HN1"), (2, "0HN2")] {
        let at = i64::from(id) * 100 * MS;
        const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
        let connected = Bytes::default().text(connection).text("127.0.0.1:80").text("127.0.0.1:5001");
        script.activity(10 + id).described("System.Net.Sockets", "AcceptStart", &[], at, Bytes::default());
        script.activity(10 + id).described("System.Net.Sockets", "AcceptStop", &[], at, Bytes::default());
        let fields = text(&["connectionId", "localEndPoint", "remoteEndPoint"]);
        script.activity(20 + id).described(KESTREL, "ConnectionStart", &fields, at, connected);
        let served = Bytes::default().text("GET").text("/a");
        script.activity(30 + id).described(HOSTING, "RequestStart", &SERVED, at, served);
        let fields = text(&["connectionId", "requestId", "httpVersion", "path", "method"]);
        let reported = Bytes::default().text(connection).text(connection).text("HTTP/1.1").text("/a").text("GET");
        script.activity(40 + id).described(KESTREL, "RequestStart", &fields, at, reported.clone());
        script.activity(40 + id).described(KESTREL, "RequestStop", &fields, at + MS, reported);
        if id == 2 {
            script.activity(30 + id).described(HOSTING, "UnhandledException", &[], at + MS, Bytes::default());
        }
        script.activity(30 + id).described(HOSTING, "RequestStop", &[], at + 2 * MS, Bytes::default());
        let closed = Bytes::default().text(connection);
        script.activity(20 + id).described(KESTREL, "ConnectionStop", &fields[..1], at + 3 * MS, closed);
    }
    // And as it sends four: one succeeds, one gets an error status, and two get no response.
    let status = [("statusCode", FieldType::Int32)];
    for (id, port, code) in [(51, 8080, 200_i32), (52, 8080, 404), (53, 443, -1), (54, 443, -1)] {
        let at = i64::from(id) * 100 * MS;
        let sent = Bytes::default().text(if port == 443 { "https" } else { "http" }).text("shop").u32(port).text("/a?user=7");
        script.activity(id).described(CLIENT, "RequestStart", &SENT, at, sent);
        if id == 53 {
            script.activity(id).described(CLIENT, "RequestFailed", &[], at + MS, Bytes::default());
        }
        script.activity(id).described(CLIENT, "RequestStop", &status, at + 2 * MS, Bytes::default().u32(code as u32));
    }
    let activities = script.snapshot().activities;
    assert_eq!(activities.requests(), 6);
    let of = |provider: &str, name: &str| {
        let found =
            activities.operations.iter().find(|operation| operation.provider.ends_with(provider) && operation.name == name).unwrap();
        let ended = |subject: &'_ ActivitySubject| {
            subject.outcomes.clone().into_iter().map(|(outcome, count)| (subject.text.clone(), outcome, count)).collect::<Vec<_>>()
        };
        let mut subjects: Vec<_> = found.subjects.iter().flat_map(ended).collect();
        subjects.sort_unstable();
        (found.started, found.ended, found.failed, subjects)
    };
    use crate::analysis::Outcome::{Failed, Status, Unknown};
    let rows = |rows: &[(&str, Outcome, u64)]| {
        rows.iter().map(|(text, outcome, count)| ((*text).to_owned(), *outcome, *count)).collect::<Vec<_>>()
    };
    assert_eq!(of("Hosting", "Request"), (2, 2, 1, rows(&[("GET /a", Unknown, 1), ("GET /a", Failed, 1)])));
    assert_eq!(of("Kestrel", "Request"), (2, 2, 0, rows(&[("/a GET", Unknown, 2)])));
    assert_eq!(of("Kestrel", "Connection"), (2, 2, 0, rows(&[("127.0.0.1:80", Unknown, 2)])));
    let sent = [("http://shop:8080/a", Status(200), 1), ("http://shop:8080/a", Status(404), 1), ("https://shop/a", Failed, 2)];
    assert_eq!(of("Http", "Request"), (4, 4, 3, rows(&sent)));
}

/// Without the events of the hosting, those of the server count.
#[test]
fn requests_of_the_server_count_if_those_of_the_hosting_are_missing() {
    let requests = |has_hosting| {
        let mut script = Script::new();
        for (id, provider) in [(1, "Microsoft-AspNetCore-Server-Kestrel"), (2, CLIENT), (3, HOSTING)] {
            if id < 3 || has_hosting {
                script.activity(id).described(provider, "RequestStart", &[], MS, Bytes::default());
                script.activity(id).described(provider, "RequestStop", &[], 2 * MS, Bytes::default());
            }
        }
        script.snapshot().activities.requests()
    };
    assert_eq!([requests(false), requests(true)], [2, 2]);
}

/// Writes an event of a library, forwarded by `DiagnosticSource`.
fn forward(script: &mut Script, id: u8, name: &str, at: i64, source: &str, arguments: &[(&str, &str)]) {
    let text = |name: &str| Field { name: name.to_owned(), kind: FieldType::String };
    let pairs = FieldType::Array(Box::new(FieldType::Object(vec![text("Key"), text("Value")])));
    let fields = [("SourceName", FieldType::String), ("EventName", FieldType::String), ("Arguments", pairs)];
    let head = Bytes::default().text(source).text("Before").u16(arguments.len() as u16);
    let payload = arguments.iter().fold(head, |bytes, (key, value)| bytes.text(key).text(value));
    script.activity(id).described(DIAGNOSTIC_SOURCE, name, &fields, at, payload);
}

/// Requests get the method, route and status that their libraries publish while they are in progress.
#[test]
fn requests_have_their_route_and_status() {
    const HTTP_CLIENT: &str = "HttpHandlerDiagnosticListener";
    let mut script = Script::new();
    let mut serve = |id: u8, path: &str, ms: i64, arguments: &[(&str, &str)]| {
        let at = i64::from(id) * 1000 * MS;
        script.activity(id).described(HOSTING, "RequestStart", &SERVED, at, Bytes::default().text("GET").text(path));
        forward(&mut script, id, "Event", at + ms * MS, ASP_NET, arguments);
        script.activity(id).described(HOSTING, "RequestStop", &[], at + ms * MS, Bytes::default());
    };
    serve(1, "/orders/7", 10, &[("StatusCode", "200"), ("RouteValues", "[id, 7]")]);
    serve(2, "/orders/8", 20, &[("StatusCode", "200"), ("RouteValues", "[id, 8]")]);
    serve(3, "/orders/9", 30, &[("StatusCode", "500"), ("RouteValues", "[id, 9]")]);
    // A route with a number as a segment, and paths without a route.
    serve(4, "/2024/sales", 5, &[("StatusCode", "200"), ("RouteValues", "[controller, sales]")]);
    serve(7, "/about/8", 3, &[("StatusCode", "404")]);
    serve(8, "/about/9", 1, &[("StatusCode", "404")]);
    // Ended with an unhandled exception: before the response started, after it started, because of a bad request, and after a response with
    // such a status.
    for (id, status) in [(9, "500"), (10, "200"), (11, "413"), (12, "404")] {
        let at = i64::from(id) * 1000 * MS;
        script.activity(id).described(HOSTING, "RequestStart", &SERVED, at, Bytes::default().text("GET").text("/throw"));
        forward(&mut script, id, "Event", at, ASP_NET, &[("StatusCode", status)]);
        script.activity(id).described(HOSTING, "UnhandledException", &[], at, Bytes::default());
        script.activity(id).described(HOSTING, "RequestStop", &[], at + MS / 4, Bytes::default());
    }
    // From an unknown library, and for a request that has ended.
    forward(&mut script, 5, "Event", 6000 * MS, "Other", &[("StatusCode", "500")]);
    forward(&mut script, 1, "Event", 6000 * MS, ASP_NET, &[("StatusCode", "500")]);
    let sent = Bytes::default().text("https").text("shop");
    script.activity(6).described(CLIENT, "RequestStart", &SENT[..2], 7000 * MS, sent);
    // Redirected once.
    for _ in 0..2 {
        forward(&mut script, 6, "Event", 7001 * MS, HTTP_CLIENT, &[("Method", "POST")]);
    }
    script.activity(6).described(CLIENT, "RequestStop", &[("statusCode", FieldType::Int32)], 7002 * MS, Bytes::default().u32(503));
    let activities = script.snapshot().activities;
    let routes: Vec<_> = activities
        .routes()
        .into_iter()
        .map(|(operation, route)| (route.text.as_str(), route.count, route.failed, route.failures(operation.layer), route.statuses()))
        .collect();
    assert_eq!(
        routes,
        [
            ("GET /orders/{id}", 3, 1, "500 ×1".to_owned(), "200 ×2, 500 ×1".to_owned()),
            ("GET /2024/sales", 1, 0, String::new(), "200 ×1".to_owned()),
            ("GET /about/{number}", 2, 0, String::new(), "404 ×2".to_owned()),
            ("POST https://shop", 1, 1, "503 ×1".to_owned(), "503 ×1".to_owned()),
            ("GET /throw", 4, 3, "failed ×2, 500 ×1".to_owned(), "failed ×2, 413 ×1, 500 ×1".to_owned()),
        ]
    );
    let [p50, p95, p99] = activities.routes()[0].1.quantiles_ns.map(|ns| ns as f64 / 1e6);
    assert!((p50 / 20.0 - 1.0).abs() < 0.02 && p95 == 30.0 && p99 == 30.0, "{p50} {p95} {p99}");
    assert!(!activities.operations.iter().any(|operation| operation.lacks_status()));
}

/// Paths and route values that exceed the maximum lengths.
#[test]
fn long_paths_are_shortened_to_routes() {
    let mut script = Script::new();
    let mut serve = |id: u8, count: usize, has_values: bool| {
        let guids: Vec<_> = (0..count).map(|at| format!("{id:08x}-7d3c-4b1e-9f0a-{at:012x}")).collect();
        let at = i64::from(id) * MS;
        let path = Bytes::default().text("GET").text(&format!("/{}", guids.join("/")));
        script.activity(id).described(HOSTING, "RequestStart", &SERVED, at, path);
        if has_values {
            let values: Vec<_> = guids.iter().enumerate().map(|(at, guid)| format!("[v{at}, {guid}]")).collect();
            let arguments = [("StatusCode", "200"), ("RouteValues", &values.join(","))];
            forward(&mut script, id, "Event", at, ASP_NET, &arguments);
        }
        script.activity(id).described(HOSTING, "RequestStop", &[], at + i64::from(id), Bytes::default());
    };
    (1..=2).for_each(|id| serve(id, 5, true));
    (3..=4).for_each(|id| serve(id, 7, false));
    let activities = script.snapshot().activities;
    let routes: Vec<_> = activities.routes().into_iter().map(|(_, route)| (route.text.as_str(), route.count)).collect();
    let expected = [("GET /{guid}/{guid}/{guid}/{guid}/{guid}/…", 2), ("GET /{v0}/{v1}/{v2}/{v3}/{guid}", 2)];
    assert_eq!(routes, expected);
}

/// More routes than the limit: all of them are counted.
#[test]
fn routes_beyond_the_limit_are_counted_together() {
    let mut script = Script::new();
    for number in 0..3000_i64 {
        let path = Bytes::default().text("GET").text(&format!("/a{number}"));
        script.activity(1).described(HOSTING, "RequestStart", &SERVED, number * MS, path);
        script.activity(1).described(HOSTING, "RequestStop", &[], number * MS + 1, Bytes::default());
    }
    let [served] = &script.snapshot().activities.operations[..] else { panic!() };
    assert_eq!((served.ended, served.subjects.len()), (3000, 100));
    assert_eq!((served.others.count, served.others.failed, served.others.total_ns), (2900, 0, 2900));
}

/// Durations in a malformed stream exceed the maximum that can be counted.
#[test]
fn excessive_durations_are_capped() {
    let mut script = Script::new();
    for (id, path) in [(1, "/a"), (2, "/b"), (3, "/c")] {
        script.activity(id).described(HOSTING, "RequestStart", &SERVED, 0, Bytes::default().text("GET").text(path));
        script.activity(id).described(HOSTING, "RequestStop", &[], 9_000_000_000_000_000_000, Bytes::default());
    }
    let [served] = &script.snapshot().activities.operations[..] else { panic!() };
    assert_eq!((served.ended, served.subjects.len(), served.others.total_ns), (3, 3, 0));
    assert!(served.subjects.iter().all(|route| route.total_ns > 1 << 62));
}

/// Outgoing requests to many URLs, each of which takes longer than all incoming requests.
#[test]
fn many_outgoing_urls_do_not_displace_incoming_routes() {
    let mut script = Script::new();
    let mut request = |provider: &'static str, fields: &[(&'static str, FieldType)], at: i64, ns: i64, payload: Bytes| {
        script.activity(1).described(provider, "RequestStart", fields, at, payload);
        script.activity(1).described(provider, "RequestStop", &[], at + ns, Bytes::default());
    };
    for number in 0..10_i64 {
        request(HOSTING, &SERVED, number * MS, 1, Bytes::default().text("GET").text(&format!("/a{number}")));
    }
    for number in 10..5000_i64 {
        let url = Bytes::default().text("http").text("shop").u32(80).text(&format!("/a{number}"));
        request(CLIENT, &SENT, number * MS, 100, url);
    }
    let [served, sent] = &script.snapshot().activities.operations[..] else { panic!() };
    assert_eq!((served.ended, served.subjects.len(), served.others.count), (10, 10, 0));
    assert_eq!((sent.ended, sent.subjects.len(), sent.others.count), (4990, 100, 4890));
}

/// The stop event comes first in the stream if the block of another thread does.
#[test]
fn stop_events_before_their_start_events_are_paired() {
    let mut script = Script::new();
    let mut activity_event = |id, name: &str, at: i64| {
        script.activity(id).described("System.Net.Sockets", name, &[], at * MS, Bytes::default());
    };
    activity_event(1, "AcceptStop", 30);
    activity_event(1, "AcceptStart", 10);
    // The start event of this one was lost, and its ID is reused by the next.
    activity_event(2, "AcceptStop", 40);
    activity_event(2, "AcceptStart", 50);
    // A slow one.
    activity_event(3, "AcceptStop", 9000);
    activity_event(3, "AcceptStart", 60);
    let activities = script.snapshot().activities;
    let [accept] = &activities.operations[..] else { panic!("{activities:?}") };
    assert_eq!((accept.started, accept.ended, accept.running, accept.longest_ns), (3, 2, 1, 8_940_000_000));
}

/// Events forwarded by `DiagnosticSource` are grouped by source and command, regardless of the connection.
#[test]
fn database_commands_are_grouped_by_their_text() {
    let mut script = Script::new();
    let mut command = |at: i64, source: &str, connection: &str, arguments: &[(&str, &str)]| {
        let all: Vec<_> = [("ConnectionId", connection), ("ConnectionString", "Password=x")].iter().chain(arguments).copied().collect();
        forward(&mut script, 1, "Activity1Start", at * MS, source, &all);
        forward(&mut script, 1, "Activity1Stop", (at + 2) * MS, source, &all[..1]);
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

/// A library, or a hostile process, can repeat an event of a request any number of times, with any number of arguments.
#[test]
fn subjects_are_bounded() {
    let mut script = Script::new();
    let long = format!("[{}/v/v, v]", "x".repeat(180));
    script.activity(1).described(HOSTING, "RequestStart", &SERVED, 0, Bytes::default().text("GET").text("/v"));
    for at in 1..100 {
        forward(&mut script, 1, "Event", at, ASP_NET, &[("RouteValues", &long)]);
    }
    let many = vec![("Key", "x"); 2_000];
    forward(&mut script, 2, "Activity1Start", MS, "Sql", &many);
    for activity in script.snapshot().activities.running {
        assert!((200..1500).contains(&activity.subject.len()), "{} bytes", activity.subject.len());
    }
}
