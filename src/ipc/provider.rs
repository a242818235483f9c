//! Providers of a trace session.

use std::ops::{Deref, DerefMut};

use super::Hresult;
use super::field::{Field, put_string, read_string};
use super::invalid::{InvalidRequest, without_nul};
use crate::wire::{Put, Reader};

listed! {
/// Event level; enabling a level includes all lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// In a request: events of **every** level. In an event: always logged.
    LogAlways = 0 => "logalways",
    /// The process is about to terminate.
    Critical = 1 => "critical",
    /// An error.
    Error = 2 => "error",
    /// A warning.
    Warning = 3 => "warning",
    /// Normal operation.
    Informational = 4 => "informational",
    /// Everything, including details.
    Verbose = 5 => "verbose",
}
/// Returns the name used by dotnet-trace and on the command line.
pub fn name(self) -> &'static str;
}

impl Level {
    /// Returns the number used in the protocol.
    pub fn number(self) -> u32 {
        self as u32
    }
}

impl TryFrom<u32> for Level {
    type Error = InvalidRequest;

    fn try_from(number: u32) -> Result<Self, InvalidRequest> {
        Self::ALL.into_iter().find(|level| level.number() == number).ok_or(InvalidRequest::Level(number))
    }
}

/// A provider to enable in a session. The name is not blank, and neither name nor arguments contain a NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    name: String,
    keywords: u64,
    level: Level,
    arguments: Option<String>,
}

impl Provider {
    /// Creates a provider without arguments. Unknown names are valid: runtimes accept them, without any events.
    ///
    /// # Errors
    /// [`InvalidRequest::BlankProvider`] or [`InvalidRequest::Nul`].
    pub fn new(name: impl Into<String>, keywords: u64, level: Level) -> Result<Self, InvalidRequest> {
        let name = without_nul(name.into(), "a provider's name")?;
        if name.trim().is_empty() {
            return Err(InvalidRequest::BlankProvider);
        }
        Ok(Self { name, keywords, level, arguments: None })
    }

    /// Sets the arguments: `key=value;key="value with ; or ="`. Empty text means no arguments.
    ///
    /// # Errors
    /// [`InvalidRequest::Nul`] if they contain a NUL.
    pub fn with_arguments(mut self, arguments: impl Into<String>) -> Result<Self, InvalidRequest> {
        let arguments = without_nul(arguments.into(), "a provider's arguments")?;
        self.arguments = Some(arguments).filter(|text| !text.is_empty());
        Ok(self)
    }

    /// Returns the provider name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the enabled keywords: an event is included if it shares a bit with them or has no keyword.
    pub fn keywords(&self) -> u64 {
        self.keywords
    }

    /// Returns the enabled level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the arguments, if any.
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }
}

/// A list of 1 to 1000 providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Providers<P = Provider>(Vec<P>);

impl<P> Providers<P> {
    /// Maximum number; some runtimes reject more, others crash.
    pub const MAX: usize = 1000;

    /// Creates a list in the given order.
    ///
    /// # Errors
    /// [`InvalidRequest::ProviderCount`] if empty or longer than [`Providers::MAX`].
    pub fn new(providers: Vec<P>) -> Result<Self, InvalidRequest> {
        if (1..=Self::MAX).contains(&providers.len()) { Ok(Self(providers)) } else { Err(InvalidRequest::ProviderCount(providers.len())) }
    }

    /// Converts each provider with `change`.
    pub fn map<Q>(self, change: impl FnMut(P) -> Q) -> Providers<Q> {
        Providers(self.0.into_iter().map(change).collect())
    }
}

impl<P> From<P> for Providers<P> {
    fn from(provider: P) -> Self {
        Self(vec![provider])
    }
}

impl<P> Deref for Providers<P> {
    type Target = [P];

    fn deref(&self) -> &[P] {
        &self.0
    }
}

/// Providers can be changed in place, but not added or removed.
impl<P> DerefMut for Providers<P> {
    fn deref_mut(&mut self) -> &mut [P] {
        &mut self.0
    }
}

impl Field for Provider {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u64(self.keywords);
        out.put_u32(self.level.number());
        put_string(out, &self.name);
        self.arguments.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let (keywords, level) = (reader.u64()?, Level::try_from(reader.u32()?)?);
        let (name, arguments) = (read_string(reader)?.unwrap_or_default(), read_string(reader)?.unwrap_or_default());
        Ok(Self::new(name, keywords, level)?.with_arguments(arguments)?)
    }
}

impl<P: Field> Field for Providers<P> {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self::new(Vec::read(reader)?)?)
    }
}
