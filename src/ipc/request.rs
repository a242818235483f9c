//! Argument types of the dump, profiler and process commands; restricted to values that do not crash a runtime.

use super::Hresult;
use super::field::{Field, enumeration, put_string, read_string};
use super::invalid::{InvalidRequest, without_nul};
use crate::wire::{Put, Reader};

/// A path as seen by the **target**: its working directory, mount namespace and user. Not empty, without NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath(String);

impl TargetPath {
    /// Creates a path from text, unchanged.
    ///
    /// # Errors
    /// [`InvalidRequest::EmptyPath`], because an empty dump path crashes every runtime, or [`InvalidRequest::Nul`].
    pub fn new(path: impl Into<String>) -> Result<Self, InvalidRequest> {
        let path = without_nul(path.into(), "a path")?;
        if path.is_empty() { Err(InvalidRequest::EmptyPath) } else { Ok(Self(path)) }
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Escapes the path for the target's dump program, which expands `%p`, `%e`, `%h` and `%t` and treats any other character after `%` as a
    /// format specifier (createdump 5 and later; that of 3.1 passes the name to printf). In all of them `%%` is a literal `%` (seen on 3.1, 8,
    /// 9 and 10).
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

listed! {
/// Kind of perf map files to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PerfMapKind {
    /// Both kinds.
    All = 1 => "all",
    /// `jit-PID.dump`.
    JitDump = 2 => "jitdump",
    /// `perf-PID.map` and `perfinfo-PID.map`.
    PerfMap = 3 => "perfmap",
}
/// Returns the name used on the command line.
pub fn name(self) -> &'static str;
}

enumeration!(PerfMapKind, INVALID_ARGUMENT);

/// An environment variable name: not empty, without `=` or NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentName(String);

impl EnvironmentName {
    /// Creates a name from text, unchanged. An empty name is rejected although runtimes accept it.
    ///
    /// # Errors
    /// [`InvalidRequest::VariableName`] or [`InvalidRequest::Nul`].
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidRequest> {
        let name = without_nul(name.into(), "a variable's name")?;
        if name.is_empty() || name.contains('=') { Err(InvalidRequest::VariableName) } else { Ok(Self(name)) }
    }

    /// Returns the name as text.
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

/// An environment variable value: any text without NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentValue(String);

impl EnvironmentValue {
    /// Creates a value from text, unchanged.
    ///
    /// # Errors
    /// [`InvalidRequest::Nul`] if it contains a NUL.
    pub fn new(value: impl Into<String>) -> Result<Self, InvalidRequest> {
        without_nul(value.into(), "a variable's value").map(Self)
    }

    /// Returns the value as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The null string, `None`, unsets the variable.
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

/// Opaque data passed to a profiler when it is attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientData(pub Vec<u8>);

impl ClientData {
    /// Maximum size in bytes; more would not fit into a message with the rest of the request.
    pub const MAX_BYTES: usize = 65_000;
}

impl Field for ClientData {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.0.len() as u32);
        out.put(&self.0);
    }

    /// A length beyond the end of the payload means all remaining bytes, as in the runtimes.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let length = reader.u32()? as usize;
        if reader.remaining() > length { Err(Hresult::BAD_ENCODING) } else { Ok(Self(reader.take(reader.remaining())?.to_vec())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{BufferMb, Level, Provider, Providers};

    /// No request whose values crash or hang a runtime can be created. The other cause, a missing or superfluous payload, is ruled out by the
    /// fields of each command's type.
    #[test]
    fn dangerous_request_values_are_rejected() {
        let provider = Provider::new("P", 0, Level::Verbose).unwrap();
        assert_eq!(BufferMb::new(0), Err(InvalidRequest::EmptyBuffer));
        assert_eq!(Providers::<Provider>::new(vec![]), Err(InvalidRequest::ProviderCount(0)));
        assert_eq!(Providers::new(vec![provider.clone(); 1001]), Err(InvalidRequest::ProviderCount(1001)));
        assert_eq!(Providers::new(vec![provider.clone(); 1000]).map(|all| all.len()), Ok(1000));
        assert_eq!(Level::try_from(6), Err(InvalidRequest::Level(6)));
        for blank in ["", " ", "\t\n"] {
            assert_eq!(Provider::new(blank, 0, Level::Verbose), Err(InvalidRequest::BlankProvider));
        }
        assert_eq!(Provider::new("A\0B", 0, Level::Verbose), Err(InvalidRequest::Nul("a provider's name")));
        assert_eq!(provider.with_arguments("a=\0"), Err(InvalidRequest::Nul("a provider's arguments")));
        assert_eq!(TargetPath::new(""), Err(InvalidRequest::EmptyPath));
        assert_eq!(TargetPath::new("/tmp/\0"), Err(InvalidRequest::Nul("a path")));
        for name in ["", "=", "A=B"] {
            assert_eq!(EnvironmentName::new(name), Err(InvalidRequest::VariableName));
        }
        assert_eq!(EnvironmentName::new("A\0"), Err(InvalidRequest::Nul("a variable's name")));
        assert_eq!(EnvironmentValue::new("\0"), Err(InvalidRequest::Nul("a variable's value")));
    }
}
