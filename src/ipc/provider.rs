//! Providers: what a trace session turns on.

use std::ops::{Deref, DerefMut};

use super::Hresult;
use super::field::{Field, put_string, read_string};
use super::invalid::{Invalid, without_nul};
use crate::wire::{Put, Reader};

/// How much of a provider is delivered: events of this level and below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// As a request: events of **every** level. As an event's level: always on.
    LogAlways = 0,
    /// The process is about to end.
    Critical = 1,
    /// Something failed.
    Error = 2,
    /// Something is not as it should be.
    Warning = 3,
    /// The ordinary course of things.
    Informational = 4,
    /// Everything.
    Verbose = 5,
}

impl Level {
    /// Every level, least first.
    pub const ALL: [Self; 6] = [Self::LogAlways, Self::Critical, Self::Error, Self::Warning, Self::Informational, Self::Verbose];

    /// The wire's number.
    pub fn number(self) -> u32 {
        self as u32
    }
}

impl TryFrom<u32> for Level {
    type Error = Invalid;

    fn try_from(number: u32) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|level| level.number() == number).ok_or(Invalid::Level(number))
    }
}

/// A provider that a session turns on. Its name is not blank, and neither name nor arguments contain a NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    name: String,
    keywords: u64,
    level: Level,
    arguments: Option<String>,
}

impl Provider {
    /// A provider without arguments. A name that no provider has is fine: runtimes take it and nothing comes of it.
    ///
    /// # Errors
    /// [`Invalid::BlankProvider`] and [`Invalid::Nul`].
    pub fn new(name: impl Into<String>, keywords: u64, level: Level) -> Result<Self, Invalid> {
        let name = without_nul(name.into(), "a provider's name")?;
        if name.trim().is_empty() {
            return Err(Invalid::BlankProvider);
        }
        Ok(Self { name, keywords, level, arguments: None })
    }

    /// The same with arguments: `key=value;key="value with ; or ="`. Empty text is no arguments.
    ///
    /// # Errors
    /// [`Invalid::Nul`].
    pub fn with_arguments(mut self, arguments: impl Into<String>) -> Result<Self, Invalid> {
        let arguments = without_nul(arguments.into(), "a provider's arguments")?;
        self.arguments = Some(arguments).filter(|text| !text.is_empty());
        Ok(self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which groups of its events: an event comes if it shares a bit with these or has no keyword.
    pub fn keywords(&self) -> u64 {
        self.keywords
    }

    /// Up to which level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Its argument, where it has one.
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }
}

/// 1 to 1000 providers, of whichever kind a session takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Providers<P = Provider>(Vec<P>);

impl<P> Providers<P> {
    /// More than this are refused by some runtimes and kill others.
    pub const MAX: usize = 1000;

    /// Takes them in their order.
    ///
    /// # Errors
    /// [`Invalid::ProviderCount`] for none, or more than [`Providers::MAX`].
    pub fn new(providers: Vec<P>) -> Result<Self, Invalid> {
        if (1..=Self::MAX).contains(&providers.len()) { Ok(Self(providers)) } else { Err(Invalid::ProviderCount(providers.len())) }
    }

    /// As many of another kind.
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

/// Providers may be changed in place; their number stays.
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
        let count = reader.clone().u32()? as usize;
        if count > Self::MAX {
            return Err(Invalid::ProviderCount(count).into());
        }
        Ok(Self::new(Vec::read(reader)?)?)
    }
}
