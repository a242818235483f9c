//! The hottest methods of the last two seconds, updated every second.

use std::cmp::Reverse;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::{Entry, Missing};
use crate::analysis::{MethodTime, SampleFilter};
use crate::cli::args;
use crate::cli::print;
use crate::cli::stdout::StdoutWriter;
use crate::model::{Count, Counted, CpuTime, Process, SafeText};
use crate::net::interrupts::Interrupts;
use crate::sorting::CompactSort;

/// Moves the cursor to the first column of the first line.
const HOME: &str = "\x1b[H";
/// Clears from the cursor to the end of the line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears from the cursor to the end of the screen.
const CLEAR_BELOW: &str = "\x1b[J";

/// One update of the live view. Percentages are of one core over the window, the last two seconds.
#[derive(Default, Serialize)]
struct LiveUpdate {
    pid: u32,
    name: SafeText,
    /// Since sampling began.
    elapsed_ms: f64,
    /// Length of the window; shorter at the start.
    window_ms: f64,
    now_percent: f64,
    /// CPU time of all threads since sampling began, as measured by the kernel.
    cpu_ms: f64,
    samples: u64,
    #[serde(flatten)]
    missing: Missing,
    /// Samples whose method is unknown.
    unresolved: u64,
    /// Methods that ran within the window, the hottest first.
    methods: Vec<Method>,
}

#[derive(Serialize)]
struct Method {
    name: SafeText,
    module: SafeText,
    kind: &'static str,
    /// Self time: milliseconds of CPU time per second.
    now_ms_per_s: f64,
    now_percent: f64,
    /// Total time: the method and everything it calls.
    now_total_percent: f64,
    /// Since sampling began.
    self_ms: f64,
    total_ms: f64,
}

/// Prints the updates: each replaces the previous one if stdout is a terminal, otherwise they follow each other.
pub(super) struct LiveView<'a> {
    process: &'a Process,
    arguments: &'a args::Cpu,
    on_terminal: bool,
    writer: StdoutWriter,
    shown: bool,
}

impl<'a> LiveView<'a> {
    /// # Errors
    /// If there are too many threads.
    pub(super) fn new(process: &'a Process, arguments: &'a args::Cpu) -> anyhow::Result<Self> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let on_terminal = !arguments.output.json && !is_dumb && io::stdout().is_terminal();
        Ok(Self { process, arguments, on_terminal, writer: StdoutWriter::start()?, shown: false })
    }

    /// Prints an update, unless the previous one has not been read. Returns whether more can be printed.
    pub(super) fn show(&mut self, time: &CpuTime) -> bool {
        if self.writer.is_idle() {
            let live_update = live_update(self.process, time, self.arguments);
            let text = if self.arguments.output.json {
                print::json_text(&Entry { r#type: "interval", document: &live_update })
            } else {
                self.text(&live_update)
            };
            // Neither can fail.
            self.writer.write(text.unwrap_or_default().into_bytes());
            self.shown = true;
        }
        !self.writer.is_closed()
    }

    fn text(&self, live_update: &LiveUpdate) -> anyhow::Result<String> {
        let mut text = Vec::new();
        write_text(&mut text, live_update)?;
        let text = print::safe_lines(&text);
        if !self.on_terminal {
            return Ok(format!("{text}\n"));
        }
        // A serial console may have no size.
        let size = crossterm::terminal::size().ok().filter(|(width, height)| *width > 0 && *height > 0);
        let (width, height) = size.unwrap_or((80, 24));
        // Scroll earlier output up, so that it stays above the first update.
        let mut screen = if self.shown { String::new() } else { "\n".repeat(height.into()) };
        screen.push_str(HOME);
        for line in text.lines().take(usize::from(height).saturating_sub(1)) {
            screen.extend([print::cut(line, width.into()), CLEAR_LINE, "\n"]);
        }
        screen.push_str(CLEAR_BELOW);
        Ok(screen)
    }

    /// Waits until everything is printed, after a signal for a second at most. Returns whether the output is still read.
    ///
    /// # Errors
    /// An update could not be printed.
    pub(super) async fn finish(self, interrupts: &mut Interrupts, is_interrupted: bool) -> anyhow::Result<bool> {
        if self.on_terminal && self.shown {
            self.writer.write(b"\n".to_vec());
        }
        let is_closed = self.writer.is_closed();
        Ok(self.writer.finish(interrupts, is_interrupted).await? && !is_closed)
    }
}

fn live_update(process: &Process, time: &CpuTime, arguments: &args::Cpu) -> LiveUpdate {
    let ms = |ns: u64| ns as f64 / 1e6;
    let window = time.recent.as_secs_f64().max(1e-9);
    let percent = |ns: u64| ns as f64 / 1e7 / window;
    let mut found = time.profile.methods(SampleFilter::ALL, usize::MAX);
    found.methods.retain(|method| method.total.recent_ns > 0);
    found.methods.compact_sort_by_key(|method| {
        let (own, total) = (method.own.recent_ns, method.total.recent_ns);
        Reverse(if arguments.inclusive { (total, own) } else { (own, total) })
    });
    found.methods.truncate(arguments.count);
    let method = |method: &MethodTime| Method {
        name: print::method_name(method),
        module: SafeText::new(&method.module),
        kind: method.origin.name(),
        now_ms_per_s: ms(method.own.recent_ns) / window,
        now_percent: percent(method.own.recent_ns),
        now_total_percent: percent(method.total.recent_ns),
        self_ms: ms(method.own.all_ns()),
        total_ms: ms(method.total.all_ns()),
    };
    LiveUpdate {
        pid: process.key.pid,
        name: process.name.clone(),
        elapsed_ms: time.elapsed.as_secs_f64() * 1e3,
        window_ms: time.recent.as_secs_f64() * 1e3,
        now_percent: percent(found.samples.recent_ns),
        cpu_ms: time.threads.iter().map(|thread| thread.cpu.as_secs_f64() * 1e3).sum(),
        samples: found.samples.all(),
        missing: Missing::of(time),
        unresolved: found.unresolved,
        methods: found.methods.iter().map(method).collect(),
    }
}

fn write_text(out: &mut dyn Write, live_update: &LiveUpdate) -> io::Result<()> {
    let LiveUpdate { pid, name, elapsed_ms, now_percent, cpu_ms, samples, missing, methods, .. } = live_update;
    let lost = if missing.losses.lost == 0 { String::new() } else { format!(", {} lost", Count(missing.losses.lost)) };
    writeln!(
        out,
        "{name} ({pid}): {now_percent:.1} % of one core now; {cpu_ms:.0} ms CPU time in {:.0} s; {}{lost}",
        elapsed_ms / 1e3,
        Counted(*samples, "sample"),
    )?;
    if methods.is_empty() {
        return writeln!(out, "\nno CPU time in the last {:.0} s", live_update.window_ms / 1e3);
    }
    writeln!(out, "\n{:>8} {:>6} {:>7} {:>9} {:>9}  {:<9}  METHOD", "NOW ms/s", "NOW%", "NOW TOT", "SELF ms", "TOTAL ms", "KIND")?;
    for Method { name, module, kind, now_ms_per_s, now_percent, now_total_percent, self_ms, total_ms } in methods {
        let module = print::module_suffix(name, module);
        writeln!(
            out,
            "{now_ms_per_s:>8.1} {now_percent:>5.1}% {now_total_percent:>6.1}% {self_ms:>9.1} {total_ms:>9.1}  {kind:<9}  {name}{module}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_update_shows_current_rates_and_total_times() {
        let method = Method {
            name: "App.Work()".into(),
            module: "App".into(),
            kind: "managed",
            now_ms_per_s: 612.34,
            now_percent: 61.2,
            now_total_percent: 90.0,
            self_ms: 1200.0,
            total_ms: 1800.0,
        };
        let mut live_update = LiveUpdate {
            pid: 7,
            name: "App".into(),
            elapsed_ms: 3000.0,
            window_ms: 2000.0,
            now_percent: 97.5,
            cpu_ms: 2890.0,
            samples: 2887,
            methods: vec![method],
            ..LiveUpdate::default()
        };
        let text = |live_update: &LiveUpdate| {
            let mut text = Vec::new();
            write_text(&mut text, live_update).unwrap();
            String::from_utf8(text).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = [
            "App (7): 97.5 % of one core now; 2890 ms CPU time in 3 s; 2.9k samples",
            "",
            "NOW ms/s   NOW% NOW TOT   SELF ms  TOTAL ms  KIND       METHOD",
            "   612.3  61.2%   90.0%    1200.0    1800.0  managed    App.Work()  [App]",
        ];
        assert_eq!(text(&live_update), expected);
        (live_update.methods, live_update.missing.losses.lost) = (Vec::new(), 3);
        assert!(text(&live_update)[0].ends_with("2.9k samples, 3 lost"), "{:?}", text(&live_update));
        assert_eq!(text(&live_update)[2], "no CPU time in the last 2 s");
    }
}
