//! Scenes: the main states of the program.

mod dialogs;
mod files;
mod jobs;
mod recorded;
mod watched;
mod web;

use std::time::Duration;

use crate::app::test_app::TestApp;
use crate::model::Phase;
use dialogs::*;
use files::picking;
pub(crate) use files::{compared, comparing, opened};
use jobs::*;
use recorded::*;
use watched::*;
use web::{live_requests, web_overview};

/// The name of a scene, and a function that creates it for a terminal size.
type Scene = (&'static str, fn(u16, u16) -> TestApp);

pub(crate) const SCENES: [Scene; 111] = [
    ("first", |w, h| TestApp::new(w, h)),
    ("none", none),
    ("table", TestApp::populated),
    ("trouble", |w, h| keyed(w, h, "G")),
    ("denied", |w, h| keyed(w, h, "/node⏎")),
    ("container", |w, h| keyed(w, h, "/web⏎⏎")),
    ("filtered", |w, h| keyed(w, h, "/we␣!report")),
    ("environment", environment),
    ("starting", |w, h| keyed(w, h, "⏎t")),
    ("recording", |w, h| tracing(w, h, 42, Phase::Recording)),
    ("stopping", |w, h| tracing(w, h, 97, Phase::Stopping { since: Duration::from_secs(3), bytes: 1_310_000 })),
    ("joining", |w, h| tracing(w, h, 97, Phase::Joining { percent: 43 })),
    ("done", done),
    ("operations", operations),
    ("export", |w, h| {
        let mut app = tracing(w, h, 42, Phase::Recording);
        app.press("E");
        app
    }),
    ("exporting", exporting),
    ("dump", |w, h| keyed(w, h, "d")),
    ("full-dump", |w, h| keyed(w, h, "d⇥→→y⏎")),
    ("perf-map", |w, h| keyed(w, h, "p⇤")),
    ("profiles", |w, h| keyed(w, h, "T↓↓␣")),
    ("trace-form", |w, h| keyed(w, h, "O")),
    ("tracepoints", |w, h| into_kernel(w, h, "O⇤⇤all␣gc=1,2")),
    ("tracepoints-missing", tracepoints_missing),
    ("kernel", |w, h| into_kernel(w, h, "3")),
    ("providers", providers),
    ("choose-provider", |w, h| keyed(w, h, "O⇥⌃p↓")),
    ("choose-keywords", |w, h| keyed(w, h, "O⇥⌃p⏎↓␣↓↓␣")),
    ("wrong-answers", wrong_answers),
    ("act", |w, h| keyed(w, h, "a↓↓↓↓")),
    ("set-variable", |w, h| keyed(w, h, "a↓↓↓↓⏎NAME⇥")),
    ("run", |w, h| keyed(w, h, "aG⏎dotnet␣app.dll")),
    ("run-output", ran),
    ("port", |w, h| keyed(w, h, "P")),
    ("close-port", close_port),
    ("producer", |w, h| keyed(w, h, "K")),
    ("served", served),
    ("flight", flight),
    ("copy", |w, h| keyed(w, h, "y")),
    ("own-log", own_log),
    ("palette", |w, h| keyed(w, h, ":du")),
    ("palette-of-all", |w, h| keyed(w, h, ":al")),
    ("help", |w, h| keyed(w, h, "?")),
    ("quit", quit),
    ("finishing", finishing),
    ("overview", |w, h| analyzed(w, h, "")),
    ("gc", |w, h| analyzed(w, h, "4↓↓")),
    ("allocated-types", |w, h| analyzed(w, h, "4f↓")),
    ("allocation-tree", |w, h| analyzed(w, h, "4f⏎")),
    ("exceptions", |w, h| analyzed(w, h, "5↓")),
    ("thrown", |w, h| analyzed(w, h, "5ff")),
    ("threads", |w, h| analyzed(w, h, "6")),
    ("quiet-threads", quiet),
    ("methods", |w, h| analyzed(w, h, "7w↓")),
    ("tree", |w, h| analyzed(w, h, "7wf")),
    ("flame", |w, h| analyzed(w, h, "7wff↓↓")),
    ("zoomed", |w, h| analyzed(w, h, "7ff↓↓→⏎↓/price")),
    ("cpu-trace", |w, h| on_cpu(w, h, "3")),
    ("cpu-methods", |w, h| on_cpu(w, h, "7↓")),
    ("cpu-tree", |w, h| on_cpu(w, h, "7f")),
    ("cpu-waits", |w, h| on_cpu(w, h, "7w↓")),
    ("cpu-flame", |w, h| on_cpu(w, h, "7ff↓↓")),
    ("cpu-threads", |w, h| on_cpu(w, h, "7s↓")),
    ("thread-time", thread_time),
    ("sampled-threads", |w, h| analyzed(w, h, "7s↓↓")),
    ("one-thread", |w, h| analyzed(w, h, "7s↓↓⏎")),
    ("events", |w, h| analyzed(w, h, "8/runtime␣gc")),
    ("single-events", |w, h| analyzed(w, h, "8f↓")),
    ("open-event", |w, h| analyzed(w, h, "8f/exception⏎⏎")),
    ("logs", |w, h| analyzed(w, h, "9⇥⇥↓↓")),
    ("requests", |w, h| analyzed(w, h, "9⇥")),
    ("compilation", |w, h| analyzed(w, h, "9⇥⇥⇥↓")),
    ("assemblies", |w, h| analyzed(w, h, "0⇤⇤⇤⇤")),
    ("slow", |w, h| analyzed(w, h, "0⇤⇤⇤")),
    ("stacks", stacks),
    ("walk-heap", |w, h| keyed(w, h, "M")),
    ("walking-heap", walking),
    ("heap", |w, h| heap(w, h, "")),
    ("heap-paths", |w, h| heap(w, h, "⏎")),
    ("heap-difference", |w, h| heap(w, h, "f")),
    ("heap-file", |w, h| heap(w, h, "o")),
    ("nothing-more", |w, h| {
        let mut app = not_recorded(w, h);
        app.press("0⇤⇤⇤⇤");
        app
    }),
    ("not-recorded", not_recorded),
    ("idle-filter", |w, h| keyed(w, h, "⏎8/gc")),
    ("nothing-yet", nothing_yet),
    ("analyzed", finished),
    ("watching", |w, h| watching(w, h, "")),
    ("sick-overview", overview_with_findings),
    ("web-overview", web_overview),
    ("live-gc", |w, h| live(w, h, "⏎4")),
    ("live-requests", live_requests),
    ("unwatched-requests", |w, h| keyed(w, h, "⏎9⇥")),
    ("live-exceptions", |w, h| live(w, h, "⏎5")),
    ("live-threads", |w, h| live(w, h, "⏎6↓")),
    ("live-compilation", |w, h| live(w, h, "⏎9⇥⇥⇥")),
    ("live-assemblies", mapped),
    ("live-top-frames", |w, h| {
        let mut app = stacks(w, h);
        app.press("6");
        list_threads(&mut app);
        app
    }),
    ("counters", |w, h| counting(w, h, "↓↓")),
    ("counters-folded", |w, h| counting(w, h, "⏎>")),
    ("not-watched", |w, h| keyed(w, h, "⏎9")),
    ("pick-file", |w, h| picking(w, h, "↓")),
    ("file", opened),
    ("file-heap", files::heap),
    ("file-part", |w, h| {
        let mut app = opened(w, h);
        app.press("{b{2");
        app
    }),
    ("pick-compared", |w, h| comparing(w, h, "")),
    ("compare-nothing", |w, h| {
        let mut app = opened(w, h);
        app.press("⇥⇤⇤");
        app
    }),
    ("compare-itself", |w, h| comparing(w, h, "⏎")),
    ("compare", |w, h| compared(w, h, "↓")),
    ("compare-methods", |w, h| compared(w, h, "Xff")),
    ("files", |w, h| {
        let mut app = opened(w, h);
        app.press("qz");
        app
    }),
    ("sick", |w, h| watching(w, h, "/inventory⏎⏎")),
    // Two are recorded, one of them with problems.
    ("sick-recorded", |w, h| watching(w, h, "t/inventory⏎t/⎋")),
];

/// Presses keys after all processes are listed.
fn keyed(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = TestApp::populated(width, height);
    app.press(keys);
    app
}
