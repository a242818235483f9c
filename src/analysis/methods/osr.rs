//! Callers of methods that continue in optimized code during a call: on-stack replacement (OSR).
//!
//! On x86-64, the optimized code saves the frame pointer of the method's caller, because the unoptimized code that it replaces has saved its own
//! already. A stack walked by frame pointers therefore has a return address in the unoptimized code next to the optimized code, and not the one in
//! the caller. That one follows from the raw stack. Where too little of it was recorded, the caller is the one found in other stacks with the same
//! return addresses, if all of them have the same.
//!
//! Source: dotnet/runtime, docs/design/features/OSRX64EpilogRedesign.md. Seen on .NET 8, 9 and 10.

use std::ops::Range;

use foldhash::{HashMap, HashSet};

use crate::analysis::symbols::{MethodId, Symbols};

/// Maximum number of places kept.
const SITES: usize = 1 << 14;
/// Number of attempts to find a caller.
const ATTEMPTS: u8 = 16;

/// Methods in on-stack replacement, and their callers as far as known.
#[derive(Debug, Clone, Default)]
pub struct OsrCallers {
    /// Optimized code that replaces other code, and the other code of the same methods, both in ascending order.
    replacements: Vec<(Range<u64>, MethodId)>,
    replaced: Vec<(Range<u64>, MethodId)>,
    /// Number of bodies known when these were collected.
    bodies: usize,
    callers: HashMap<OsrSite, Caller>,
}

/// A place in stacks where a caller is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OsrSite {
    /// Return address into the replaced code.
    pub replaced: u64,
    /// Return address into the caller's caller.
    pub outer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// Its return address.
    Found(u64),
    /// There are several.
    Ambiguous,
    /// Number of attempts to find it.
    Wanted(u8),
}

impl OsrCallers {
    /// Takes the methods in on-stack replacement from these symbols, if they have any code.
    pub fn set_code(&mut self, symbols: &Symbols) {
        let replacements: Vec<_> = symbols.osr_code().collect();
        if symbols.bodies() == 0 || symbols.bodies() == self.bodies && replacements == self.replacements {
            return;
        }
        (self.bodies, self.replacements) = (symbols.bodies(), replacements);
        let methods: HashSet<_> = self.replacements.iter().map(|(_, method)| *method).collect();
        self.replaced = if methods.is_empty() { Vec::new() } else { symbols.other_code(&methods).collect() };
    }

    /// Whether there are no such methods.
    pub fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    /// Whether an address is in code that replaces other code.
    pub fn is_replacement(&self, address: u64) -> bool {
        method_at(&self.replacements, address).is_some()
    }

    /// Whether the caller of a frame is missing: an address in its function is in optimized code, and the return address in the code that it
    /// replaces.
    pub fn is_missing(&self, address: u64, return_address: u64) -> bool {
        let method = method_at(&self.replacements, address);
        method.is_some() && method_at(&self.replaced, return_address.wrapping_sub(1)) == method
    }

    /// Puts the known callers in the place of return addresses into replaced code. Frames are innermost first; all but the first are return
    /// addresses. Returns the first place whose caller is to be found yet.
    pub fn complete(&self, frames: &mut [u64]) -> Option<OsrSite> {
        let mut first_wanted = None;
        for inner in 0..frames.len().saturating_sub(2) {
            if !self.is_missing(frames[inner].wrapping_sub(u64::from(inner > 0)), frames[inner + 1]) {
                continue;
            }
            let site = OsrSite { replaced: frames[inner + 1], outer: frames[inner + 2] };
            match self.callers.get(&site) {
                Some(Caller::Found(caller)) => frames[inner + 1] = *caller,
                Some(Caller::Ambiguous | Caller::Wanted(ATTEMPTS..)) => {}
                None if self.callers.len() >= SITES => {}
                Some(Caller::Wanted(_)) | None => first_wanted = first_wanted.or(Some(site)),
            }
        }
        first_wanted
    }

    /// Records an attempt to find a caller.
    pub fn attempt(&mut self, site: OsrSite) {
        match self.callers.get_mut(&site) {
            Some(Caller::Wanted(attempts)) => *attempts = attempts.saturating_add(1),
            Some(_) => {}
            None => self.put(site, Caller::Wanted(1)),
        }
    }

    /// Records the return address into a caller.
    pub fn found(&mut self, site: OsrSite, caller: u64) {
        match self.callers.get_mut(&site) {
            Some(Caller::Found(known)) if *known == caller => {}
            Some(known @ (Caller::Found(_) | Caller::Ambiguous)) => *known = Caller::Ambiguous,
            Some(known) => *known = Caller::Found(caller),
            None => self.put(site, Caller::Found(caller)),
        }
    }

    fn put(&mut self, site: OsrSite, caller: Caller) {
        if self.callers.len() < SITES {
            self.callers.insert(site, caller);
        }
    }
}

fn method_at(code: &[(Range<u64>, MethodId)], address: u64) -> Option<MethodId> {
    let next = code.partition_point(|(range, _)| range.end <= address);
    code.get(next).filter(|(range, _)| range.contains(&address)).map(|(_, method)| *method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::symbols::tests::load;

    const OSR: u32 = 5 << 7;

    fn callers() -> OsrCallers {
        let mut symbols = Symbols::default();
        for (start, token, name, flags) in [(100, 1, "A", OSR), (200, 1, "A", 0), (300, 2, "B", OSR), (400, 2, "B", 0), (500, 3, "C", 0)] {
            load(&mut symbols, start, 50, token, name, flags);
        }
        let mut callers = OsrCallers::default();
        callers.set_code(&symbols);
        callers
    }

    fn site(replaced: u64, outer: u64) -> OsrSite {
        OsrSite { replaced, outer }
    }

    fn complete(callers: &OsrCallers, frames: &[u64]) -> (Vec<u64>, Option<OsrSite>) {
        let mut frames = frames.to_vec();
        let wanted = callers.complete(&mut frames);
        (frames, wanted)
    }

    #[test]
    fn methods_in_on_stack_replacement_are_recognized() {
        let mut callers = callers();
        let found: Vec<_> = [99, 100, 149, 150, 200, 300, 349, 350].map(|address| callers.is_replacement(address)).into();
        assert_eq!(found, [false, true, true, false, false, true, true, false]);
        let missing = [(100, 201), (149, 250), (100, 200), (100, 251), (100, 410), (300, 410), (200, 210), (500, 210)];
        let found: Vec<_> = missing.map(|(address, caller)| callers.is_missing(address, caller)).into();
        assert_eq!(found, [true, true, false, false, false, true, false, false]);
        callers.set_code(&Symbols::default());
        assert!(!callers.is_empty(), "symbols are not available");
        // Their places are used again: the number of bodies is the same.
        let mut symbols = Symbols::default();
        (1..=5).for_each(|number| load(&mut symbols, number * 100, 50, 3, "C", 0));
        callers.set_code(&symbols);
        assert!(callers.is_empty());
    }

    #[test]
    fn caller_is_put_in_the_place_of_replaced_code() {
        let mut callers = callers();
        assert_eq!(complete(&callers, &[120, 220, 900, 901]), (vec![120, 220, 900, 901], Some(site(220, 900))));
        callers.found(site(220, 900), 520);
        assert_eq!(complete(&callers, &[120, 220, 900, 901]), (vec![120, 520, 900, 901], None));
        // Below other frames, at the end of its code.
        assert_eq!(complete(&callers, &[50, 150, 220, 900]), (vec![50, 150, 520, 900], None));
        assert_eq!(complete(&callers, &[150, 220, 900]), (vec![150, 220, 900], None), "the address itself is beyond the code");
        assert_eq!(complete(&callers, &[120, 220, 901]).1, Some(site(220, 901)));
        // The caller is in on-stack replacement, too.
        callers.found(site(220, 420), 320);
        callers.found(site(420, 900), 530);
        assert_eq!(complete(&callers, &[120, 220, 420, 900, 901]), (vec![120, 320, 530, 900, 901], None));
        for frames in [&[][..], &[120], &[120, 220], &[0, 0, 0]] {
            assert_eq!(complete(&callers, frames), (frames.to_vec(), None));
        }
    }

    #[test]
    fn search_for_a_caller_ends_after_some_attempts() {
        let mut callers = callers();
        for attempt in 0..ATTEMPTS {
            assert_eq!(complete(&callers, &[120, 220, 900]).1, Some(site(220, 900)), "{attempt}");
            callers.attempt(site(220, 900));
        }
        assert_eq!(complete(&callers, &[120, 220, 900]).1, None);
        callers.found(site(220, 900), 520);
        callers.attempt(site(220, 900));
        assert_eq!(complete(&callers, &[120, 220, 900]), (vec![120, 520, 900], None));
    }

    #[test]
    fn nothing_is_guessed_if_there_are_several_callers() {
        let mut callers = callers();
        for caller in [520, 530, 520] {
            callers.found(site(220, 900), caller);
        }
        assert_eq!(complete(&callers, &[120, 220, 900]), (vec![120, 220, 900], None));
    }

    #[test]
    fn number_of_sites_is_limited() {
        let mut callers = callers();
        for outer in 0..2 * SITES as u64 {
            callers.found(site(220, outer), 520);
            callers.attempt(site(221, outer));
        }
        assert_eq!(callers.callers.len(), SITES);
        assert_eq!(complete(&callers, &[120, 220, u64::MAX]).1, None, "no room for it");
    }
}
