//! Call chains as the kernel writes them.

/// The frames of a call chain, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Chain<'a> {
    pub(super) kernel: &'a [u64],
    pub(super) user: &'a [u64],
}

/// Values from this on are not addresses but mark the context of the frames after them: `PERF_CONTEXT_MAX`, -4095.
const CONTEXT_MAX: u64 = -4095_i64 as u64;
/// `PERF_CONTEXT_KERNEL`, -128.
const KERNEL: u64 = -128_i64 as u64;
/// `PERF_CONTEXT_USER`, -512.
const USER: u64 = -512_i64 as u64;

impl<'a> Chain<'a> {
    /// Splits a chain by context. Frames of other contexts, such as a hypervisor, are dropped.
    pub(super) fn new(chain: &'a [u64]) -> Self {
        let mut split = Self::default();
        let mut rest = chain;
        while let Some(at) = rest.iter().position(|value| *value >= CONTEXT_MAX) {
            let behind = &rest[at + 1..];
            let frames = &behind[..behind.iter().position(|value| *value >= CONTEXT_MAX).unwrap_or(behind.len())];
            match rest[at] {
                KERNEL => split.kernel = frames,
                USER => split.user = frames,
                _ => {}
            }
            rest = &behind[frames.len()..];
        }
        split
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_user_frames_are_separated() {
        let k = 0xffff_ffff_8100_0000;
        for (chain, kernel, user) in [
            (&[KERNEL, k, k + 1, USER, 5, 6][..], &[k, k + 1][..], &[5, 6][..]),
            (&[USER, 5], &[], &[5]),
            (&[KERNEL, k], &[k], &[]),
            (&[KERNEL, USER], &[], &[]),
            (&[CONTEXT_MAX, 7, USER, 5], &[], &[5]),
            // Frames without a context are dropped.
            (&[1, 2, 3], &[], &[]),
            (&[], &[], &[]),
        ] {
            assert_eq!(Chain::new(chain), Chain { kernel, user }, "{chain:x?}");
        }
    }
}
