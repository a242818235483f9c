//! Samples by method, thread and stack.

use super::script::{MS, RUNTIME};
use super::{Bytes, Script};
use crate::analysis::{Live, Origin, Profile, SampleCount, SampleFilter, SampledMethods, StuckThreads};
use crate::clr::payload::Tier;
use crate::nettrace::{Metadata, ThreadId};

const MANAGED: u32 = 2;
const EXTERNAL: u32 = 1;
const SAMPLER: u64 = 99;

fn sample(script: &mut Script, at: i64, thread: u64, kind: u32, frames: &[u64]) {
    let record = Metadata { provider: "Microsoft-DotNETCore-SampleProfiler".into(), ..Metadata::default() };
    script.stack(frames).event(record, at, thread, SAMPLER, Bytes::default().u32(kind));
}

/// Main calls Work and Idle; Work calls itself; Idle sleeps.
fn program(script: &mut Script) {
    script.method(0x1000, 0x100, "App", "Main").method(0x2000, 0x100, "App", "Work").method(0x3000, 0x100, "App", "Idle");
    script.method(0x4000, 0x100, "System.Threading.Thread", "Sleep").method(0x5000, 0x100, "dynamicClass", "IL_STUB_PInvoke");
}

fn samples(script: &mut Script) {
    for tick in 0..10 {
        sample(script, tick * MS, 1, MANAGED, &[0x2001, 0x2050, 0x2060, 0x1010]);
        sample(script, tick * MS, 2, EXTERNAL, &[0x4001, 0x3010, 0x1020]);
    }
    sample(script, 10 * MS, 1, EXTERNAL, &[0x5001, 0x2050, 0x1010]);
    sample(script, 10 * MS, 1, EXTERNAL, &[0x2070, 0x1010]);
    // The address just past Main, which is the return address of its last call.
    sample(script, 11 * MS, 2, MANAGED, &[0x9000, 0x1100]);
    sample(script, 11 * MS, 3, EXTERNAL, &[]);
}

fn check(live: &Live) {
    let profile = live.profile();
    let newest =
        |profile: &Profile| profile.newest().map(|(thread, at, frame)| (thread.thread, at / MS, frame.name.clone())).collect::<Vec<_>>();
    assert_eq!(newest(&profile), [(1, 10, "App.Work".to_owned()), (2, 11, "0x9000".to_owned())], "a thread without a stack has no frame");
    let known = profile.without(|origin| origin == Origin::Unknown);
    assert_eq!(newest(&known)[1].2, "App.Main");
    let all = live.profile().methods(SampleFilter::ALL, 100);
    assert_eq!((all.samples.running, all.samples.waiting, all.unresolved, all.without_stack, all.folded), (14, 10, 1, 1, 0));
    assert_eq!(
        all.threads.iter().map(|thread| (thread.thread, thread.samples.running, thread.samples.waiting)).collect::<Vec<_>>(),
        [(ThreadId::of(1), 12, 0), (ThreadId::of(2), 1, 10), (ThreadId::of(3), 1, 0)]
    );
    let found: Vec<_> = all.methods.iter().map(|method| (method.name.as_str(), method.own.all(), method.total.all())).collect();
    let expected =
        [("App.Work", 12, 12), ("System.Threading.Thread.Sleep", 10, 10), ("0x9000", 1, 1), ("App.Main", 0, 23), ("App.Idle", 0, 10)];
    assert_eq!(found, expected, "recursion counts once, a stub is its caller's");
    assert_eq!(all.methods[0].tiers, [Tier::Tier1]);
    let busy = live.profile().methods(SampleFilter { thread: Some(ThreadId::of(2)), ..SampleFilter::BUSY }, 100);
    assert_eq!((busy.samples.running, busy.samples.waiting, busy.samples.waiting_ns, busy.methods.len()), (1, 0, 0, 2));
    assert_eq!(live.profile().methods(SampleFilter { thread: Some(ThreadId::of(77)), ..SampleFilter::ALL }, 100).samples.all(), 0);

    let profile = live.profile();
    let counts = profile.count(SampleFilter::ALL);
    let tree: Vec<_> = counts.call_tree(SampleCount::all, 100).into_iter().map(|n| (n.depth, n.name, n.own.all(), n.total.all())).collect();
    let node = |depth, name, own, total| (depth, name, own, total);
    assert_eq!(
        tree,
        [
            node(0, "App.Main", 0, 23),
            node(1, "App.Work", 2, 12),
            node(2, "App.Work", 0, 10),
            node(3, "App.Work", 10, 10),
            node(1, "App.Idle", 0, 10),
            node(2, "System.Threading.Thread.Sleep", 10, 10),
            node(1, "0x9000", 1, 1),
        ]
    );
    assert_eq!(counts.call_tree(SampleCount::all, 3).len(), 3);

    let callers = |name: &str| -> Vec<_> {
        let methods = counts.by_method();
        let method = methods.iter().find(|method| profile.frame_at(method.frame).unwrap().name == name).unwrap();
        let rows = counts.callers(method.frame, SampleCount::all, 100).into_iter();
        rows.map(|row| (row.depth, row.name, row.own.all(), row.total.all())).collect()
    };
    // Of a recursion, the outermost call counts.
    assert_eq!(callers("App.Work"), [node(0, "App.Work", 2, 12), node(1, "App.Main", 2, 12)]);
    let sleep = "System.Threading.Thread.Sleep";
    assert_eq!(callers(sleep), [node(0, sleep, 10, 10), node(1, "App.Idle", 10, 10), node(2, "App.Main", 10, 10)]);
    let stacks = live.profile().count(SampleFilter::ALL).stacks(2);
    assert_eq!(stacks[0].frames, ["App.Work", "App.Work", "App.Work", "App.Main"]);
    assert_eq!((stacks[0].samples.all(), &stacks[0].threads[..]), (10, &[(ThreadId::of(1), 10)][..]));
    assert_eq!(stacks[1].frames, ["System.Threading.Thread.Sleep", "App.Idle", "App.Main"]);
}

#[test]
fn method_names_may_precede_follow_or_be_added_later() {
    let mut before = Script::new();
    program(&mut before);
    samples(&mut before);
    check(&before.play());

    let mut after = Script::new();
    samples(&mut after);
    program(&mut after);
    check(&after.play());

    let mut live = Live::default();
    samples_only().play_to(&mut live);
    assert_eq!(live.profile().methods(SampleFilter::ALL, 100).unresolved, 23);
    let mut rundown = Live::symbols_only();
    let mut script = Script::new();
    program(&mut script);
    samples(&mut script);
    script.play_to(&mut rundown);
    assert_eq!(rundown.profile().methods(SampleFilter::ALL, 100).samples.all(), 0);
    live.add_symbols(&rundown.into_symbols());
    check(&live);
}

/// Before .NET 10, the method that takes a lock is the leaf of the stack; in all versions, the thread uses no CPU time.
#[test]
fn stuck_threads_are_found() {
    let mut script = Script::new();
    program(&mut script);
    script.method(0x6000, 0x100, "System.Threading.Monitor", "Enter").method(0x7000, 0x100, "System.Threading.Monitor", "Enter_Slowpath");
    for tick in 0..100 {
        for thread in [1, 2] {
            sample(&mut script, tick * MS, thread, EXTERNAL, &[0x7001, 0x6010, 0x2010, 0x1010]);
        }
        sample(&mut script, tick * MS, 3, EXTERNAL, &[0x2020, 0x1010]);
        sample(&mut script, tick * MS, 4, EXTERNAL, &[0x4001, 0x3010, 0x1010]);
        // Waits at alternating places.
        sample(&mut script, tick * MS, 5, EXTERNAL, &[0x2001 + (tick as u64 % 2) * 0x1000, 0x1010]);
        // Running.
        sample(&mut script, tick * MS, 6, MANAGED, &[0x2030, 0x1010]);
    }
    let mut live = script.play();
    let begin = live.throughput().trace().unwrap().sync_ticks;
    live.add_cpu_times(begin + 100 * MS, (1..=6).map(|thread| (thread, if thread == 6 { 100_000_000 } else { 0 })).collect());
    live.apply_cpu_times();
    let stuck_threads: Vec<_> =
        live.profile().stuck_threads(70_000_000, |_| true).into_iter().map(|stuck| (stuck.method, stuck.threads, stuck.is_lock)).collect();
    assert_eq!(stuck_threads, [("App.Work".to_owned(), 2, true), ("App.Work".to_owned(), 1, false)]);
    assert_eq!(live.profile().stuck_threads(1_000_000_000, |_| true), []);
    let of_first = live.profile().stuck_threads(70_000_000, |thread| thread.thread == 1);
    assert_eq!(of_first, [StuckThreads { method: "App.Work".to_owned(), threads: 1, is_lock: true }]);
}

fn samples_only() -> Script {
    let mut script = Script::new();
    samples(&mut script);
    script
}

#[test]
fn stack_ids_are_reset_at_sequence_points() {
    let mut script = Script::new();
    program(&mut script);
    sample(&mut script, 0, 1, MANAGED, &[0x1001]);
    script.sequence_point(0);
    sample(&mut script, MS, 1, MANAGED, &[0x2001]);
    let methods = script.play().profile().methods(SampleFilter::ALL, 100);
    assert_eq!(methods.methods.iter().map(|method| method.own.all()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(methods.interval_ns, Some(1_000_000));
}

#[test]
fn a_thread_waiting_for_a_lock_does_not_run() {
    let mut script = Script::new();
    program(&mut script);
    let lock = |id, version| Metadata { provider: RUNTIME.into(), event_id: id, version, ..Metadata::default() };
    sample(&mut script, 0, 1, EXTERNAL, &[0x2001]);
    script.event(lock(81, 1), MS, 1, 1, Bytes::default().u8(0).u16(0));
    sample(&mut script, 2 * MS, 1, EXTERNAL, &[0x2001]);
    sample(&mut script, 2 * MS, 2, EXTERNAL, &[0x2001]);
    script.event(lock(91, 0), 3 * MS, 1, 1, Bytes::default().u8(0).u16(0));
    sample(&mut script, 4 * MS, 1, EXTERNAL, &[0x2001]);
    let samples = script.play().profile().methods(SampleFilter::ALL, 1).samples;
    assert_eq!((samples.running, samples.waiting, samples.waiting_ns), (3, 1, 2_000_000));
}

/// Sampling rounds are late under load, and their samples represent more time. But no sample represents all the time of a stall.
#[test]
fn sample_shares_are_weighted_by_time() {
    let mut script = Script::new();
    program(&mut script);
    let mut at = 0;
    let mut round = |script: &mut Script, gap: i64, leaf: u64| {
        at += gap;
        sample(script, at, 1, MANAGED, &[leaf, 0x1010]);
        // As in a real round, the next thread is sampled a little later.
        sample(script, at + MS / 10, 2, EXTERNAL, &[0x4001, 0x1010]);
    };
    (0..200).for_each(|_| round(&mut script, MS, 0x2001));
    (0..50).for_each(|_| round(&mut script, 3 * MS, 0x3001));
    round(&mut script, 10_000 * MS, 0x3001);
    let methods = script.play().profile().methods(SampleFilter::BUSY, 10);
    let of = |name: &str| methods.methods.iter().find(|method| method.name == name).unwrap().own;
    let (work, idle) = (of("App.Work"), of("App.Idle"));
    assert_eq!((work.running, work.running_ns), (200, 200_000_000));
    // Four times the mean of the latest rounds, most of which took 3 ms.
    let capped = idle.running_ns - 50 * 3_000_000;
    assert!(idle.running == 51 && (10_000_000..11_000_000).contains(&capped), "{idle:?}");
    assert_eq!(methods.methods[0].name, "App.Work");
    let threads: Vec<_> = methods.threads.iter().map(|thread| thread.samples.running_ns).collect();
    assert_eq!(threads, [work.running_ns + idle.running_ns]);
}

/// The runtime writes at most 100 frames: the caller of the last one is unknown.
#[test]
fn truncated_stacks_are_distinguished() {
    let mut script = Script::new();
    program(&mut script);
    let deep = |frames: usize| [vec![0x2001], vec![0x2050; frames - 2], vec![0x1010]].concat();
    sample(&mut script, 0, 1, MANAGED, &deep(99));
    sample(&mut script, MS, 1, MANAGED, &deep(100));
    sample(&mut script, 2 * MS, 2, EXTERNAL, &[vec![0x4001], vec![0x2050; 99]].concat());
    let live = script.play();
    let cut = live.profile().methods(SampleFilter::ALL, 10).cut;
    assert_eq!((cut.running, cut.waiting, cut.all_ns()), (1, 1, 2_000_000));
    assert_eq!(live.profile().methods(SampleFilter::BUSY, 10).cut.all(), 1);
    let methods = live.profile().methods(SampleFilter::ALL, 10).methods;
    let names: Vec<_> = methods.iter().map(|method| (method.name.as_str(), method.total.all())).collect();
    assert_eq!(names, [("App.Work", 3), ("System.Threading.Thread.Sleep", 1), ("App.Main", 2)], "what is missing is no method");
    let profile = live.profile();
    let roots: Vec<_> = profile
        .count(SampleFilter::ALL)
        .call_tree(SampleCount::all, 1000)
        .into_iter()
        .filter(|node| node.depth == 0)
        .map(|node| (node.name, node.total.all()))
        .collect();
    assert_eq!(roots, [("(callers missing: truncated stack)", 2), ("App.Main", 1)]);
}

/// Instantiations of a generic type with unloadable arguments differ only by addresses, which are meaningless to readers.
#[test]
fn methods_with_equal_names_are_merged() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "N.List`1[System.Int32]", "Add").method(0x2000, 0x100, "N.List`1[System.Int32]", "Add");
    script.method(0x3000, 0x100, "N.List`1[System.String]", "Add");
    for (at, leaf) in [(0, 0x1001), (1, 0x2001), (2, 0x3001)] {
        sample(&mut script, at * MS, 1, MANAGED, &[leaf]);
    }
    let methods = script.play().profile().methods(SampleFilter::ALL, 10).methods;
    let rows: Vec<_> = methods.iter().map(|method| (method.name.as_str(), method.own.all(), method.tiers.len())).collect();
    assert_eq!(rows, [("N.List<int>.Add", 2, 1), ("N.List<string>.Add", 1, 1)]);
}

#[test]
fn too_many_stacks_are_folded() {
    let mut script = Script::new();
    let heavy: Vec<u64> = (0..100).map(|frame| 0x1000_0000 + frame).collect();
    for round in 0..1000_u64 {
        let rare: Vec<u64> = (0..200).map(|frame| 0x10_0000_0000 + round * 1000 + frame).collect();
        sample(&mut script, 0, 1, MANAGED, &rare);
        (0..3).for_each(|_| sample(&mut script, 0, 1, MANAGED, &heavy));
        if round % 100 == 0 {
            script.sequence_point(0);
        }
    }
    let live = script.play();
    let methods = live.profile().methods(SampleFilter::ALL, usize::MAX);
    assert_eq!(methods.samples.all(), 4000);
    assert_eq!(methods.methods[0].own.all(), 3000);
    assert!(methods.folded > 300, "{}", methods.folded);
    assert_eq!(methods.methods.iter().map(|method| method.own.all()).sum::<u64>() + methods.folded, 4000);
}

#[test]
fn threads_beyond_the_limit_are_merged() {
    let mut script = Script::new();
    for thread in 0..5000 {
        (0..40).for_each(|frame| sample(&mut script, 0, thread, MANAGED, &[0x1000 + frame]));
    }
    let methods = script.play().profile().methods(SampleFilter::ALL, 1);
    assert_eq!((methods.samples.all(), methods.methods[0].own.all()), (200_000, 5000));
    assert_eq!(methods.threads.iter().map(|thread| thread.samples.all()).sum::<u64>(), 200_000);
    assert!(methods.threads.iter().any(|thread| thread.thread == ThreadId::OTHERS && thread.samples.all() > 30_000));
}

fn sampled(mut sampled: SampledMethods, script: impl Fn(&mut Script)) -> SampledMethods {
    let mut stream = Script::new();
    script(&mut stream);
    stream.play_to(&mut sampled);
    sampled
}

#[test]
fn samples_of_other_parts_are_ignored() {
    let part = sampled(SampledMethods::within(5 * MS..=8 * MS), |script| {
        (1..=10).for_each(|at| sample(script, at * MS, 1, MANAGED, &[0x1010]));
    });
    assert_eq!(part.profile().methods(SampleFilter::ALL, 10).samples.all(), 4);
}

/// If names come last, only those of sampled methods are read.
#[test]
fn sampled_methods_match_the_full_analysis() {
    let names_last = |script: &mut Script| {
        samples(script);
        // The rundown begins once all recorded events are written.
        script.sequence_point(12 * MS);
        program(script);
        script.method(0x7000, 0x100, "App", "Never");
    };
    let mut script = Script::new();
    names_last(&mut script);
    let all = script.play().profile().methods(SampleFilter::ALL, 100);
    let alone = sampled(SampledMethods::default(), names_last);
    assert!(!alone.is_incomplete());
    let found = alone.profile().methods(SampleFilter::ALL, 100);
    assert_eq!((found.methods, found.samples, found.unresolved), (all.methods, all.samples, all.unresolved));
    assert_eq!(alone.symbols().methods(), 5, "without what is in no sample");

    // A sample that arrives after names were skipped may be in one of those methods.
    let late = |script: &mut Script| {
        names_last(script);
        sample(script, 20 * MS, 1, MANAGED, &[0x7001, 0x1010]);
    };
    assert!(sampled(SampledMethods::default(), late).is_incomplete());
    let mut script = Script::new();
    late(&mut script);
    let mut symbols = Live::symbols_only();
    script.play_to(&mut symbols);
    let again = sampled(SampledMethods::default().with_symbols(symbols.into_symbols()), late);
    let names: Vec<_> = again.profile().methods(SampleFilter::BUSY, 100).methods.into_iter().map(|method| method.name).collect();
    assert!(!again.is_incomplete() && names.contains(&"App.Never".to_owned()), "{names:?}");
}

/// Addresses take more memory than methods: stacks that had to be folded are found if all names are known from the start.
#[test]
fn folded_stacks_are_found_in_a_second_pass() {
    let many = |script: &mut Script| {
        for stack in 0..1400_u64 {
            let frames: Vec<u64> = (0..99).map(|frame| 0x10_0001 + stack * 99 + frame).collect();
            sample(script, stack as i64 * MS, 1, MANAGED, &frames);
        }
        script.sequence_point(1400 * MS);
        script.method(0x10_0000, 0x10_0000, "App", "Large");
    };
    let first = sampled(SampledMethods::default(), many);
    assert!(first.is_incomplete() && first.profile().methods(SampleFilter::ALL, 10).folded > 0);
    let mut script = Script::new();
    many(&mut script);
    let mut symbols = Live::symbols_only();
    script.play_to(&mut symbols);
    let again = sampled(SampledMethods::default().with_symbols(symbols.into_symbols()), many);
    let found = again.profile().methods(SampleFilter::ALL, 10);
    assert!(!again.is_incomplete() && found.folded == 0, "{found:?}");
    assert_eq!((found.methods.len(), found.methods[0].own.all()), (1, 1400));
}
