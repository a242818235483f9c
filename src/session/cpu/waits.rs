//! Reasons for which threads wait, from the total of their waits and the stacks of most of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::analysis::{Origin, Profile, WaitReason, Waits};
use crate::net::perf::Wait;
use crate::sorting::CompactSort;

/// Returns the known word for a wait read from a file; files of later versions may have other words.
pub(in crate::session) fn known_wait(word: &str) -> &'static str {
    let mut words = WaitReason::ALL.into_iter().map(WaitReason::name).chain(Wait::ALL.into_iter().map(Wait::word));
    words.find(|known| *known == word).unwrap_or(Wait::Other.word())
}

/// Returns the waits of threads that had work, by method, and the time others were idle; `None` if no waits are known. The samples of the same
/// process show whether it has managed code.
pub fn without_idle_waits(waits: Option<&Profile>, samples: &Profile) -> (Option<Profile>, Duration) {
    let (busy, idle_ns) = waits.map(|waits| without_native_frames(waits, samples).without_idle()).unzip();
    (busy, Duration::from_nanos(idle_ns.unwrap_or(0)))
}

/// Returns the waits without the frames below the program's methods, which are alike in all of them, and without those of threads of the runtime.
/// Without managed code, only kernel frames are removed.
fn without_native_frames(waits: &Profile, samples: &Profile) -> Profile {
    let is_managed = |origin| matches!(origin, Origin::Managed | Origin::Unknown);
    // A native program has addresses of unknown code, too, where its frames could not be followed.
    let has_managed = waits.origins().any(is_managed) || samples.origins().any(|origin| origin == Origin::Managed);
    waits.without(|origin| if has_managed { !is_managed(origin) } else { origin == Origin::Kernel })
}

/// Splits the waits of a thread, whose total is exact, by the known reasons: from their stacks, and from runtime events (nanoseconds). The
/// rest of each kind has no reason.
pub(super) fn attribute_waits(
    all: &[(&'static str, Duration)],
    known: &Waits<Wait>,
    by_events: [(WaitReason, u64); 2],
) -> Vec<(&'static str, Duration)> {
    let ns = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let blocked: u64 = all.iter().map(|(_, time)| ns(time)).sum();
    let mut of_kinds = BTreeMap::<&str, u64>::new();
    let mut waits = BTreeMap::<&str, u64>::new();
    for ((kind, reason), ns) in known {
        let (kind, word) = match (kind, reason) {
            (Some(Wait::Futex), Some(reason)) => (Wait::Futex, reason.name()),
            (Some(kind), _) => (*kind, kind.word()),
            // Without the names of kernel functions, methods that can only wait on a futex still show the reason.
            (None, Some(reason)) if *reason != WaitReason::Runtime => (Wait::Futex, reason.name()),
            (None, _) => continue,
        };
        *of_kinds.entry(kind.word()).or_default() += ns;
        *waits.entry(word).or_default() += ns;
    }
    let known: u64 = waits.values().sum();
    let left: Vec<_> = all.iter().map(|(kind, time)| (*kind, ns(time).saturating_sub(of_kinds.get(kind).copied().unwrap_or(0)))).collect();
    let left_sum: u64 = left.iter().map(|(_, ns)| ns).sum();
    // The two are measured differently, so their totals differ slightly.
    let share = |ns: u64, of: u64, is: u64| (u128::from(ns) * u128::from(is) / u128::from(of.max(1))) as u64;
    let known_is = known.min(blocked);
    waits.values_mut().for_each(|ns| *ns = share(*ns, known, known_is));
    for (kind, ns) in left {
        *waits.entry(kind).or_default() += share(ns, left_sum, blocked - known_is);
    }
    for (reason, ns) in by_events {
        let mut more = ns.saturating_sub(waits.get(reason.name()).copied().unwrap_or(0));
        // Time not attributed by stacks is counted as one of these.
        for unknown in [WaitReason::Runtime.name(), Wait::Futex.word()] {
            let Some(left) = waits.get_mut(unknown) else { continue };
            let of_reason = more.min(*left);
            *left -= of_reason;
            more -= of_reason;
            *waits.entry(reason.name()).or_default() += of_reason;
        }
    }
    let mut waits: Vec<_> = waits.into_iter().filter(|(_, ns)| *ns > 0).map(|(wait, ns)| (wait, Duration::from_nanos(ns))).collect();
    waits.compact_sort_by_key(|(_, time)| Reverse(*time));
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{CpuSamples, CpuStack, NativeFunction, SampleFilter, Symbols, ThreadId};

    /// Such as a NativeAOT program.
    #[test]
    fn native_frames_are_removed_only_below_managed_code() {
        let profile = |frames: &[(u64, Origin)]| {
            let mut symbols = Symbols::default();
            for (start, origin) in frames {
                let name = &format!("f{start}");
                symbols.add_native(&NativeFunction { address: *start, start: *start, size: 16, name, image: "", origin: *origin });
            }
            let user: Vec<_> = frames.iter().map(|(start, _)| start + 1).collect();
            let mut waits = CpuSamples::of_waits();
            waits.add_time(&CpuStack { thread: ThreadId::of(1), at: 0, kernel: &[], user: &user, missing: None }, 5);
            waits.profile(&symbols)
        };
        let methods = |waits: &Profile, samples: &Profile| {
            let left = without_native_frames(waits, samples);
            left.count(SampleFilter::ALL).by_method().iter().filter(|method| method.total.all_ns() > 0).count()
        };
        let native = profile(&[(0x1000, Origin::Native), (0x2000, Origin::Gc)]);
        let managed = profile(&[(0x1000, Origin::Native), (0x2000, Origin::Managed)]);
        assert_eq!([methods(&native, &native), methods(&managed, &managed), methods(&native, &managed)], [2, 1, 0]);
    }

    const NOTHING: [(WaitReason, u64); 2] = [(WaitReason::Lock, 0), (WaitReason::Gc, 0)];

    #[test]
    fn words_for_waits_in_a_file_are_known() {
        let words: Vec<_> = WaitReason::ALL.map(WaitReason::name).into_iter().chain(Wait::ALL.map(Wait::word)).collect();
        assert_eq!(words.iter().map(|word| known_wait(word)).collect::<Vec<_>>(), words);
        assert_eq!(["later", ""].map(known_wait), ["other"; 2]);
    }

    #[test]
    fn known_waits_get_reasons_and_the_total_is_kept() {
        let ms = Duration::from_millis;
        let known = |waits: &[(Wait, Option<WaitReason>, u64)]| -> Waits<Wait> {
            waits.iter().map(|(wait, reason, ms)| ((Some(*wait), *reason), ms * 1_000_000)).collect()
        };
        let all = [("futex", ms(60)), ("io", ms(40))];
        for (waits, expected) in [
            (known(&[]), vec![("futex", ms(60)), ("io", ms(40))]),
            (
                known(&[(Wait::Futex, Some(WaitReason::Lock), 30), (Wait::Futex, None, 10), (Wait::Io, Some(WaitReason::Runtime), 40)]),
                vec![("io", ms(40)), ("futex", ms(30)), ("lock", ms(30))],
            ),
            // Periodic observation is less exact than the stacks.
            (known(&[(Wait::Futex, Some(WaitReason::Sleep), 80)]), vec![("sleep", ms(80)), ("io", ms(20))]),
            (known(&[(Wait::Futex, Some(WaitReason::Idle), 150), (Wait::Io, None, 50)]), vec![("idle", ms(75)), ("io", ms(25))]),
            // All observed waits have a reason, although some of the time is not covered.
            (known(&[(Wait::Futex, Some(WaitReason::Signal), 60), (Wait::Io, None, 40)]), vec![("signal", ms(60)), ("io", ms(40))]),
        ] {
            assert_eq!(attribute_waits(&all, &waits, NOTHING), expected, "{waits:?}");
        }
        let unnamed = Waits::from([((None, Some(WaitReason::Lock)), 30_000_000), ((None, Some(WaitReason::Runtime)), 70_000_000)]);
        assert_eq!(attribute_waits(&all, &unnamed, NOTHING), [("io", ms(40)), ("futex", ms(30)), ("lock", ms(30))]);
        let less = known(&[(Wait::Poll, None, 30), (Wait::Futex, Some(WaitReason::Signal), 30)]);
        assert_eq!(attribute_waits(&[("poll", ms(50))], &less, NOTHING), [("poll", ms(25)), ("signal", ms(25))]);
        assert_eq!(attribute_waits(&[], &less, NOTHING), []);
    }

    #[test]
    fn events_attribute_waits_that_stacks_do_not_show() {
        let ms = Duration::from_millis;
        let all = [("futex", ms(60)), ("io", ms(40))];
        let by_events = |lock: u64, gc: u64| [(WaitReason::Lock, lock * 1_000_000), (WaitReason::Gc, gc * 1_000_000)];
        let known = |reason, ns: u64| Waits::from([((Some(Wait::Futex), Some(reason)), ns * 1_000_000)]);
        for (known, by_events, expected) in [
            (Waits::new(), by_events(50, 6), vec![("lock", ms(50)), ("io", ms(40)), ("gc", ms(6)), ("futex", ms(4))]),
            // A thread is not blocked longer than its total.
            (Waits::new(), by_events(50, 600), vec![("lock", ms(50)), ("io", ms(40)), ("gc", ms(10))]),
            (
                known(WaitReason::Runtime, 30),
                by_events(25, 0),
                vec![("io", ms(40)), ("futex", ms(30)), ("lock", ms(25)), ("runtime", ms(5))],
            ),
            (known(WaitReason::Runtime, 30), by_events(20, 20), vec![("io", ms(40)), ("futex", ms(20)), ("gc", ms(20)), ("lock", ms(20))]),
            // The stacks show it as well.
            (known(WaitReason::Lock, 30), by_events(31, 0), vec![("io", ms(40)), ("lock", ms(31)), ("futex", ms(29))]),
            (known(WaitReason::Sleep, 60), by_events(30, 30), vec![("sleep", ms(60)), ("io", ms(40))]),
        ] {
            assert_eq!(attribute_waits(&all, &known, by_events), expected, "{known:?} {by_events:?}");
        }
    }

    #[test]
    fn unknown_wait_names_are_read_as_other() {
        for (word, known) in [("lock", "lock"), ("futex", "futex"), ("sleep", "sleep"), ("\x1b", "other"), ("", "other")] {
            assert_eq!(known_wait(word), known);
        }
    }
}
