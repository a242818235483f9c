//! Method bodies and JIT compilation.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// A method body: code in memory (events 141 and 142, and the first part of 143 and 144). A method can have several bodies, one per tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodBody {
    /// Method ID, the same for all bodies of a method.
    pub method: u64,
    /// Module ID.
    pub module: u64,
    /// Address of the code.
    pub start: u64,
    /// Size of the code, bytes.
    pub size: u32,
    /// Metadata token within the module, 0 for dynamic methods.
    pub token: u32,
    /// Flags: 1 dynamic, 2 generic, 4 shared generic code, 8 jitted; bits 7 to 9 hold the tier.
    pub flags: u32,
}

impl MethodBody {
    /// Returns the tier of the code.
    pub fn tier(&self) -> Tier {
        const JITTED: u32 = 8;
        match self.flags >> 7 & 7 {
            // Precompiled code is flagged as optimized and not jitted.
            2 if self.flags & JITTED == 0 => Tier::ReadyToRun,
            1 => Tier::MinOpt,
            2 => Tier::Optimized,
            3 => Tier::Tier0,
            4 => Tier::Tier1,
            5 => Tier::Osr,
            6 => Tier::Tier0Instrumented,
            7 => Tier::Tier1Instrumented,
            _ => Tier::Unknown,
        }
    }
}

listed! {
/// Optimization tier of compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Unknown; dynamic methods and stubs.
    Unknown => "unknown",
    /// Compiled without optimization and never recompiled, e.g. under a debugger.
    MinOpt => "min-opt",
    /// Compiled with optimization immediately.
    Optimized => "optimized",
    /// Compiled quickly, to be recompiled later.
    Tier0 => "tier 0",
    /// Recompiled with optimization after many calls.
    Tier1 => "tier 1",
    /// Compiled with optimization during a running loop (on-stack replacement).
    Osr => "OSR",
    /// Tier 0 with instrumentation.
    Tier0Instrumented => "tier 0 instr",
    /// Optimized, with instrumentation.
    Tier1Instrumented => "tier 1 instr",
    /// Compiled ahead of time (ReadyToRun).
    ReadyToRun => "R2R",
}
/// Returns a short display name.
pub fn name(self) -> &'static str;
}

impl Payload<'_> for MethodBody {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        method_body(&mut fields)
    }
}

fn method_body(fields: &mut Fields<'_>) -> Option<MethodBody> {
    let (method, module, start) = (fields.u64()?, fields.u64()?, fields.u64()?);
    Some(MethodBody { method, module, start, size: fields.u32()?, token: fields.u32()?, flags: fields.u32()? })
}

/// A method body with the method's names (events 143 and 144).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodVerbose<'a> {
    /// The method body.
    pub body: MethodBody,
    /// Full name of the declaring type, in IL syntax.
    pub namespace: Utf16<'a>,
    /// Method name.
    pub name: Utf16<'a>,
    /// Return type, two spaces, parameters. Not stable for collectible types.
    pub signature: Utf16<'a>,
}

impl<'a> Payload<'a> for MethodVerbose<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let body = method_body(&mut fields)?;
        Some(Self { body, namespace: fields.text()?, name: fields.text()?, signature: fields.text()? })
    }
}

/// JIT compilation of a method starts (event 145, level verbose). It ends with the method load event on the same thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JittingStarted<'a> {
    /// Method ID.
    pub method: u64,
    /// IL size in bytes.
    pub il_size: u32,
    /// Full name of the declaring type.
    pub namespace: Utf16<'a>,
    /// Method name.
    pub name: Utf16<'a>,
}

impl<'a> Payload<'a> for JittingStarted<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (method, _module, _token, il_size) = (fields.u64()?, fields.u64()?, fields.u32()?, fields.u32()?);
        Some(Self { method, il_size, namespace: fields.text()?, name: fields.text()? })
    }
}

/// Background recompilation of methods at a higher tier (events 283 and 284).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundJit {
    /// Number of methods waiting to be recompiled.
    pub pending: u32,
}

impl Payload<'_> for BackgroundJit {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        fields.clr_instance()?;
        Some(Self { pending: fields.u32()? })
    }
}
