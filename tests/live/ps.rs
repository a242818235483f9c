//! Duration of `ps`, with responsive processes only, and with some that are stopped.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Invocation, Signal, TIMEOUT, poll, runtimes, send};

/// Returns the first list that takes less than this, or that is `excused`: other tests keep the machine busy.
fn quick_list(limit: Duration, excused: impl Fn(&Value) -> bool) -> Value {
    let mut shortest = Duration::MAX;
    let list = poll(TIMEOUT, || {
        let began = Instant::now();
        let rows = Invocation::new(["ps", "--json"]).run().json();
        shortest = shortest.min(began.elapsed());
        (shortest < limit || excused(&rows)).then_some(rows)
    });
    list.unwrap_or_else(|| panic!("ps takes {shortest:?}, at least"))
}

#[test]
fn ps_is_fast_even_if_a_process_does_not_respond() {
    let programs: Vec<_> = runtimes::all().iter().map(|runtime| runtime.any().start()).collect();
    let Some((stopped, running)) = programs.split_last() else { return };
    let row = |rows: &Value, pid: u32| {
        rows["processes"].as_array().unwrap().iter().find(|row| row["pid"] == pid && row["contact"] != "stale").unwrap().clone()
    };

    // Other processes on the machine may be slow, which takes longer.
    let has_slow = |rows: &Value| rows["processes"].as_array().unwrap().iter().any(|row| row["contact"] == "slow");
    let rows = quick_list(Duration::from_millis(450), has_slow);
    for program in &programs {
        assert!(row(&rows, program.pid())["cpu_percent"].is_number(), "{rows}");
    }

    send(stopped.pid(), Signal::STOP);
    let rows = quick_list(Duration::from_secs(4), |_| false);
    send(stopped.pid(), Signal::CONT);
    let slow = row(&rows, stopped.pid());
    assert_eq!(slow["contact"], "slow", "{slow}");
    assert!(slow["reason"].as_str().unwrap().starts_with("it has not answered for 1 s"), "{slow}");
    for program in running {
        assert_eq!(row(&rows, program.pid())["contact"], "ok", "{rows}");
    }
}
