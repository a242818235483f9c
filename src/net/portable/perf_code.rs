//! The code of a process: nothing is known of it.

use super::{CodeChain, CodeFunction, CodeKind, CpuSample};
use crate::net::client::Client;
use crate::net::proc::CodeMapping;

/// The code of a process, of which nothing is known.
#[derive(Debug, Clone)]
pub struct NativeCode;

/// Its functions, of which nothing is known.
#[derive(Debug)]
pub struct NativeFunctions;

/// No stack is kept with a sample.
#[derive(Debug)]
pub struct Unwinder;

impl Client {
    /// The code of the process, of which nothing is known.
    pub fn native_code(&self) -> Option<NativeCode> {
        Some(NativeCode)
    }
}

#[cfg(test)]
impl NativeCode {
    pub(crate) fn of_nothing() -> Self {
        Self
    }
}

impl NativeCode {
    pub(crate) fn mappings(&self) -> impl Iterator<Item = &CodeMapping> {
        std::iter::empty()
    }

    /// None is known.
    pub fn functions(&self) -> NativeFunctions {
        NativeFunctions
    }

    /// There are no stacks to walk.
    pub fn unwinder(&self) -> Unwinder {
        Unwinder
    }

    /// None of it is generated.
    pub fn has_generated(&self) -> bool {
        false
    }

    /// Nothing changes.
    pub fn refresh(&mut self) {}

    /// None of it is known to be code.
    pub fn chain_of<'a>(&'a mut self, _: &CpuSample<'a>, _: &'a mut Unwinder) -> CodeChain<'a> {
        CodeChain { frames: &[], broken: true }
    }
}

impl NativeFunctions {
    /// None is known.
    pub fn function(&mut self, _: &NativeCode, _: u64) -> Option<CodeFunction> {
        None
    }

    /// None has a name.
    pub fn kernel_function(&mut self, address: u64) -> CodeFunction {
        CodeFunction { start: address, size: 1, name: String::new(), image: "kernel".to_owned(), kind: CodeKind::Kernel }
    }
}
