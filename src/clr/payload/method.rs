//! Method bodies and their compilation.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// A body of a method: code in memory (events 141 and 142, and the start of those with names). A method can have several, one for each tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodBody {
    /// The method. All bodies of one have the same.
    pub method: u64,
    /// Its module.
    pub module: u64,
    /// Address of the code.
    pub start: u64,
    /// Size of the code, bytes.
    pub size: u32,
    /// Its metadata token within the module, 0 for dynamic methods.
    pub token: u32,
    /// 1 dynamic, 2 generic, 4 shared generic code, 8 compiled at run time; bits 7 to 9 the tier.
    pub flags: u32,
}

impl MethodBody {
    /// How the code was made.
    pub fn tier(&self) -> Tier {
        const JITTED: u32 = 8;
        match self.flags >> 7 & 7 {
            // Precompiled code is marked as optimised, and that it was not compiled at run time.
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

/// How code was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Not known; dynamic methods and stubs.
    Unknown,
    /// Compiled without optimisation for good, as for a debugger.
    MinOpt,
    /// Compiled with optimisation at once.
    Optimized,
    /// Compiled quickly, to be compiled again.
    Tier0,
    /// Compiled with optimisation after many calls.
    Tier1,
    /// Compiled with optimisation while a loop of it ran.
    Osr,
    /// Compiled quickly, and counts what it does.
    Tier0Instrumented,
    /// Optimised, and counts what it does.
    Tier1Instrumented,
    /// Compiled before the program was started.
    ReadyToRun,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::MinOpt,
        Self::Optimized,
        Self::Tier0,
        Self::Tier1,
        Self::Osr,
        Self::Tier0Instrumented,
        Self::Tier1Instrumented,
        Self::ReadyToRun,
    ];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::MinOpt => "min-opt",
            Self::Optimized => "optimized",
            Self::Tier0 => "tier 0",
            Self::Tier1 => "tier 1",
            Self::Osr => "OSR",
            Self::Tier0Instrumented => "tier 0 instr",
            Self::Tier1Instrumented => "tier 1 instr",
            Self::ReadyToRun => "R2R",
        }
    }
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

/// A body of a method with the method's names (events 143 and 144).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodVerbose<'a> {
    /// The body.
    pub body: MethodBody,
    /// Full name of its type, in the style of IL.
    pub namespace: Utf16<'a>,
    /// Its own name.
    pub name: Utf16<'a>,
    /// Return type, two spaces, parameters. Not stable for types that can be unloaded.
    pub signature: Utf16<'a>,
}

impl<'a> Payload<'a> for MethodVerbose<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let body = method_body(&mut fields)?;
        Some(Self { body, namespace: fields.text()?, name: fields.text()?, signature: fields.text()? })
    }
}

/// A method begins to be compiled (event 145, level verbose). The event that its body appeared, on the same thread, is the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JittingStarted<'a> {
    /// The method.
    pub method: u64,
    /// Size of its IL, bytes.
    pub il_size: u32,
    /// Full name of its type.
    pub namespace: Utf16<'a>,
    /// Its own name.
    pub name: Utf16<'a>,
}

impl<'a> Payload<'a> for JittingStarted<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (method, _module, _token, il_size) = (fields.u64()?, fields.u64()?, fields.u32()?, fields.u32()?);
        Some(Self { method, il_size, namespace: fields.text()?, name: fields.text()? })
    }
}

/// Methods are compiled again, better, beside the program (events 283 and 284).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundJit {
    /// Methods that wait for it.
    pub pending: u32,
}

impl Payload<'_> for BackgroundJit {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        fields.clr_instance()?;
        Some(Self { pending: fields.u32()? })
    }
}
