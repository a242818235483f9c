//! The say in how a recording goes on.

/// What somebody wants of a recording. Later wishes replace earlier ones, and may come before it has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    GoOn,
    Stop,
    Abandon,
}
