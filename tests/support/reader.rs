//! A second reader of nettrace files, to check the library against. It is written from the specification and the runtime's manifest, and
//! shares no code with the library. It keeps a whole file in memory and panics on anything that it does not understand.

mod stream;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use stream::{Event, Kind, Stream, Thread};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Nanoseconds as milliseconds with three decimals.
fn ms(ns: f64) -> f64 {
    (ns / 1e3).round() / 1e3
}

/// Returns the figures of a file, named like the library's.
pub(crate) fn figures(file: &[u8]) -> Value {
    let mut stream = Stream::read(file);
    // Later events may precede earlier ones of other threads; those of one thread are in order.
    stream.events.sort_by_key(|event| event.at);
    let mut counts = BTreeMap::<(&str, u32), (u64, u64)>::new();
    let (mut samples, mut exceptions) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    let mut allocations = BTreeMap::<String, (u64, u64)>::new();
    let (mut collections, mut kinds) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    let (mut suspended, mut paused) = (HashMap::<Thread, i64>::new(), 0);
    let (mut waits, mut waited) = ([0_u64; 2], 0.0);
    let mut compiling = HashMap::<Thread, Vec<(u64, u64)>>::new();
    let (mut bodies, mut il) = (0_u64, 0_u64);
    let threads: HashSet<_> = stream.events.iter().map(|event| event.thread).collect();
    for Event { kind, at, thread, behind_loss, payload } in &stream.events {
        if *behind_loss {
            // The ends of its pending operations may be lost.
            suspended.remove(thread);
            compiling.remove(thread);
        }
        let Kind { provider, id, version } = &stream.kinds[*kind];
        let count = counts.entry((provider, *id)).or_default();
        *count = (count.0 + 1, count.1 + payload.0.len() as u64);
        let mut fields = *payload;
        match (provider.as_str(), id) {
            (SAMPLER, 0) => {
                let of = if thread.0 == 0 { thread.1.to_string() } else { format!("{}/{}", thread.0, thread.1) };
                *samples.entry(of).or_default() += 1;
            }
            (RUNTIME, 80) => *exceptions.entry(fields.utf16()).or_default() += 1,
            (RUNTIME, 10) => {
                fields.take(4 + 4 + 2);
                let amount = fields.number(8);
                fields.take(8);
                let sum = allocations.entry(fields.utf16()).or_default();
                *sum = (sum.0 + 1, sum.1 + amount);
            }
            (RUNTIME, 1) => {
                fields.take(4);
                let (generation, _reason, kind) = (fields.u32(), fields.u32(), fields.u32());
                *collections.entry(format!("gen{generation}")).or_default() += 1;
                let names = ["NonConcurrentGC", "BackgroundGC", "ForegroundGC"];
                *kinds.entry(names[kind as usize].to_owned()).or_default() += 1;
            }
            // A suspension for a collection (1), or to prepare one (6).
            (RUNTIME, 9) if [1, 6].contains(&fields.u32()) => _ = suspended.insert(*thread, *at),
            (RUNTIME, 9) => _ = suspended.remove(thread),
            (RUNTIME, 3) => paused += suspended.remove(thread).map_or(0, |since| at - since),
            (RUNTIME, 81) => waits[0] += 1,
            (RUNTIME, 91) => {
                fields.take(1 + 2);
                waits[1] += 1;
                waited += if *version > 0 { f64::from_bits(fields.number(8)) } else { 0.0 };
            }
            (RUNTIME, 145) => {
                let method = fields.number(8);
                fields.take(8 + 4);
                compiling.entry(*thread).or_default().push((method, fields.number(4)));
            }
            (RUNTIME, 143) => {
                let method = fields.number(8);
                fields.take(8 + 8 + 4 + 4);
                // Compiled at run time, not ahead of time.
                bodies += u64::from(fields.u32() & 8 != 0);
                let begun = compiling.entry(*thread).or_default();
                if let Some(place) = begun.iter().rposition(|(begun, _)| *begun == method) {
                    il += begun.remove(place).1;
                }
            }
            _ => {}
        }
    }
    json!({
        "events": stream.events.len(),
        "counts": counts.iter().map(|((provider, id), sum)| (format!("{provider}/{id}"), *sum)).collect::<BTreeMap<_, _>>(),
        "lost": stream.lost,
        "stacks": stream.stacks,
        "sequence_points": stream.sequence_points,
        "threads": threads.len(),
        "samples": samples,
        "exceptions": exceptions,
        "allocations": allocations,
        "collections": collections,
        "collection_kinds": kinds,
        "pauses_ms": ms(paused as f64),
        "waits": waits,
        "wait_ms": ms(waited),
        "jit": [bodies, il],
    })
}
