//! Cost of a frame: applying a process list, and drawing it.
//!
//! ```text
//! cargo bench --bench frame
//! ```

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

use std::time::{Duration, Instant};

use dn_top::app::{Msg, Now, Options, State, update};
use dn_top::model::{Contact, Process, ProcessKey, Usage};
use dn_top::ui::{Theme, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const ROUNDS: u64 = 2000;

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("load average before: {}", load.trim());
    for (columns, rows, target) in [(120, 40, 0.5), (200, 60, 1.0)] {
        for count in [50, 500] {
            let mut state = State::new(Options::default(), (columns, rows), now(0));
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            let theme = Theme::dark();
            let (mut updates, mut draws) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let list = processes(count, round);
                let begun = Instant::now();
                update(&mut state, Msg::Processes(list), now(round));
                updates.push(begun.elapsed());
                state.take_dirty();
                let begun = Instant::now();
                terminal.draw(|frame| _ = view(&state, &theme, frame)).unwrap();
                draws.push(begun.elapsed());
            }
            // Once the CPU sparklines are flat too, applying the same list again changes nothing.
            let mut idle = 0;
            for round in 0..ROUNDS {
                update(&mut state, Msg::Processes(processes(count, 0)), now(ROUNDS));
                idle += u64::from(state.take_dirty() && round >= 100);
            }
            let (p50, p99) = percentiles(&mut draws);
            println!("{columns}×{rows}, {count:>3} processes: draw p50 {p50:.3} ms, p99 {p99:.3} ms (target p50 {target})");
            let (p50, p99) = percentiles(&mut updates);
            println!(
                "                        update p50 {p50:.3} ms, p99 {p99:.3} ms; {idle} draws for {} lists without a change",
                ROUNDS - 100
            );
        }
    }
}

fn now(second: u64) -> Now {
    // The displayed time stays constant, so that only the processes change.
    Now { elapsed: Duration::from_secs(second), ..Now::default() }
}

fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    (at(50), at(99))
}

fn processes(count: u32, round: u64) -> Vec<Process> {
    let process = |n: u32| Process {
        name: format!("Service{n:03}").into(),
        command_line: format!("/usr/share/dotnet/dotnet /srv/service{n:03}/Service{n:03}.dll --urls http://*:8080").into(),
        usage: Usage {
            cpu_percent: Some(((u64::from(n) * 7919 + round * 104_729) % 1000) as f64 / 10.0),
            rss_bytes: u64::from(n) * 1_000_000 + round * 4096,
            threads: 20 + n % 30,
            ..Usage::default()
        },
        contact: Contact::Ok,
        ..Process::new(ProcessKey { pid: 1000 + n, started: 1 })
    };
    (0..count).map(process).collect()
}
