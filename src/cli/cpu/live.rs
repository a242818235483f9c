//! The hottest methods of the last two seconds, updated every second.

use std::cmp::Reverse;
use std::io::{self, IsTerminal, Write};

use super::{cpu_ms, missing, ms};
use crate::analysis::{MethodTime, MethodsSnapshot, SampleCount, SampleFilter};
use crate::cli::args;
use crate::cli::print::{self, Value, json};
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

/// One update of the live view. Percentages are of one core over the window: the last two seconds, fewer at the start.
struct LiveUpdate<'a> {
    process: &'a Process,
    time: &'a CpuTime,
    /// With the methods that ran within the window, the hottest first.
    found: MethodsSnapshot,
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
            let live_update = LiveUpdate::new(self.process, time, self.arguments);
            let text = if self.arguments.output.json {
                print::json_line(&print::versioned(live_update.document()))
            } else {
                self.text(&live_update)
            };
            // Neither can fail.
            self.writer.write(text.unwrap_or_default().into_bytes());
            self.shown = true;
        }
        !self.writer.is_closed()
    }

    fn text(&self, live_update: &LiveUpdate<'_>) -> anyhow::Result<String> {
        let mut text = Vec::new();
        live_update.write_text(&mut text)?;
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

impl<'a> LiveUpdate<'a> {
    fn new(process: &'a Process, time: &'a CpuTime, arguments: &args::Cpu) -> Self {
        let mut found = time.profile.methods(SampleFilter::ALL, usize::MAX);
        found.methods.retain(|method| method.total.recent_ns > 0);
        found.methods.compact_sort_by_key(|method| {
            let (own, total) = (method.own.recent_ns, method.total.recent_ns);
            Reverse(if arguments.inclusive { (total, own) } else { (own, total) })
        });
        found.methods.truncate(arguments.count);
        Self { process, time, found }
    }

    /// CPU time per time, milliseconds per second.
    fn rate(&self, samples: SampleCount) -> f64 {
        ms(samples.recent_ns) / self.time.recent.as_secs_f64().max(1e-9)
    }

    fn document(&self) -> Value {
        let Self { process, time, found } = self;
        let method = |method: &MethodTime| {
            json!({
                "name": print::method_name(method),
                "module": SafeText::new(&method.module),
                "kind": method.origin.name(),
                // Self time.
                "now_ms_per_s": self.rate(method.own),
                "now_percent": self.rate(method.own) / 10.0,
                "now_total_percent": self.rate(method.total) / 10.0,
                // Since sampling began.
                "self_ms": ms(method.own.all_ns()),
                "total_ms": ms(method.total.all_ns()),
            })
        };
        print::joined([
            json!({
                "type": "interval",
                "pid": process.key.pid,
                "name": process.name,
                // Since sampling began.
                "elapsed_ms": time.elapsed.as_secs_f64() * 1e3,
                "window_ms": time.recent.as_secs_f64() * 1e3,
                "now_percent": self.rate(found.samples) / 10.0,
                "cpu_ms": cpu_ms(time),
                "samples": found.samples.all(),
            }),
            missing(time),
            // Samples whose method is unknown.
            json!({ "unresolved": found.unresolved, "methods": found.methods.iter().map(method).collect::<Vec<_>>() }),
        ])
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { process: Process { key, name, .. }, time, found } = self;
        let lost = if time.losses.lost == 0 { String::new() } else { format!(", {} lost", Count(time.losses.lost)) };
        writeln!(
            out,
            "{name} ({}): {:.1} % of one core now; {:.0} ms CPU time in {:.0} s; {}{lost}",
            key.pid,
            self.rate(found.samples) / 10.0,
            cpu_ms(time),
            time.elapsed.as_secs_f64(),
            Counted(found.samples.all(), "sample"),
        )?;
        if found.methods.is_empty() {
            return writeln!(out, "\nno CPU time in the last {:.0} s", time.recent.as_secs_f64());
        }
        writeln!(out, "\n{:>8} {:>6} {:>7} {:>9} {:>9}  {:<9}  METHOD", "NOW ms/s", "NOW%", "NOW TOT", "SELF ms", "TOTAL ms", "KIND")?;
        for method in &found.methods {
            let [now, now_total] = [method.own, method.total].map(|samples| self.rate(samples));
            let [own, total] = [method.own, method.total].map(|samples| ms(samples.all_ns()));
            let (now_percent, total_percent, kind) = (now / 10.0, now_total / 10.0, method.origin.name());
            let method = print::method(method);
            writeln!(out, "{now:>8.1} {now_percent:>5.1}% {total_percent:>6.1}% {own:>9.1} {total:>9.1}  {kind:<9}  {method}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::cpu::tests::{arguments, process};
    use crate::ui::tests::analysis::cpu_time;

    #[test]
    fn live_update_shows_current_rates_and_total_times() {
        let text = |time: &CpuTime, options: &[&str]| {
            let mut text = Vec::new();
            LiveUpdate::new(&process(), time, &arguments(options)).write_text(&mut text).unwrap();
            String::from_utf8(text).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = [
            "App (7): 187.1 % of one core now; 8524 ms CPU time in 42 s; 8.5k samples, 12 lost",
            "",
            "NOW ms/s   NOW% NOW TOT   SELF ms  TOTAL ms  KIND       METHOD",
            "   750.8  75.1%   75.1%    1501.5    1501.5  native     memmove  [libc.so.6]",
            "   450.5  45.0%   45.0%     900.9     900.9  GC         WKS::gc_heap::mark_phase  [libcoreclr.so]",
            "   300.3  30.0%   30.0%     600.6     600.6  JIT        [libclrjit.so]",
            "   219.2  21.9%  157.1%    5205.2    7907.9  managed    Shop.Pricing.PriceEngine.PriceBasket  [Shop]",
        ];
        assert_eq!(text(&cpu_time(), &["--top", "4"]), expected);
        let inclusive = text(&cpu_time(), &["--top", "1", "--inclusive"]);
        assert!(inclusive[3].contains(" 21.9%  157.1% "), "{inclusive:?}");
        let idle = text(&CpuTime { recent: Duration::from_secs(2), ..CpuTime::default() }, &[]);
        assert!(idle[0].ends_with("; 0 samples") && idle[2] == "no CPU time in the last 2 s", "{idle:?}");
    }
}
