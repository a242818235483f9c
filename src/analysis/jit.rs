//! JIT compilation: number of methods, time, and the slowest methods.

use foldhash::HashMap;

use crate::clr::payload::{BackgroundJit, JittingStarted, MethodBody, MethodVerbose, Tier};
use crate::clr::{EventKind, method_name};
use crate::nettrace::ThreadId;

use super::event_context::EventContext;
use super::{Distribution, Timeline};

/// Maximum number of threads tracked as compiling.
const COMPILING: usize = 256;
/// Maximum nesting of compilations on a thread: compiling a method can trigger compiling another.
const NESTED: usize = 32;
/// Maximum number of slowest methods kept.
const SLOWEST: usize = 50;
/// Maximum length of a name, in characters.
const NAME: usize = 300;

/// Counts method bodies as they are loaded, and pairs them with the start of their compilation if known.
#[derive(Debug, Default)]
pub(super) struct Jit {
    methods: u64,
    by_tier: [TierBodies; Tier::ALL.len()],
    over_time: Timeline,
    unloaded: u64,
    /// Methods being compiled by each thread, outermost first.
    compiling: HashMap<ThreadId, Vec<Compilation>>,
    times: Distribution,
    time_over_time: Timeline,
    il_bytes: u64,
    slowest: Vec<SlowMethod>,
    background: HashMap<ThreadId, i64>,
    background_ns: u64,
    background_pending: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Compilation {
    method: u64,
    at: i64,
    il_size: u32,
    /// Time of methods compiled in between on the same thread.
    inner_ns: u64,
}

/// Method bodies of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierBodies {
    /// Number of method bodies.
    pub bodies: u64,
    /// Code size, in bytes.
    pub code_bytes: u64,
}

/// JIT compilation of a recording.
#[derive(Debug, Clone)]
pub struct JitSnapshot {
    /// Number of method bodies loaded, including precompiled ones on first use.
    pub bodies: u64,
    /// Number of these that were JIT-compiled.
    pub jitted: u64,
    /// Method bodies by tier; only tiers that occurred.
    pub by_tier: Vec<(Tier, TierBodies)>,
    /// Number of method bodies unloaded.
    pub unloaded: u64,
    /// Method bodies per second over the last ten seconds.
    pub rate: f64,
    /// Method bodies over time.
    pub over_time: Timeline,
    /// Compilation time; `None` if the start of compilations is unknown (requires level verbose).
    pub time: Option<JitTime>,
    /// Time spent in background (tiered) compilation, in nanoseconds, and the number of methods pending at the end of the latest background
    /// run. (Requires keyword compilation.)
    pub background: Option<(u64, u32)>,
}

/// Compilation time, in nanoseconds.
#[derive(Debug, Clone)]
pub struct JitTime {
    /// Number of compilations measured.
    pub count: u64,
    /// Total time; compilations nested on the same thread are counted once.
    pub total_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99.
    pub quantiles_ns: Option<[u64; 3]>,
    /// Nanoseconds over time.
    pub over_time: Timeline,
    /// Size of the compiled IL, in bytes.
    pub il_bytes: u64,
    /// The slowest methods, slowest first; at most 50.
    pub slowest: Vec<SlowMethod>,
}

/// A method with a slow compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowMethod {
    /// Type and method name; not sanitized.
    pub name: String,
    /// Compilation time.
    pub time_ns: u64,
    /// IL size, in bytes.
    pub il_size: u32,
    /// Tier of the compiled code.
    pub tier: Tier,
    /// End of the compilation, in nanoseconds since the start of the session.
    pub at: i64,
}

impl Jit {
    fn begin(&mut self, context: &EventContext<'_>, started: &JittingStarted<'_>) {
        if self.compiling.len() >= COMPILING && !self.compiling.contains_key(&context.thread) {
            self.compiling.clear();
        }
        let nested = self.compiling.entry(context.thread).or_default();
        if nested.len() >= NESTED {
            nested.clear();
        }
        nested.push(Compilation { method: started.method, at: context.at, il_size: started.il_size, inner_ns: 0 });
    }

    fn body_loaded(&mut self, context: &EventContext<'_>, body: MethodBody, verbose: Option<&MethodVerbose<'_>>) {
        let tier = body.tier();
        self.methods += 1;
        self.over_time.add(context.at, 1.0);
        let of_tier = &mut self.by_tier[tier as usize];
        of_tier.bodies += 1;
        of_tier.code_bytes += u64::from(body.size);
        let Some(nested) = self.compiling.get_mut(&context.thread) else { return };
        let Some(depth) = nested.iter().rposition(|begun| begun.method == body.method) else { return };
        // Nested compilations that started later on this thread without an end will not end.
        nested.truncate(depth + 1);
        let Some(begun) = nested.pop() else { return };
        let whole_ns = u64::try_from(context.at.saturating_sub(begun.at)).unwrap_or(0);
        let own_ns = whole_ns.saturating_sub(begun.inner_ns);
        if let Some(outer) = nested.last_mut() {
            outer.inner_ns = outer.inner_ns.saturating_add(whole_ns);
        }
        self.times.add(own_ns);
        self.time_over_time.add(context.at, own_ns as f64);
        self.il_bytes += u64::from(begun.il_size);
        let place = self.slowest.partition_point(|slow| slow.time_ns >= own_ns);
        if place < SLOWEST {
            let name = verbose.map_or_else(String::new, |verbose| method_name(&verbose.namespace.prefix(NAME), &verbose.name.prefix(NAME)));
            self.slowest.truncate(SLOWEST - 1);
            self.slowest.insert(place, SlowMethod { name, time_ns: own_ns, il_size: begun.il_size, tier, at: context.at });
        }
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::JittingStarted => self.begin(context, &context.payload()?),
            EventKind::MethodLoad => self.body_loaded(context, context.payload()?, None),
            EventKind::MethodLoadVerbose => {
                let verbose: MethodVerbose<'_> = context.payload()?;
                self.body_loaded(context, verbose.body, Some(&verbose));
            }
            EventKind::MethodUnload => self.unloaded += 1,
            EventKind::BackgroundJitStart => {
                if self.background.len() >= COMPILING {
                    self.background.clear();
                }
                self.background.insert(context.thread, context.at);
            }
            EventKind::BackgroundJitStop => {
                let stop: BackgroundJit = context.payload()?;
                self.background_pending = Some(stop.pending);
                if let Some(begin) = self.background.remove(&context.thread) {
                    let time = u64::try_from(context.at.saturating_sub(begin)).unwrap_or(0);
                    self.background_ns = self.background_ns.saturating_add(time);
                }
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn lost(&mut self, capture_thread: ThreadId) {
        self.compiling.remove(&capture_thread);
        self.background.remove(&capture_thread);
    }

    pub(super) fn snapshot(&self, now: i64) -> JitSnapshot {
        let by_tier: Vec<_> = Tier::ALL.into_iter().zip(self.by_tier).filter(|(_, compiled)| compiled.bodies > 0).collect();
        let precompiled: u64 = by_tier.iter().filter(|(tier, _)| *tier == Tier::ReadyToRun).map(|(_, compiled)| compiled.bodies).sum();
        JitSnapshot {
            bodies: self.methods,
            jitted: self.methods - precompiled,
            by_tier,
            unloaded: self.unloaded,
            rate: self.over_time.rate(now, 10),
            over_time: self.over_time.clone(),
            time: (self.times.count() > 0).then(|| JitTime {
                count: self.times.count(),
                total_ns: self.times.sum(),
                quantiles_ns: self.times.quantiles(),
                over_time: self.time_over_time.clone(),
                il_bytes: self.il_bytes,
                slowest: self.slowest.clone(),
            }),
            background: self.background_pending.map(|pending| (self.background_ns, pending)),
        }
    }
}
