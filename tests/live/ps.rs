//! Duration of `ps`, with responsive processes only, and with some that are stopped.

use std::time::{Duration, Instant};

use crate::support::{Invocation, Signal, runtimes, send};

/// Returns the list, and the shortest time it took: other tests keep the machine busy.
fn quickest(times: u32, words: &[&str]) -> (serde_json::Value, Duration) {
    let timed = || {
        let began = Instant::now();
        let rows = Invocation::new(words).run().json();
        (rows, began.elapsed())
    };
    (0..times).map(|_| timed()).min_by_key(|(_, took)| *took).unwrap()
}

#[test]
fn ps_is_fast_even_if_a_process_does_not_respond() {
    let programs: Vec<_> = runtimes::all().iter().map(|runtime| runtime.any().start()).collect();
    let Some((stopped, running)) = programs.split_last() else { return };
    let row = |rows: &serde_json::Value, pid: u32| {
        rows["processes"].as_array().unwrap().iter().find(|row| row["pid"] == pid && row["contact"] != "stale").unwrap().clone()
    };

    // Other processes on the machine may be slow, which takes longer.
    let (rows, took) = quickest(10, &["ps", "--json"]);
    assert!(
        took < Duration::from_millis(450) || rows["processes"].as_array().unwrap().iter().any(|row| row["contact"] == "slow"),
        "{took:?} {rows}"
    );
    for program in &programs {
        assert!(row(&rows, program.pid())["cpu_percent"].is_number(), "{rows}");
    }

    send(stopped.pid(), Signal::STOP);
    let (rows, took) = quickest(3, &["ps", "--json"]);
    send(stopped.pid(), Signal::CONT);
    assert!(took < Duration::from_secs(4), "{took:?}");
    let slow = row(&rows, stopped.pid());
    assert_eq!(slow["contact"], "slow", "{slow}");
    assert!(slow["reason"].as_str().unwrap().starts_with("it has not answered for 1 s"), "{slow}");
    for program in running {
        assert_eq!(row(&rows, program.pid())["contact"], "ok", "{rows}");
    }
}
