//! The code of a process: not available on this system.

use super::{CodeChain, CodeFunction, CodeKind, CpuSample};
use crate::model::ImageIdentity;
use crate::net::client::Client;
use crate::net::proc::CodeMapping;

/// The code of a process; not available.
#[derive(Debug, Clone)]
pub struct NativeCode;

/// Functions of the code; not available.
#[derive(Debug)]
pub struct NativeFunctions;

/// Unwinder of stacks; samples have none.
#[derive(Debug)]
pub struct Unwinder;

impl Client {
    /// Returns an empty placeholder.
    pub fn native_code(&self) -> Option<NativeCode> {
        Some(NativeCode)
    }
}

#[cfg(test)]
impl NativeCode {
    pub(crate) fn empty() -> Self {
        Self
    }
}

impl NativeCode {
    pub(crate) fn mappings(&self) -> impl Iterator<Item = &CodeMapping> {
        std::iter::empty()
    }

    pub(crate) fn identity(&self, _: &CodeMapping) -> Option<ImageIdentity> {
        None
    }

    /// Returns an empty placeholder.
    pub fn functions(&self) -> NativeFunctions {
        NativeFunctions
    }

    /// Returns an empty placeholder.
    pub fn unwinder(&self) -> Unwinder {
        Unwinder
    }

    /// Always `None`.
    pub fn runtime_frames(&self, _: &[u64]) -> Option<usize> {
        None
    }

    /// Always `false`.
    pub fn has_generated(&self) -> bool {
        false
    }

    /// Does nothing.
    pub fn refresh(&mut self) {}

    /// Does nothing.
    pub fn find_new(&mut self, _: u64) {}

    /// Always `None`.
    pub fn kind_at(&self, _: u64) -> Option<CodeKind> {
        None
    }

    /// Returns a chain without frames.
    pub fn chain_of<'a>(&'a mut self, _: &CpuSample<'a>, _: &'a mut Unwinder) -> CodeChain<'a> {
        CodeChain { frames: &[], broken: true }
    }
}

impl NativeFunctions {
    /// Always `None`.
    pub fn function(&mut self, _: &NativeCode, _: u64) -> Option<CodeFunction> {
        None
    }

    /// Returns a function without a name.
    pub fn kernel_function(&mut self, address: u64) -> CodeFunction {
        CodeFunction { start: address, size: 1, name: String::new(), image: "kernel".to_owned(), kind: CodeKind::Kernel }
    }
}
