//! Values of the dump, profiler and process commands that a runtime survives.

use super::Hresult;
use super::field::{Field, put_string, read_string};
use super::invalid::{Invalid, without_nul};
use crate::wire::{Put, Reader};

/// A path as the **target** sees it: its working directory, mount namespace and user. Never empty, no NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath(String);

impl TargetPath {
    /// Takes the text as it is.
    ///
    /// # Errors
    /// [`Invalid::EmptyPath`], which kills every runtime when it is a dump's, and [`Invalid::Nul`].
    pub fn new(path: impl Into<String>) -> Result<Self, Invalid> {
        let path = without_nul(path.into(), "a path")?;
        if path.is_empty() { Err(Invalid::EmptyPath) } else { Ok(Self(path)) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same path for the target's dump program, which expands `%p`, `%e`, `%h` and `%t`, and formats by whatever else follows a `%` (createdump of
    /// 5 and later; that of 3.1 hands the name to printf). For all of them `%%` is one `%` (seen on 3.1, 8, 9 and 10).
    pub(super) fn escaped(&self) -> Self {
        Self(self.0.replace('%', "%%"))
    }
}

impl Field for TargetPath {
    fn write(&self, out: &mut Vec<u8>) {
        put_string(out, &self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self::new(read_string(reader)?.unwrap_or_default())?)
    }
}

/// Which perf map files the runtime writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PerfMapKind {
    /// Both kinds.
    All = 1,
    /// `jit-PID.dump`.
    JitDump = 2,
    /// `perf-PID.map` and `perfinfo-PID.map`.
    PerfMap = 3,
}

impl PerfMapKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::All, Self::JitDump, Self::PerfMap];

    /// The word of the command line contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::JitDump => "jitdump",
            Self::PerfMap => "perfmap",
        }
    }
}

impl Field for PerfMapKind {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(*self as u32);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let number = reader.u32()?;
        Self::ALL.into_iter().find(|kind| *kind as u32 == number).ok_or(Hresult::INVALID_ARGUMENT)
    }
}

/// The name of an environment variable: not empty, no `=`, no NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentName(String);

impl EnvironmentName {
    /// Takes the text as it is. Runtimes accept an empty name; nothing good can come of it.
    ///
    /// # Errors
    /// [`Invalid::VariableName`] and [`Invalid::Nul`].
    pub fn new(name: impl Into<String>) -> Result<Self, Invalid> {
        let name = without_nul(name.into(), "a variable's name")?;
        if name.is_empty() || name.contains('=') { Err(Invalid::VariableName) } else { Ok(Self(name)) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Field for EnvironmentName {
    fn write(&self, out: &mut Vec<u8>) {
        put_string(out, &self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self::new(read_string(reader)?.unwrap_or_default())?)
    }
}

/// The value of an environment variable: anything without a NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentValue(String);

impl EnvironmentValue {
    /// Takes the text as it is.
    ///
    /// # Errors
    /// [`Invalid::Nul`].
    pub fn new(value: impl Into<String>) -> Result<Self, Invalid> {
        without_nul(value.into(), "a variable's value").map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `None`, the null string, unsets the variable.
impl Field for Option<EnvironmentValue> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            None => out.put_u32(0),
            Some(value) => put_string(out, &value.0),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(read_string(reader)?.map(EnvironmentValue::new).transpose()?)
    }
}

/// What a profiler is handed when it is attached: bytes that only it understands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientData(pub Vec<u8>);

impl ClientData {
    /// More bytes would not fit a message beside the rest of the request.
    pub const MOST: usize = 65_000;
}

impl Field for ClientData {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.0.len() as u32);
        out.put(&self.0);
    }

    /// A length beyond what is there is taken for all that is there, as in the runtimes.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let length = reader.u32()? as usize;
        if reader.remaining() > length { Err(Hresult::BAD_ENCODING) } else { Ok(Self(reader.take(reader.remaining())?.to_vec())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{BufferMb, Level, Provider, Providers};

    /// Every request that kills or wedges a runtime by its values has no value here. What else does so, an empty payload or one too many, has
    /// no way to be written: each command's fields are its type.
    #[test]
    fn dangerous_values_cannot_be_made() {
        let provider = Provider::new("P", 0, Level::Verbose).unwrap();
        assert_eq!(BufferMb::new(0), Err(Invalid::EmptyBuffer));
        assert_eq!(Providers::<Provider>::new(vec![]), Err(Invalid::ProviderCount(0)));
        assert_eq!(Providers::new(vec![provider.clone(); 1001]), Err(Invalid::ProviderCount(1001)));
        assert_eq!(Providers::new(vec![provider.clone(); 1000]).map(|all| all.len()), Ok(1000));
        assert_eq!(Level::try_from(6), Err(Invalid::Level(6)));
        for blank in ["", " ", "\t\n"] {
            assert_eq!(Provider::new(blank, 0, Level::Verbose), Err(Invalid::BlankProvider));
        }
        assert_eq!(Provider::new("A\0B", 0, Level::Verbose), Err(Invalid::Nul("a provider's name")));
        assert_eq!(provider.with_arguments("a=\0"), Err(Invalid::Nul("a provider's arguments")));
        assert_eq!(TargetPath::new(""), Err(Invalid::EmptyPath));
        assert_eq!(TargetPath::new("/tmp/\0"), Err(Invalid::Nul("a path")));
        for name in ["", "=", "A=B"] {
            assert_eq!(EnvironmentName::new(name), Err(Invalid::VariableName));
        }
        assert_eq!(EnvironmentName::new("A\0"), Err(Invalid::Nul("a variable's name")));
        assert_eq!(EnvironmentValue::new("\0"), Err(Invalid::Nul("a variable's value")));
    }
}
