//! Tests with files next to the socket.

use super::*;

#[tokio::test]
async fn perf_map_is_written_to_the_temporary_folder() {
    let bench = start(spec("9.0.7"));
    assert_eq!(bench.ask(Command::EnablePerfMap { kind: PerfMapKind::PerfMap }).await, Ok(Reply::Done));
    assert!(bench._dir.path().join("perf-77.map").exists());
}
