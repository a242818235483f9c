//! Finds the callers of methods in on-stack replacement in raw stacks.

use crate::analysis::{OsrCallers, OsrSite};
use crate::net::perf::{CodeKind, NativeCode, UserStack};

/// Puts the callers that a raw stack shows into its frames, if these are by frame pointers, and records them.
pub(super) fn complete_frames(stack: &UserStack<'_>, frames: &mut [u64], callers: &mut OsrCallers, code: &mut NativeCode) {
    let mut replaced = None;
    for (depth, frame) in stack.frames().take(frames.len().saturating_sub(1)).enumerate() {
        if replaced.take().unwrap_or(frames[depth]) != frame.address {
            return;
        }
        if !callers.is_missing(frames[depth].wrapping_sub(u64::from(depth > 0)), frame.caller) {
            continue;
        }
        code.find_new(frame.caller);
        if let Some(caller) = saved_return_address(stack.saved_return_addresses(&frame), |address| code.kind_at(address)) {
            if let Some(outer) = frames.get(depth + 2) {
                callers.found(OsrSite { replaced: frame.caller, outer: *outer }, caller);
            }
            replaced = Some(std::mem::replace(&mut frames[depth + 1], caller));
        }
    }
}

/// Returns the return address that the replaced code has saved. Former calls from the same caller may have left others: below it those of native
/// helpers, and above it those of methods. A method called by native code has only a short frame above its own.
fn saved_return_address(candidates: impl Iterator<Item = u64>, kind: impl Fn(u64) -> Option<CodeKind>) -> Option<u64> {
    let mut last = None;
    for address in candidates {
        match kind(address) {
            Some(CodeKind::Generated | CodeKind::Assembly) => return Some(address),
            Some(CodeKind::Image | CodeKind::Kernel) => last = Some(address),
            None => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_address_into_a_method_is_preferred() {
        let kind = |address: u64| match address / 100 {
            1 => Some(CodeKind::Image),
            2 => Some(CodeKind::Generated),
            3 => Some(CodeKind::Assembly),
            _ => None,
        };
        for (candidates, expected) in [
            (&[][..], None),
            (&[400, 500], None),
            (&[100, 101, 400], Some(101)),
            (&[100, 200, 101, 201], Some(200)),
            (&[400, 300, 200], Some(300)),
        ] {
            assert_eq!(saved_return_address(candidates.iter().copied(), kind), expected, "{candidates:?}");
        }
    }
}
