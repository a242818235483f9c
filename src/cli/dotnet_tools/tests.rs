use super::options::{providers, time_span};
use super::*;
use crate::cli::args::Arguments;
use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn words(line: &str) -> Vec<OsString> {
    std::iter::once("dn-top").chain(line.split(' ')).map(OsString::from).collect()
}

fn ours(line: &str) -> Result<String, String> {
    let translated = translate(&words(line))?.ok_or_else(|| format!("{line}: not one of the other tools"))?;
    Arguments::try_parse_from(&translated.arguments).map_err(|error| format!("{line}: {error}"))?;
    Ok(translated.arguments[1..].iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
}

/// Every documented option of the tools, with its translation.
#[test]
fn every_documented_option_is_translated_or_refused() {
    let accepted = [
        ("trace collect -p 12", "trace --resume 12"),
        ("trace collect --process-id 12", "trace --resume 12"),
        ("trace collect -n api", "trace --resume api"),
        ("trace collect --name=api", "trace --resume api"),
        ("trace collect --dport /run/p,connect", "trace --resume /run/p,connect"),
        ("trace collect --diagnostic-port /run/p,connect", "trace --resume /run/p,connect"),
        ("trace collect --diagnostic-port /run/p", "trace /run/p,listen"),
        ("trace collect --dport /run/p,listen", "trace /run/p,listen"),
        ("counters monitor --diagnostic-port /run/p --counters A", "counters --counters A /run/p,listen"),
        ("counters collect --dport /run/p,connect", "counters --format csv --output counter.csv /run/p,connect"),
        ("gcdump collect --diagnostic-port /run/p,listen", "heap --gcdump --yes /run/p,listen"),
        ("gcdump report --diagnostic-port /run/p", "heap --yes /run/p,listen"),
        ("stack report --diagnostic-port /run/p", "stacks /run/p,listen"),
        ("dump collect --diagnostic-port /run/p", "dump --type full /run/p,listen"),
        ("trace collect -p 12 -o a.nettrace", "trace --output a.nettrace --resume 12"),
        ("trace collect -p 12 --output a.nettrace", "trace --output a.nettrace --resume 12"),
        (
            "trace collect -p 12 --providers X:0x1:5 --duration 00:00:30 --format Speedscope",
            "trace --provider X:0x1:5 --duration 30s --export speedscope --resume 12",
        ),
        ("trace collect -p 12 --providers A:1:4:k=v;k2=v2,B", "trace --provider A:1:4:k=v;k2=v2 --provider B --resume 12"),
        ("trace collect -p 12 --profile gc-verbose,database", "trace --profile gc-verbose --profile database --resume 12"),
        ("trace collect -p 12 --format Chromium", "trace --export chromium --resume 12"),
        ("trace collect -p 12 --format NetTrace", "trace --resume 12"),
        ("trace collect -p 12 --buffersize 64", "trace --buffer-mb 64 --resume 12"),
        ("trace collect -p 12 --duration 01:00:00:10", "trace --duration 86410s --resume 12"),
        ("trace collect -p 12 --clrevents gc+gchandle", "trace --clr-events gc+gchandle --resume 12"),
        ("trace collect -p 12 --clrevents gc --clreventlevel verbose", "trace --clr-events gc:verbose --resume 12"),
        ("trace collect -p 12 --resume-runtime", "trace --resume 12"),
        ("trace collect -p 12 --resume-runtime:false", "trace 12"),
        ("trace collect -p 12 --resume-runtime false", "trace 12"),
        ("trace collect -p 12 --stopping-event-provider-name P --stopping-event-event-name Done", "trace --stop-on P/Done --resume 12"),
        ("trace collect -p 12 --stopping-event-provider-name P", "trace --stop-on P/* --resume 12"),
        (
            "trace collect -p 12 --stopping-event-provider-name P --stopping-event-event-name Done --stopping-event-payload-filter a:1,b:x:y",
            "trace --stop-on P/Done[a=1,b=x:y] --resume 12",
        ),
        (
            "trace collect -p 12 --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Stop",
            "trace --stop-on Microsoft-Windows-DotNETRuntime/GCEnd --resume 12",
        ),
        ("trace collect -p 12 --duration 00:00:00:00", "trace --resume 12"),
        ("trace collect -p 12 --rundown false", "trace --rundown none --resume 12"),
        ("trace collect -p 12 --rundown true", "trace --rundown full --resume 12"),
        ("trace collect -p 12 --buffering-mode Block", "trace --block --resume 12"),
        ("trace collect -p 12 --buffering-mode 1", "trace --block --resume 12"),
        ("trace collect -p 12 --buffering-mode drop", "trace --resume 12"),
        ("trace collect -p 12 --buffering-mode 0", "trace --resume 12"),
        ("trace collect --show-child-io -- dotnet app.dll --x", "run --show-output -- dotnet app.dll --x"),
        ("trace collect --duration 00:05 -- app", "run --duration 300s -- app"),
        ("trace convert a.nettrace --format Speedscope -o b.json", "export a.nettrace --format speedscope --output b.speedscope.json"),
        ("trace convert a.nettrace --format Chromium -o c/b", "export a.nettrace --format chromium --output c/b.chromium.json"),
        (
            "trace convert a.nettrace --format Speedscope -o b.speedscope.json",
            "export a.nettrace --format speedscope --output b.speedscope.json",
        ),
        ("trace report a.nettrace topN", "report a.nettrace -n 5"),
        ("trace report a.nettrace topN -n 10 --inclusive -v", "report a.nettrace --inclusive -n 10"),
        ("trace list-profiles", "profiles"),
        ("trace ps", "ps"),
        ("counters monitor -p 12 --counters System.Runtime", "counters --counters System.Runtime 12"),
        (
            "counters monitor -n api --refresh-interval 3 --counters A[x,y],EventCounters\\B --showDeltas --abbreviateLargeNumbers",
            "counters --interval 3s --counters A[x,y],EventCounters\\B api",
        ),
        (
            "counters collect -p 12 --format json -o c.json --maxHistograms 20 --maxTimeSeries 50 --duration 00:00:10",
            "counters --max-histograms 20 --max-time-series 50 --duration 10s --format json --output c.json 12",
        ),
        ("counters collect -p 12", "counters --format csv --output counter.csv 12"),
        ("counters collect -p 12 -o c", "counters --format csv --output c.csv 12"),
        ("counters monitor --process-id 12 --refresh-interval 3 System.Runtime", "counters --interval 3s --counters System.Runtime 12"),
        ("counters monitor System.Runtime[cpu-usage] B -p 12", "counters --counters System.Runtime[cpu-usage],B 12"),
        ("counters monitor 12", "counters 12"),
        ("trace collect api --duration 00:00:05", "trace --duration 5s --resume api"),
        ("counters ps", "ps"),
        ("gcdump collect -p 12", "heap --gcdump --yes 12"),
        ("gcdump collect -p 12 -t 60 -o a.gcdump -v", "heap --timeout 60s --output a.gcdump --yes 12"),
        ("gcdump collect -p 12 -o a", "heap --output a.gcdump --yes 12"),
        ("gcdump report -p 12 -t HeapStat", "heap --yes 12"),
        ("gcdump report a.gcdump", "heap a.gcdump"),
        ("gcdump ps", "ps"),
        ("stack report -n api", "stacks api"),
        ("stack ps", "ps"),
        ("dump collect -p 12", "dump --type full 12"),
        ("dump collect -p 12 --type Heap --diag --crashreport -o /tmp/c", "dump --diag --crash-report --type heap --output /tmp/c 12"),
        ("dump ps", "ps"),
        ("--readonly dump ps", "--readonly ps"),
        ("--log a.log --demo trace collect -p 12", "--log a.log --demo trace --resume 12"),
        ("--log=a.log dump ps", "--log=a.log ps"),
    ];
    for (theirs, expected) in accepted {
        assert_eq!(ours(theirs).as_deref(), Ok(expected), "{theirs}");
    }
    let refused = [
        ("trace collect -p 1 -n a", "give only one of"),
        ("trace collect -p 1 --unknown", "unknown option '--unknown'"),
        ("trace collect -p", "-p needs a value"),
        ("trace collect -p 1 --dsrouter ios", "--dsrouter is not supported"),
        ("trace collect --dport /run/p --resume-runtime:false", "would stay suspended"),
        ("counters monitor --dport /run/p --resume-runtime false", "would stay suspended"),
        ("trace collect -p 1 --stopping-event-payload-filter a:b", "needs the names"),
        (
            "trace collect -p 1 --stopping-event-provider-name P --stopping-event-event-name E --stopping-event-payload-filter a",
            "is FIELD:VALUE",
        ),
        ("trace collect -p 1 --clreventlevel 5", "needs --clrevents"),
        ("trace collect -p 1 --format Folded", "--format is NetTrace, Speedscope or Chromium"),
        ("trace collect -p 1 --duration soon", "a duration is dd:hh:mm:ss"),
        ("trace collect -p 1 --show-child-io", "needs a command to start"),
        ("trace collect --resume-runtime:false -- app", "would stay suspended"),
        ("trace collect -p 1 -- app", "not both"),
        ("trace convert a.nettrace", "--format is Speedscope or Chromium"),
        ("trace collect-linux", "--profile cpu"),
        ("trace collect-linux --probe -o stdout", "--profile cpu"),
        ("counters list", "is not supported"),
        ("counters list -r 3.1", "is not supported"),
        ("counters list --runtime-version 8.0", "is not supported"),
        ("counters monitor -- app", "cannot start a program"),
        ("counters collect -p 1 --dsrouter ios", "is not supported"),
        ("gcdump report a.gcdump b.gcdump", "one .gcdump file"),
        ("gcdump report a.gcdump -p 12", "and not both"),
        ("gcdump convert a.nettrace", "is not supported"),
        ("stack symbolicate a.txt", "is not supported"),
        ("dump analyze core -c x", "is not supported"),
    ];
    for (theirs, reason) in refused {
        let why = ours(theirs).unwrap_err();
        assert!(why.contains(reason), "{theirs}: {why}");
    }
}

#[test]
fn own_commands_accept_the_options_of_the_tools() {
    for (line, expected) in [
        ("trace 12 --providers A,B:1 --duration 00:00:30", Some("trace --provider A --provider B:1 --duration 30s 12")),
        ("trace -p 12 --resume-runtime", Some("trace --resume 12")),
        ("trace -- app 1", Some("run -- app 1")),
        ("--readonly counters 12 --refresh-interval 2", Some("--readonly counters --interval 2s 12")),
        ("counters -p 12 --counters A -o a.csv --format csv", Some("counters --counters A --format csv --output a.csv 12")),
        ("dump -p 12 --crashreport", Some("dump --crash-report 12")),
        ("dump 12 --type Full", Some("dump --type full 12")),
        ("heap -p 12", Some("heap 12")),
        ("stacks -n api", Some("stacks api")),
        ("report a.nettrace topN", Some("report a.nettrace")),
        ("report a.nettrace --number 3", Some("report a.nettrace -n 3")),
        ("export a.nettrace --format Chromium", Some("export a.nettrace --format chromium")),
        ("trace 12 --max-size 5MB --providers A", None),
        ("slow -p 12", None),
    ] {
        let found = with_own_options(&words(line));
        let found = found.map(|words| words[1..].iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref(), expected, "{line}");
    }
}

#[test]
fn help_needs_no_other_arguments() {
    for Tool { tool, command, .. } in TOOLS {
        let words = ["dn-top", tool, command, "--help"].map(OsString::from);
        match translate(&words) {
            Ok(translated) => {
                let error = Arguments::try_parse_from(translated.unwrap().arguments).unwrap_err();
                assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{tool} {command}");
            }
            Err(why) => assert!(why.contains("is not supported"), "{why}"),
        }
    }
}

#[test]
fn differences_are_reported() {
    for (line, expected) in [
        ("counters monitor -p 1 --showDeltas", "counters monitor: --showDeltas has no effect"),
        ("counters collect -p 1 --format json", "counters collect: the JSON file has one object per line"),
    ] {
        let translated = translate(&words(line)).unwrap().unwrap();
        assert!(translated.notes[0].starts_with(expected), "{:?}", translated.notes);
    }
}

#[test]
fn spaces_between_profiles_are_ignored() {
    let words = ["dn-top", "trace", "collect", "-p", "1", "--profile", "gc-verbose, database"].map(OsString::from);
    let translated = translate(&words).unwrap().unwrap();
    assert_eq!(translated.arguments[2..6], ["--profile", "gc-verbose", "--profile", "database"]);
}

#[test]
fn own_command_lines_are_not_translated() {
    for line in ["trace api", "counters api --duration 1s", "dump 12", "heap 12", "--demo", "trace collector"] {
        assert_eq!(translate(&words(line)), Ok(None), "{line}");
    }
}

#[test]
fn values_are_parsed_as_by_the_dotnet_tools() {
    let seconds = |text: &str| time_span(text).map(|time| time.as_secs());
    assert_eq!(seconds("00:00:30"), Ok(30));
    assert_eq!(seconds("01:02:03:04"), Ok(93_784));
    assert_eq!(seconds("00:01"), Ok(60));
    assert_eq!(time_span("500ms"), Ok(Duration::from_millis(500)));
    for wrong in ["", "30", "a:b", "1:2:3:4:5", "99999999999999999999:00:00", "18446744073709551615:00:00"] {
        assert!(time_span(wrong).is_err(), "{wrong}");
    }
    assert_eq!(providers("A,B:1:5:k=\"a,b\",C"), ["A", "B:1:5:k=\"a,b\"", "C"]);
}

/// A documented option: its names, and its value if it takes one.
type Documented = (Vec<&'static str>, Option<&'static str>);

/// The documented options of each tool and command.
fn documented() -> BTreeMap<(&'static str, &'static str), Vec<Documented>> {
    let mut found = BTreeMap::<_, Vec<Documented>>::new();
    for line in include_str!("documented.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let option = |word: &'static str| {
            let (names, value) = word.split_once('=').map_or((word, None), |(names, value)| (names, Some(value)));
            (names.split('|').collect(), value)
        };
        let (tool, command) = (words.next().unwrap(), words.next().unwrap());
        found.entry((tool, command)).or_default().extend(words.map(option));
    }
    found
}

#[test]
fn known_options_match_the_documented_ones() {
    let documented = documented();
    for Tool { tool, command, options, .. } in TOOLS.iter().filter(|tool| !tool.options.is_empty()) {
        let ours: BTreeSet<_> = options.iter().copied().flatten().map(|option| (option.names.to_vec(), !option.is_switch())).collect();
        let theirs: BTreeSet<_> = documented[&(*tool, *command)]
            .iter()
            .map(|(names, value)| (names.clone(), value.is_some_and(|value| value != "true")))
            .collect();
        assert_eq!(ours, theirs, "{tool} {command}");
    }
    let all: BTreeSet<_> = TOOLS.iter().map(|tool| (tool.tool, tool.command)).collect();
    assert_eq!(documented.into_keys().collect::<BTreeSet<_>>(), all);
}

#[test]
fn no_documented_option_is_ignored_or_misread() {
    for ((tool, command), options) in documented() {
        let has_target = options.iter().any(|(names, _)| names.contains(&"-p"));
        for (names, value) in options {
            for name in &names {
                let mut words = vec!["dn-top", tool, command];
                match (tool, command) {
                    (_, "convert" | "report" | "symbolicate" | "analyze") if !has_target => words.push("a.nettrace"),
                    _ if has_target && !["-p", "-n", "--dport"].iter().any(|target| names.contains(target)) => words.extend(["-p", "12"]),
                    _ => {}
                }
                if (tool, command) == ("trace", "convert") && *name != "--format" {
                    words.extend(["--format", "Speedscope"]);
                }
                words.push(name);
                words.extend(value);
                let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
                match translate(&words) {
                    Err(why) => assert!(why.contains("not supported") || why.contains("needs"), "{words:?}: {why}"),
                    Ok(translated) => {
                        let arguments = translated.unwrap().arguments;
                        let parsed = Arguments::try_parse_from(&arguments).map(drop);
                        let is_help = parsed.as_ref().is_err_and(|error| error.kind() == clap::error::ErrorKind::DisplayHelp);
                        assert!(parsed.is_ok() || is_help && names.contains(&"-h"), "{words:?}: {arguments:?} {parsed:?}");
                    }
                }
            }
        }
    }
}
