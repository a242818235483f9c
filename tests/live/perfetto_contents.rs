//! The tracks of exports, compared to the known work of programs and to the analyses of the same recording.

use std::path::{Path, PathBuf};

use dn_top::analysis::Layer;

use crate::requests::serve;
use crate::support::{Invocation, TIMEOUT, folder, poll, runtimes};
use crate::trace;
use crate::trace_contents::{analyzed, assert_calls, assert_contents};
use crate::trace_processor::Engine;

fn export(file: &Path, options: &[&str]) -> PathBuf {
    let trace = file.with_extension(format!("{}trace", options.concat()));
    let words = ["export", file.to_str().unwrap(), "--format", "perfetto", "-o", trace.to_str().unwrap()];
    let output = Invocation::new([&words[..], options].concat()).run();
    assert_eq!(output.code, 0, "{}", output.stderr);
    trace
}

#[test]
fn requests_have_lanes_and_flows_to_their_events() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each_in_turn(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let mut clients = [0; 3].map(|_| runtime.program("fetch").start());
        clients.iter_mut().for_each(|client| drop(client.carry_out(&format!("get 1 {url}/warm"))));
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let recording = trace::start(&server, &file, &["--profile", "http", "--profile", "exceptions"]);
        // Three concurrent requests.
        clients.iter_mut().for_each(|client| client.command(&format!("get 1 {url}/slow/2000")));
        for client in &clients {
            std::iter::from_fn(|| Some(client.line())).find(|line| line.starts_with("done ")).unwrap();
        }
        clients[0].carry_out(&format!("get 4 {url}/throw"));
        clients[0].carry_out(&format!("get 20 {url}/a"));
        recording.interrupt();
        let trace = export(&file, &["--flows"]);
        engine.assert_no_errors(&trace, "");
        assert_contents(&engine, &trace, &file);
        let snapshot = analyzed(&file);
        let requests =
            snapshot.activities.operations.iter().find(|operation| operation.layer == Layer::Server && operation.started > 0).unwrap();
        assert_eq!(requests.started, 3 + 4 + 20, "{runtime}");
        let name = format!("{} {}", requests.provider, requests.name);
        let number = |sql: &str| engine.query(&trace, sql)[0]["n"].as_u64().unwrap();
        let of_requests = format!("from slice s join track t on s.track_id = t.id where t.name = '{name}'");
        assert_eq!(number(&format!("select count(*) as n {of_requests}")), 27, "{runtime}");
        let lanes = number(&format!("select count(distinct track_id) as n {of_requests} and s.name like '%/slow/%'"));
        assert_eq!(lanes, 3, "{runtime}: requests that overlap");
        // Hosting's request causes Kestrel's, in which the handler runs. Either end of a flow may come first.
        let connected = |track: &str, with: &str| {
            number(&format!(
                "with ends as (select slice_out as one, slice_in as other from flow union select slice_in, slice_out from flow)
                 select count(distinct s.id) as n from slice s join track t on s.track_id = t.id join ends on one = s.id
                 join slice o on o.id = other join track u on o.track_id = u.id where t.name = '{track}' and {with}"
            ))
        };
        let kestrel = "Microsoft-AspNetCore-Server-Kestrel Request";
        assert_eq!(connected("Microsoft.AspNetCore.Hosting Request", &format!("u.name = '{kestrel}'")), 27, "{runtime}");
        assert_eq!(connected(kestrel, "o.category = 'exception'"), 4, "{runtime}: requests and the exceptions thrown in them");
        // A separate recording, as log messages would be placed between the connected slices.
        let file = file.with_extension("logs.nettrace");
        let recording = trace::start(&server, &file, &["--profile", "logs"]);
        clients[0].carry_out(&format!("get 3 {url}/log/20"));
        recording.interrupt();
        let found = assert_contents(&engine, &export(&file, &[]), &file);
        assert!(found["log messages"] > 3, "{runtime}: {found:?}");
    });
}

#[test]
fn runtime_activity_is_on_tracks() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let profiles = ["dotnet-common", "dotnet-sampled-thread-time", "gc-verbose", "threadpool", "startup"];
        let options = profiles.iter().flat_map(|profile| ["--profile", profile]).collect::<Vec<_>>();
        let mut of_attempt = |attempt: u32| {
            let file = place.path().join(format!("{}-{attempt}.nettrace", runtime.version));
            let recording = trace::start(&program, &file, &options);
            for command in ["induce 5 10", "hold 100000", "background 3", "compile 200", "occupy 4 700", "spend 500"] {
                program.carry_out(command);
            }
            recording.interrupt();
            let found = assert_contents(&engine, &export(&file, &[]), &file);
            (file, found)
        };
        let (mut file, mut found) = of_attempt(0);
        // On a machine without an idle CPU, the thread pool may not detect its starvation.
        for attempt in 1..4 {
            if found["starvation"] > 0 {
                break;
            }
            (file, found) = of_attempt(attempt);
        }
        for kind in ["compilations", "background GC", "heap sizes", "worker counts", "starvation"] {
            assert!(found[kind] > 0, "{runtime}: no {kind}: {found:?}");
        }
        let slices = export(&file, &["--slices"]);
        engine.assert_no_errors(&slices, "");
        assert!(assert_calls(&engine, &slices, &file) > 3, "{runtime}");
    });
}

#[test]
fn counters_and_meters_have_published_values() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each(runtimes::with("meters"), |runtime| {
        let mut program = runtime.program("meters").start();
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let meters = "System.Diagnostics.Metrics:2:4:SessionId=a;Metrics=DnTop.Told,DnTop.Meter;RefreshInterval=1;MaxTimeSeries=100;MaxHistograms=10";
        let recording =
            trace::start(&program, &file, &["--provider", "System.Runtime:0:4:EventCounterIntervalSec=1", "--provider", meters]);
        // Values are written to the file once the interval is over: those of EventCounters, and those of meters.
        let written = || {
            let size = || file.with_extension("nettrace.partial").metadata().unwrap().len();
            let before = size();
            poll(TIMEOUT, || (size() > before + 500).then_some(())).unwrap_or_else(|| panic!("{runtime}: nothing is written any more"));
        };
        for command in ["gauge 17", "change 5", "count 3", "record 4 10", "gauge 23"] {
            program.carry_out(command);
            written();
        }
        written();
        recording.interrupt();
        let trace = export(&file, &[]);
        let found = assert_contents(&engine, &trace, &file);
        assert!(found["counter values"] > 20, "{runtime}: {found:?}");
        let values = |meter: &str| {
            let sql = format!("select distinct value from counter c join track t on c.track_id = t.id where t.name = '{meter}' order by 1");
            engine.query(&trace, &sql).iter().map(|row| row["value"].as_f64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(values("g"), [42.0], "{runtime}");
        assert!(values("level").contains(&17.0) && values("level").ends_with(&[23.0]), "{runtime}: {:?}", values("level"));
    });
}

#[test]
fn events_of_the_program_are_on_its_threads() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let recording = trace::start(&program, &file, &["--provider", "DnTop-Known"]);
        program.carry_out("flood 5");
        recording.interrupt();
        let trace = export(&file, &[]);
        engine.assert_no_errors(&trace, "");
        assert_contents(&engine, &trace, &file);
        let rows = engine.query(
            &trace,
            "select s.name, extract_arg(s.arg_set_id, 'debug.provider') as provider, length(extract_arg(s.arg_set_id, 'debug.text')) as length
             from slice s join thread_track t on s.track_id = t.id where s.category = 'event'",
        );
        let expected = serde_json::json!({ "name": "Item", "provider": "DnTop-Known", "length": 1000 });
        assert_eq!(rows, vec![expected; 5], "{runtime}");
    });
}
