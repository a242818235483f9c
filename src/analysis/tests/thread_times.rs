//! On-CPU and off-CPU times of threads, in a file of kernel samples.

use super::{Bytes, Script};
use crate::analysis::{SampledMethods, ThreadTimes};
use crate::nettrace::Metadata;

fn event(script: &mut Script, provider: &str, thread: u64, payload: Bytes) {
    let record = Metadata { provider: provider.into(), event_id: 1, name: "cpu".into(), ..Metadata::default() };
    script.event(record, 0, thread, thread, payload);
}

fn bytes(payload: Bytes, text: &[u8]) -> Bytes {
    text.iter().fold(payload.u16(text.len() as u16), |payload, byte| payload.u8(*byte))
}

fn time(script: &mut Script, thread: u64, name: &[u8], state: &[u8], ns: u8) {
    event(script, "DnTop.Threads", thread, bytes(bytes(Bytes::default(), name), state).u8(ns));
}

/// Returns the times in a file that also has a sample.
fn times(mut script: Script) -> Vec<ThreadTimes> {
    event(&mut script, "Universal.Events", 1, Bytes::default().u8(1));
    let mut sampled = SampledMethods::default();
    script.play_to(&mut sampled);
    sampled.cpu().expect("a sample").threads
}

#[test]
fn thread_names_and_states_have_a_maximum_length() {
    let mut script = Script::new();
    let long = [b'x'; 65];
    time(&mut script, 1, &long[..64], &long[..64], 1);
    time(&mut script, 2, &long, b"futex", 1);
    time(&mut script, 3, b"a", &long, 1);
    time(&mut script, 4, b"\xff", b"futex", 1);
    time(&mut script, 5, b"a", b"\xff", 1);
    // A truncated payload.
    event(&mut script, "DnTop.Threads", 6, Bytes::default().u16(9));
    let times = times(script);
    assert_eq!(times.iter().map(|times| times.thread).collect::<Vec<_>>(), [1]);
}

#[test]
fn states_per_thread_are_bounded() {
    let mut script = Script::new();
    for round in 1..=2 {
        for state in 0..100 {
            time(&mut script, 1, b"main", format!("state{state}").as_bytes(), round);
        }
        time(&mut script, 1, b"main", b"cpu", 100);
    }
    let times = times(script);
    assert_eq!((times.len(), times[0].off_cpu_ns.len()), (1, 64));
    assert_eq!((times[0].cpu_ns, times[0].wall_ns()), (200, 200 + 64 * 3), "states that are known go on");
}

#[test]
fn number_of_thread_times_is_bounded() {
    let mut script = Script::new();
    for thread in 0..(1 << 17) + 100 {
        time(&mut script, thread, b"", b"futex", 1);
    }
    time(&mut script, 0, b"", b"futex", 1);
    let times = times(script);
    assert_eq!((times.len(), times[0].off_cpu_ns["futex"]), (1 << 17, 2));
}
