//! HTTP requests between a real web server and a real client.

use dn_top::analysis::ActivitySnapshot;

use crate::numbers::read;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Program, folder};
use crate::trace;

/// Starts the web server, and returns its URL.
pub(crate) fn serve(runtime: &Runtime) -> (Program, String) {
    let server = runtime.program("web").start();
    let url = std::iter::from_fn(|| Some(server.line())).find_map(|line| url_in(&format!("{line}\n")));
    (server, url.unwrap())
}

/// Returns the URL of the web server in its output.
pub(crate) fn url_in(output: &str) -> Option<String> {
    let (url, _) = output.split_once("listening on: ")?.1.split_once('\n')?;
    Some(url.trim().to_owned())
}

/// Each scope of a log is an activity within the request.
#[test]
fn status_is_known_if_logs_are_recorded_as_well() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&server, &file, &["--profile", "http", "--profile", "logs"]);
        for command in [format!("get 3 {url}/orders/0"), format!("get 2 {url}/throw")] {
            client.carry_out(&command);
        }
        recording.interrupt();
        let found = Invocation::new(["http".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json();
        let statuses = |request: &str| {
            let route = found["routes"].as_array().unwrap().iter().find(|route| route["request"] == request);
            route.unwrap_or_else(|| panic!("{runtime}: {found:#}"))["statuses"].clone()
        };
        assert_eq!(statuses("GET /orders/{id}"), serde_json::json!({ "404": 3 }), "{runtime}");
        assert_eq!(statuses("GET /throw"), serde_json::json!({ "500": 2 }), "{runtime}");
        assert_eq!((&found["requests"], &found["failed"]), (&5.into(), &2.into()), "{runtime}");
    });
}

#[test]
fn requests_are_counted_once_with_their_status() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let place = folder();
        let files = ["server", "client"].map(|name| place.path().join(name));
        let recordings =
            [(&server, &files[0]), (&client, &files[1])].map(|(program, file)| trace::start(program, file, &["--profile", "http"]));
        for (command, says) in [
            (format!("get 20 {url}/a?x=1"), "status 200"),
            (format!("get 5 {url}/status/404"), "status 404"),
            (format!("get 3 {url}/throw"), "status 500"),
            (format!("get 4 {url}/orders/7"), "status 200"),
            (format!("get 2 {url}/orders/0"), "status 404"),
            (format!("get 1 {url}/b/0d6ad7a5-7d3c-4b1e-9f0a-2b7d1c9e8f10"), "status 200"),
            (format!("get 1 {url}/b/f00d6ad7-7d3c-4b1e-9f0a-2b7d1c9e8f10"), "status 200"),
            // No server listens on that port.
            ("get 2 http://127.0.0.1:1/none".to_owned(), "failed HttpRequestException"),
        ] {
            assert_eq!(client.carry_out(&command).last().map(String::as_str), Some(says), "{runtime}: {command}");
        }
        recordings.into_iter().for_each(|recording| drop(recording.interrupt()));
        let routes = Invocation::new(["http".as_ref(), files[0].as_os_str(), "--json".as_ref()]).run().json()["routes"].clone();
        let orders = routes.as_array().unwrap().iter().find(|route| route["request"] == "GET /orders/{id}");
        let orders = orders.unwrap_or_else(|| panic!("{runtime}: {routes:#}"));
        assert_eq!((&orders["direction"], &orders["count"], &orders["failed"]), (&"in".into(), &6.into(), &0.into()), "{runtime}");
        assert_eq!(orders["statuses"], serde_json::json!({ "200": 4, "404": 2 }), "{runtime}");
        let times = ["p50_ns", "p95_ns", "p99_ns", "max_ns"].map(|name| orders[name].as_u64().unwrap());
        assert!(times[0] > 0 && times.is_sorted(), "{runtime}: {orders:#}");
        let few = Invocation::new(["http".as_ref(), files[0].as_os_str(), "-n".as_ref(), "2".as_ref(), "--json".as_ref()]).run().json();
        let (listed, [others]) = (few["routes"].as_array().unwrap(), &few["other_routes"].as_array().unwrap()[..]) else {
            panic!("{runtime}: {few:#}")
        };
        let sum = |of: &str| listed.iter().map(|route| route[of].as_u64().unwrap()).sum::<u64>() + others[of].as_u64().unwrap();
        assert_eq!((listed.len(), &others["direction"], sum("count"), sum("failed")), (2, &"in".into(), 36, 3), "{runtime}: {few:#}");
        let [served, sent] = files.map(|file| read(&file).snapshot.activities.clone());
        assert_eq!((served.requests(), sent.requests()), (36, 38), "{runtime}");
        let of = |activities: &ActivitySnapshot, provider: &str| {
            let found = activities.operations.iter().find(|operation| operation.provider == provider && operation.name == "Request");
            let found = found.unwrap_or_else(|| panic!("{runtime}: {provider}: {activities:#?}"));
            let mut subjects: Vec<_> = found.subjects.iter().map(|subject| (subject.text.clone(), subject.statuses())).collect();
            subjects.sort_unstable();
            (found.started, found.ended, found.failed, subjects)
        };
        let row = |path: &str, ended: &str| (path.to_owned(), ended.to_owned());
        assert_eq!(
            of(&sent, "System.Net.Http"),
            (
                38,
                38,
                12,
                vec![
                    row("GET http://127.0.0.1:1/none", "failed ×2"),
                    row(&format!("GET {url}/a"), "200 ×20"),
                    row(&format!("GET {url}/b/{{guid}}"), "200 ×2"),
                    row(&format!("GET {url}/orders/{{number}}"), "200 ×4, 404 ×2"),
                    row(&format!("GET {url}/status/{{number}}"), "404 ×5"),
                    row(&format!("GET {url}/throw"), "500 ×3"),
                ]
            ),
            "{runtime}"
        );
        let expected = vec![
            row("GET /a", "200 ×20"),
            row("GET /b/{guid}", "200 ×2"),
            // The template from routing; the following rows have none.
            row("GET /orders/{id}", "200 ×4, 404 ×2"),
            row("GET /status/{number}", "404 ×5"),
            row("GET /throw", "500 ×3"),
        ];
        assert_eq!(of(&served, "Microsoft.AspNetCore.Hosting"), (36, 36, 3, expected), "{runtime}");
        // As reported by Kestrel: not one row per connection.
        let (_, _, _, kestrel) = of(&served, "Microsoft-AspNetCore-Server-Kestrel");
        assert_eq!(kestrel.len(), 5, "{runtime}: {kestrel:?}");
    });
}
