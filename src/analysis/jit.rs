//! Compilation at run time: how many methods, how long it took, and which took longest.

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::clr::payload::{BackgroundJit, JittingStarted, MethodBody, MethodVerbose, Tier};
use crate::nettrace::ThreadId;

use super::distribution::Distribution;
use super::known::{Analysis, Known, View};
use super::symbols::method_name;
use super::timeline::{Merge, Timeline};

/// Threads that compile at the same time.
const COMPILING: usize = 256;
/// Methods that wait for one another on a thread: compiling one can make another be compiled.
const NESTED: usize = 32;
/// Slowest methods that are kept.
const SLOWEST: usize = 50;
/// Characters of a name that are kept.
const NAME: usize = 300;

/// Counts method bodies as they appear, and pairs them with the begin of their compilation where that is known.
#[derive(Debug)]
pub(super) struct Jit {
    methods: u64,
    by_tier: [Compiled; Tier::ALL.len()],
    over_time: Timeline,
    unloaded: u64,
    /// By thread, the methods that it compiles, outermost first.
    compiling: HashMap<ThreadId, Vec<Begun>>,
    times: Distribution,
    time_over_time: Timeline,
    il_bytes: u64,
    slowest: Vec<SlowMethod>,
    background: HashMap<ThreadId, i64>,
    background_ns: u64,
    background_pending: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    method: u64,
    at: i64,
    il_size: u32,
    /// Time of methods that were compiled in between on the same thread.
    inner_ns: u64,
}

/// Method bodies of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compiled {
    /// How many.
    pub bodies: u64,
    /// Their code, bytes.
    pub code_bytes: u64,
}

/// What was compiled.
#[derive(Debug, Clone)]
pub struct JitSnapshot {
    /// Method bodies that appeared, precompiled ones that were first used included.
    pub bodies: u64,
    /// Of these, those that were compiled at run time.
    pub jitted: u64,
    /// All by tier, those that there are.
    pub by_tier: Vec<(Tier, Compiled)>,
    /// Method bodies that went.
    pub unloaded: u64,
    /// Method bodies a second over the last ten seconds.
    pub rate: f64,
    /// Method bodies by step.
    pub over_time: Timeline,
    /// Time spent compiling; `None` where its begin is not known (it takes level verbose).
    pub time: Option<JitTime>,
    /// Time in which methods were compiled again beside the program, nanoseconds, and how many waited for it at the end of the latest such time.
    /// (It takes keyword compilation.)
    pub background: Option<(u64, u32)>,
}

/// Time spent compiling, nanoseconds.
#[derive(Debug, Clone)]
pub struct JitTime {
    /// Compilations that this is about.
    pub count: u64,
    /// All of them together; what was compiled in between on the same thread counts once.
    pub total_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99.
    pub quantiles_ns: Option<[u64; 3]>,
    /// Nanoseconds by step.
    pub over_time: Timeline,
    /// IL that was compiled, bytes.
    pub il_bytes: u64,
    /// The methods that took longest, longest first: no more than 50.
    pub slowest: Vec<SlowMethod>,
}

/// A method whose compilation took long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowMethod {
    /// Type and name; not sanitised.
    pub name: String,
    /// How long it took.
    pub time_ns: u64,
    /// Size of its IL, bytes.
    pub il_size: u32,
    /// What was made of it.
    pub tier: Tier,
    /// When it was done, nanoseconds since the start of the session.
    pub at: i64,
}

impl Default for Jit {
    fn default() -> Self {
        Self {
            methods: 0,
            by_tier: [Compiled::default(); Tier::ALL.len()],
            over_time: Timeline::new(Merge::Sum),
            unloaded: 0,
            compiling: HashMap::default(),
            times: Distribution::default(),
            time_over_time: Timeline::new(Merge::Sum),
            il_bytes: 0,
            slowest: Vec::new(),
            background: HashMap::default(),
            background_ns: 0,
            background_pending: None,
        }
    }
}

impl Jit {
    fn begin(&mut self, known: &Known<'_>, started: &JittingStarted<'_>) {
        if self.compiling.len() >= COMPILING && !self.compiling.contains_key(&known.thread) {
            self.compiling.clear();
        }
        let nested = self.compiling.entry(known.thread).or_default();
        if nested.len() >= NESTED {
            nested.clear();
        }
        nested.push(Begun { method: started.method, at: known.at, il_size: started.il_size, inner_ns: 0 });
    }

    fn appeared(&mut self, known: &Known<'_>, body: MethodBody, verbose: Option<&MethodVerbose<'_>>) {
        let tier = body.tier();
        self.methods += 1;
        self.over_time.add(known.at, 1.0);
        if let Some(of_tier) = Tier::ALL.iter().position(|known| *known == tier).and_then(|index| self.by_tier.get_mut(index)) {
            of_tier.bodies += 1;
            of_tier.code_bytes += u64::from(body.size);
        }
        let Some(nested) = self.compiling.get_mut(&known.thread) else { return };
        let Some(depth) = nested.iter().rposition(|begun| begun.method == body.method) else { return };
        // What began later on this thread and did not end never will.
        nested.truncate(depth + 1);
        let Some(begun) = nested.pop() else { return };
        let whole_ns = u64::try_from(known.at.saturating_sub(begun.at)).unwrap_or(0);
        let own_ns = whole_ns.saturating_sub(begun.inner_ns);
        if let Some(outer) = nested.last_mut() {
            outer.inner_ns = outer.inner_ns.saturating_add(whole_ns);
        }
        self.times.add(own_ns);
        self.time_over_time.add(known.at, own_ns as f64);
        self.il_bytes += u64::from(begun.il_size);
        let place = self.slowest.partition_point(|slow| slow.time_ns >= own_ns);
        if place < SLOWEST {
            let name = verbose.map_or_else(String::new, |verbose| method_name(&verbose.namespace.start(NAME), &verbose.name.start(NAME)));
            self.slowest.truncate(SLOWEST - 1);
            self.slowest.insert(place, SlowMethod { name, time_ns: own_ns, il_size: begun.il_size, tier, at: known.at });
        }
    }
}

impl Analysis for Jit {
    type Snapshot = JitSnapshot;

    fn feed(&mut self, known: &Known<'_>) -> Option<()> {
        match known.kind {
            EventKind::JittingStarted => self.begin(known, &known.payload()?),
            EventKind::MethodLoad => self.appeared(known, known.payload()?, None),
            EventKind::MethodLoadVerbose => {
                let verbose: MethodVerbose<'_> = known.payload()?;
                self.appeared(known, verbose.body, Some(&verbose));
            }
            EventKind::MethodUnload => self.unloaded += 1,
            EventKind::BackgroundJitStart => {
                if self.background.len() >= COMPILING {
                    self.background.clear();
                }
                self.background.insert(known.thread, known.at);
            }
            EventKind::BackgroundJitStop => {
                let stop: BackgroundJit = known.payload()?;
                self.background_pending = Some(stop.pending);
                if let Some(begin) = self.background.remove(&known.thread) {
                    let time = u64::try_from(known.at.saturating_sub(begin)).unwrap_or(0);
                    self.background_ns = self.background_ns.saturating_add(time);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn lost(&mut self, capture_thread: ThreadId) {
        self.compiling.remove(&capture_thread);
        self.background.remove(&capture_thread);
    }

    fn snapshot(&self, view: &View<'_>) -> JitSnapshot {
        let by_tier: Vec<_> = Tier::ALL.into_iter().zip(self.by_tier).filter(|(_, compiled)| compiled.bodies > 0).collect();
        let precompiled: u64 = by_tier.iter().filter(|(tier, _)| *tier == Tier::ReadyToRun).map(|(_, compiled)| compiled.bodies).sum();
        JitSnapshot {
            bodies: self.methods,
            jitted: self.methods - precompiled,
            by_tier,
            unloaded: self.unloaded,
            rate: self.over_time.rate(view.now, 10),
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
