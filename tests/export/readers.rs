//! Exports as displayed by the programs that they are meant for, compared to the output of `report`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dn_top::analysis::{Live, SampleFilter};

use crate::support::{self, folder};
use crate::trace_processor::{assert_known_fields, read};
use crate::{CAPTURES, capture, export, run};

/// Methods by name, with their self and total samples.
type Counts = BTreeMap<String, (u64, u64)>;

fn report(file: &Path) -> Counts {
    let report = run(&["report", file.to_str().unwrap(), "--waiting", "-n", "10", "--json"]).json();
    let number = |method: &serde_json::Value, column: &str| method[column].as_u64().unwrap();
    let methods = report["methods"].as_array().unwrap().iter();
    methods.map(|method| (method["name"].as_str().unwrap().to_owned(), (number(method, "self"), number(method, "total")))).collect()
}

#[test]
fn pprof_counts_match_report() {
    let Some(pprof) = support::cache("pprof", "pprof").map(|folder| folder.join("pprof")) else { return };
    let place = folder();
    let file = capture("net31-heavy", place.path());
    let profile = place.path().join("profile.pb");
    fs::write(&profile, export(&file, "pprof", &[])).unwrap();
    let words = ["-symbolize=none", "-sample_index=samples", "-nodefraction=0", "-edgefraction=0", "-nodecount=100000", "-top"];
    let output = Command::new(pprof).args(words).arg(&profile).env("HOME", place.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts = Counts::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        // flat flat% sum% cum cum% name
        let columns: Vec<_> = line.split_whitespace().collect();
        if let [flat, _, _, cumulative, _, _, ..] = columns[..]
            && let (Ok(flat), Ok(cumulative)) = (flat.parse(), cumulative.parse())
        {
            counts.insert(columns[5..].join(" "), (flat, cumulative));
        }
    }
    let report = report(&file);
    assert_eq!(report.len(), 10);
    for (method, expected) in report {
        assert_eq!(counts.get(&method), Some(&expected), "{method}");
    }
}

/// Parses a duration as shown by the page, such as `1.26ms (0.03%)`, into nanoseconds.
fn nanoseconds(shown: &str) -> f64 {
    let number = shown.split_whitespace().next().unwrap();
    let at = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
    let unit = match &number[at..] {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        unit => panic!("{unit} of {shown}"),
    };
    number[..at].parse::<f64>().unwrap() * unit
}

/// Returns the text content of HTML.
fn text(html: &str) -> String {
    let mut text = String::new();
    for part in
        html.split('<').enumerate().map(|(index, part)| if index == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) })
    {
        text.push_str(part);
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").trim().to_owned()
}

/// Returns the document that a browser without network connections makes of a page; `None` without a browser.
fn browse(address: &str, home: &Path) -> Option<String> {
    if Command::new("chromium").arg("--version").output().is_err() {
        assert!(std::env::var("CI").is_err(), "there is no chromium: run tests/setup.sh as root");
        support::runtimes::skip("there is no chromium, run tests/setup.sh as root");
        return None;
    }
    let words =
        ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--use-gl=angle", "--use-angle=swiftshader"];
    let words =
        [&words[..], &["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]].concat();
    let more = ["--enable-unsafe-swiftshader", "--virtual-time-budget=20000", "--window-size=1200,4000", "--dump-dom", address];
    let output = Command::new("chromium").args(words).args(more).env("HOME", home).output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn flame_graph_page_matches_folded_stacks() {
    let place = folder();
    let file = capture("net31-heavy", place.path());
    let folded = String::from_utf8(export(&file, "folded", &[])).unwrap();
    let (mut expected, mut whole) = (BTreeMap::new(), 0);
    for (stack, count) in folded.lines().map(|line| line.rsplit_once(' ').unwrap()) {
        let count: u64 = count.parse().unwrap();
        whole += count;
        // After the thread.
        if let Some(outermost) = stack.split(';').nth(1) {
            *expected.entry(outermost).or_default() += count;
        }
    }
    let page = place.path().join("a.html");
    fs::write(&page, export(&file, "html", &[])).unwrap();
    let Some(document) = browse(&format!("file://{}", page.display()), place.path()) else { return };
    // Names with generic arguments are text.
    assert_eq!((document.matches("<pre").count(), document.matches("<script").count()), (1, 1));
    let frames: Vec<_> = document.split("<div ").skip(1).collect();
    let width = |frame: &str| frame.split_once(" width: ").unwrap().1.split("px").next().unwrap().parse::<f64>().unwrap();
    let name = |frame: &str| text(&format!("<div {}", frame.split("</div>").next().unwrap()));
    let scale = width(frames[0]) / whole as f64;
    assert_eq!(name(frames[0]), "all");
    let shown: BTreeMap<_, _> =
        frames.iter().filter(|frame| frame.contains("top: 18px;")).map(|frame| (name(frame), width(frame))).collect();
    assert!(shown.len() > 1, "{shown:?}");
    for (name, count) in
        expected.into_iter().map(|(name, count): (&str, u64)| (name, count as f64 * scale)).filter(|(_, width)| *width > 20.0)
    {
        let shown = shown.get(name).unwrap_or_else(|| panic!("{name} is not among {shown:?}"));
        assert!((shown - count).abs() < 0.1, "{name}: {shown} and not {count}");
    }
    assert!(
        document.contains("samples (100.0 %)") && document.contains("Samples of threads, running or waiting, of process"),
        "{document}"
    );
}

#[test]
fn speedscope_page_matches_report() {
    let Some(page) = support::cache("speedscope", "index.html") else { return };
    let place = folder();
    let file = capture("net31-heavy", place.path());
    let mut live = Live::default();
    read(&fs::read(&file).unwrap(), &mut live);
    // The thread with the most samples.
    let threads = live.profile().methods(SampleFilter::ALL, 1).threads;
    let thread = threads[0].thread;
    let exported = export(&file, "speedscope", &["--thread", &thread.thread.to_string()]);
    let script = place.path().join("profile.js");
    let bytes: String = exported.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    fs::write(&script, format!("speedscope.loadFileFromBase64('a.speedscope.json', btoa('{bytes}'))")).unwrap();
    let address = format!("file://{}/index.html#view=sandwich&localProfilePath={}", page.display(), script.display());
    let (mut shown, mut document) = (BTreeMap::new(), String::new());
    // On a busy machine, the browser may print the page before it shows the profile.
    for _ in 0..3 {
        let Some(printed) = browse(&address, place.path()) else { return };
        document = printed;
        for row in document.split("<tr").skip(1).map(|row| row.split("</tr>").next().unwrap_or_default()) {
            let cells: Vec<_> = row.split("<td").skip(1).map(|cell| text(&format!("<td{cell}"))).collect();
            if let [total, own, name] = &cells[..] {
                shown.insert(name.clone(), (nanoseconds(own), nanoseconds(total)));
            }
        }
        if !shown.is_empty() {
            break;
        }
    }
    let expected = live.profile().methods(SampleFilter { thread: Some(thread), ..SampleFilter::ALL }, 10);
    let whole = expected.samples.all_ns() as f64;
    assert!(!expected.methods.is_empty() && !shown.is_empty(), "{document}");
    for method in &expected.methods {
        let name = format!("{}{}", method.name, method.parameters);
        let Some((own, total)) = shown.get(&name) else { panic!("{name} is not among {:?}", shown.keys()) };
        // A method on the stack in consecutive samples counts as running in between; the page shows two digits.
        for (found, expected) in [(*own, method.own.all_ns()), (*total, method.total.all_ns())] {
            assert!((found - expected as f64).abs() <= whole * 0.02, "{name}: {found} and not {expected} of {whole}");
        }
    }
}

#[test]
fn perfetto_schema_defines_every_exported_field() {
    let place = folder();
    for name in CAPTURES {
        let trace = place.path().join(format!("{name}.trace"));
        fs::write(&trace, export(&capture(name, place.path()), "perfetto", &["--slices", "--flows", "--to", "300ms"])).unwrap();
        assert_known_fields(&trace, &[]);
    }
}

/// A recording from a pipe is read once, as a stream.
#[test]
fn a_report_reads_a_pipe() {
    let place = folder();
    let (pipe, file) = (place.path().join("pipe.nettrace"), capture("net31-heavy", place.path()));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let of_pipe = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, fs::read(&file).unwrap()).unwrap());
        report(&pipe)
    });
    assert_eq!((of_pipe.len(), of_pipe), (10, report(&file)));
}
