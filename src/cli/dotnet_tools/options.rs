//! The options of each tool and their translation.

use std::path::Path;
use std::time::Duration;

use super::Effect::{Flag, Keep, Note, Same};
use super::stopping_event::stopping_event;
use super::{Effect, Line, Tool, ToolOption};

const fn option(names: &'static [&'static str], effect: Effect) -> ToolOption {
    ToolOption { names, effect }
}

const fn value(names: &'static [&'static str], apply: fn(&mut Line, &str) -> Result<(), String>) -> ToolOption {
    option(names, Effect::Value(apply))
}

const fn switch(names: &'static [&'static str], apply: fn(&mut Line, &str) -> Result<(), String>) -> ToolOption {
    option(names, Effect::Switch(apply))
}

const HELP: &[ToolOption] = &[switch(&["-?", "-h", "--help"], |line, _| {
    line.help = true;
    line.add(&["--help"]);
    Ok(())
})];

/// Options with the path of a diagnostic port.
pub(in crate::cli) const PORT_OPTIONS: [&str; 2] = ["--diagnostic-port", "--dport"];

/// Returns the target for the value of such an option: a port to listen on is the default.
pub(in crate::cli) fn port_target(port: &str) -> String {
    match port.split_once(',') {
        Some((_, "connect" | "listen")) => port.to_owned(),
        _ => format!("{port},listen"),
    }
}

const TARGET: &[ToolOption] = &[
    value(&["-p", "--process-id"], Line::set_target),
    value(&["-n", "--name"], Line::set_target),
    value(&PORT_OPTIONS, |line, port| line.set_target(&port_target(port))),
    value(&["--dsrouter"], |_, _| Err("--dsrouter is not supported: dn-top does not start dotnet-dsrouter".to_owned())),
];

const OUTPUT: &[ToolOption] = &[option(&["-o", "--output"], Keep)];

const FORMAT: &[ToolOption] = &[option(&["--format"], Keep)];

const DURATION: &[ToolOption] = &[value(&["--duration"], |line, text| {
    let time = time_span(text)?;
    if time.is_zero() {
        // The same as no duration.
        return Ok(());
    }
    let whole = time.subsec_nanos() == 0;
    line.add(&["--duration", &if whole { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }]);
    Ok(())
})];

const RESUME: &[ToolOption] = &[switch(&["--resume-runtime"], |line, on| {
    line.resume = Some(on == "true");
    Ok(())
})];

const VERBOSE: &[ToolOption] = &[option(&["-v", "--verbose"], Note("--verbose has no effect: messages are always shown"))];

const TRACE: &[ToolOption] = &[
    option(&["--buffersize"], Same("--buffer-mb")),
    value(&["--providers"], |line, list| {
        providers(list).iter().for_each(|provider| line.add(&["--provider", provider]));
        Ok(())
    }),
    value(&["--profile"], |line, list| {
        list.split(',').map(str::trim).filter(|name| !name.is_empty()).for_each(|name| line.add(&["--profile", name]));
        Ok(())
    }),
    option(&["--clrevents"], Keep),
    option(&["--clreventlevel"], Keep),
    option(&["--show-child-io"], Flag("--show-output")),
    option(&["--stopping-event-provider-name"], Keep),
    option(&["--stopping-event-event-name"], Keep),
    option(&["--stopping-event-payload-filter"], Keep),
    switch(&["--rundown"], |line, on| {
        line.add(&["--rundown", if on == "true" { "full" } else { "none" }]);
        Ok(())
    }),
    value(&["--buffering-mode"], |line, mode| match mode.to_ascii_lowercase().as_str() {
        "block" | "1" => {
            line.add(&["--block"]);
            Ok(())
        }
        "drop" | "0" => Ok(()),
        _ => Err(format!("--buffering-mode is Block or Drop, not '{}'", mode.escape_debug())),
    }),
];

const COUNTERS: &[ToolOption] = &[
    option(&["--counters"], Same("--counters")),
    value(&["--refresh-interval"], |line, seconds| {
        line.add(&["--interval", &format!("{}s", number(seconds)?)]);
        Ok(())
    }),
    option(&["--maxHistograms"], Same("--max-histograms")),
    option(&["--maxTimeSeries"], Same("--max-time-series")),
];

const MONITOR: &[ToolOption] = &[
    option(&["--showDeltas"], Note("--showDeltas has no effect: `--format json` has the change of each value")),
    option(&["--abbreviateLargeNumbers"], Note("--abbreviateLargeNumbers has no effect: numbers are shown in full")),
];

const GCDUMP: &[ToolOption] = &[value(&["-t", "--timeout"], |line, seconds| {
    line.add(&["--timeout", &format!("{}s", number(seconds)?)]);
    Ok(())
})];

const REPORT_TYPE: &[ToolOption] = &[value(&["-t", "--report-type"], |_, kind| {
    if kind.eq_ignore_ascii_case("HeapStat") {
        Ok(())
    } else {
        Err(format!("there is no report '{}': expected HeapStat", kind.escape_debug()))
    }
})];

const TOP: &[ToolOption] = &[option(&["-n", "--number"], Keep), option(&["--inclusive"], Flag("--inclusive"))];

const DUMP: &[ToolOption] =
    &[option(&["--type"], Keep), option(&["--diag"], Flag("--diag")), option(&["--crashreport"], Flag("--crash-report"))];

pub(super) const TOOLS: &[Tool] = &[
    Tool { tool: "trace", command: "collect", options: &[HELP, TARGET, OUTPUT, FORMAT, DURATION, RESUME, TRACE], build: trace_collect },
    Tool { tool: "trace", command: "convert", options: &[HELP, OUTPUT, FORMAT], build: trace_convert },
    Tool { tool: "trace", command: "report", options: &[HELP, TOP, VERBOSE], build: trace_report },
    Tool { tool: "trace", command: "list-profiles", options: &[HELP], build: |line| line.target_command("profiles") },
    Tool { tool: "trace", command: "ps", options: &[HELP], build: |line| line.target_command("ps") },
    Tool {
        tool: "trace",
        command: "collect-linux",
        options: &[],
        build: |_| {
            Err("this command is not supported: `dn-top trace TARGET --profile cpu` samples managed, native and kernel code of a process, \
                 and `--kernel` records the scheduling of threads"
                .to_owned())
        },
    },
    Tool {
        tool: "counters",
        command: "monitor",
        options: &[HELP, TARGET, DURATION, RESUME, COUNTERS, MONITOR],
        build: |line| line.target_command("counters"),
    },
    Tool {
        tool: "counters",
        command: "collect",
        options: &[HELP, TARGET, OUTPUT, FORMAT, DURATION, RESUME, COUNTERS],
        build: counters_collect,
    },
    Tool {
        tool: "counters",
        command: "list",
        options: &[],
        build: |_| Err("this command is not supported: `dn-top counters TARGET --counters NAME` shows what a process publishes".to_owned()),
    },
    Tool { tool: "counters", command: "ps", options: &[HELP], build: |line| line.target_command("ps") },
    Tool { tool: "gcdump", command: "collect", options: &[HELP, TARGET, OUTPUT, GCDUMP, VERBOSE], build: gcdump_collect },
    Tool { tool: "gcdump", command: "report", options: &[HELP, TARGET, REPORT_TYPE], build: gcdump_report },
    Tool {
        tool: "gcdump",
        command: "convert",
        options: &[],
        build: |_| Err("this command is not supported: `dn-top heap TARGET -o FILE.gcdump` writes one of a running process".to_owned()),
    },
    Tool { tool: "gcdump", command: "ps", options: &[HELP], build: |line| line.target_command("ps") },
    Tool { tool: "stack", command: "report", options: &[HELP, TARGET], build: |line| line.target_command("stacks") },
    Tool {
        tool: "stack",
        command: "symbolicate",
        options: &[],
        build: |_| Err("this command is not supported: dn-top does not read symbol files".to_owned()),
    },
    Tool { tool: "stack", command: "ps", options: &[HELP], build: |line| line.target_command("ps") },
    Tool { tool: "dump", command: "collect", options: &[HELP, TARGET, OUTPUT, DUMP], build: dump_collect },
    Tool {
        tool: "dump",
        command: "analyze",
        options: &[],
        build: |_| {
            Err("this command is not supported: dn-top does not read core dumps; of a running process, `dn-top stacks`, `heap` and `gc` show \
                 much of it"
                .to_owned())
        },
    },
    Tool { tool: "dump", command: "ps", options: &[HELP], build: |line| line.target_command("ps") },
];

fn trace_collect(line: &mut Line) -> Result<(), String> {
    match (line.take("--clrevents"), line.take("--clreventlevel")) {
        (Some(events), Some(level)) => line.add(&["--clr-events", &format!("{events}:{level}")]),
        (Some(events), None) => line.add(&["--clr-events", &events]),
        (None, Some(_)) => return Err("--clreventlevel needs --clrevents".to_owned()),
        (None, None) => {}
    }
    let parts = ["--stopping-event-provider-name", "--stopping-event-event-name", "--stopping-event-payload-filter"];
    if let Some(event) = stopping_event(parts.map(|part| line.take(part)))? {
        line.add(&["--stop-on", &event]);
    }
    match line.format().as_deref() {
        None | Some("nettrace") => {}
        Some(format @ ("speedscope" | "chromium")) => line.add(&["--export", format]),
        Some(format) => return Err(format!("--format is NetTrace, Speedscope or Chromium, not '{}'", format.escape_debug())),
    }
    line.write_to();
    if line.program.is_some() {
        if line.target.is_some() {
            return Err("give either a process or a command to start, not both".to_owned());
        }
        if line.resume == Some(false) {
            return Err("--resume-runtime:false is not supported with a command: the program would stay suspended".to_owned());
        }
        line.command(&["run"]);
        return Ok(());
    }
    if line.words.iter().any(|word| word == "--show-output") {
        return Err("--show-child-io needs a command to start, after --".to_owned());
    }
    if !line.listens() && line.resume.unwrap_or(!line.is_own) {
        line.add(&["--resume"]);
    }
    line.target_command("trace")
}

fn trace_convert(line: &mut Line) -> Result<(), String> {
    let format = line.format().filter(|format| format != "nettrace");
    match format {
        Some(format) => {
            line.add(&["--format", &format]);
            if matches!(&*format, "speedscope" | "chromium") {
                let extension = format!("{format}.json");
                if let Some(file) = line.kept.get_mut("--output").filter(|file| !file.ends_with(&format!(".{extension}"))) {
                    *file = Path::new(file).with_extension(extension).to_string_lossy().into_owned();
                }
            }
        }
        None if line.help => {}
        None => return Err("--format is Speedscope or Chromium: the file is in the format NetTrace".to_owned()),
    }
    line.write_to();
    line.command(&["export"]);
    line.file(".nettrace")
}

fn trace_report(line: &mut Line) -> Result<(), String> {
    if let Some(at) = line.positional.iter().position(|word| word.eq_ignore_ascii_case("topN")) {
        line.positional.remove(at);
    }
    let default = (!line.is_own).then(|| "5".to_owned());
    if let Some(count) = line.take("--number").or(default) {
        line.add(&["-n", &count]);
    }
    line.command(&["report"]);
    line.file(".nettrace")
}

fn counters_collect(line: &mut Line) -> Result<(), String> {
    if line.is_own {
        if let Some(format) = line.format() {
            line.add(&["--format", &format]);
        }
        line.write_to();
        return line.target_command("counters");
    }
    let format = line.format().unwrap_or_else(|| "csv".to_owned());
    line.add(&["--format", &format]);
    if format == "json" {
        line.notes.push("the JSON file has one object per line, with other names than that of dotnet-counters".to_owned());
    }
    line.kept.entry("--output").or_insert_with(|| "counter".to_owned());
    line.append_extension(&format);
    line.write_to();
    line.target_command("counters")
}

fn gcdump_collect(line: &mut Line) -> Result<(), String> {
    if line.kept.contains_key("--output") {
        line.append_extension("gcdump");
    } else if !line.is_own {
        line.add(&["--gcdump"]);
    }
    line.write_to();
    if !line.is_own {
        line.add(&["--yes"]);
    }
    line.target_command("heap")
}

fn gcdump_report(line: &mut Line) -> Result<(), String> {
    if line.positional.is_empty() {
        line.add(&["--yes"]);
        return line.target_command("heap");
    }
    if line.target.is_some() {
        return Err("give a file, or a process with -p or -n, and not both".to_owned());
    }
    line.command(&["heap"]);
    line.file(".gcdump")
}

fn dump_collect(line: &mut Line) -> Result<(), String> {
    let default = (!line.is_own).then(|| "full".to_owned());
    if let Some(kind) = line.take("--type").or(default) {
        line.add(&["--type", &kind.to_ascii_lowercase()]);
    }
    line.write_to();
    line.target_command("dump")
}

/// Parses `dd:hh:mm:ss`, `hh:mm:ss` or `hh:mm`, as dotnet-trace does, or a time such as `30s`.
pub(super) fn time_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("a duration is dd:hh:mm:ss, such as 00:00:00:30, not '{}'", text.escape_debug());
    if !text.contains(':') {
        return humantime::parse_duration(text).map_err(|_| wrong());
    }
    let parts: Vec<u64> = text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let units: &[u64] = match parts.len() {
        2 => &[3600, 60],
        3 => &[3600, 60, 1],
        4 => &[86_400, 3600, 60, 1],
        _ => return Err(wrong()),
    };
    let seconds = parts.iter().zip(units).try_fold(0_u64, |sum, (part, unit)| part.checked_mul(*unit)?.checked_add(sum));
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("expected a number, not '{}'", text.escape_debug()))
}

/// Splits provider specifications at commas, except within quoted arguments.
pub(super) fn providers(list: &str) -> Vec<String> {
    let (mut found, mut quoted) = (vec![String::new()], false);
    for c in list.chars() {
        quoted ^= c == '"';
        match (c, found.last_mut()) {
            (',', _) if !quoted => found.push(String::new()),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    found.retain(|provider| !provider.is_empty());
    found
}
