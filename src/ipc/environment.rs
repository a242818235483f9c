//! The environment block that follows the reply to `ProcessEnvironment`.

use thiserror::Error;

use super::field::{put_string, read_string};
use crate::wire::{Put, Reader, WireError};

/// Maximum accepted size of an environment block in bytes.
pub const MAX_ENVIRONMENT: u32 = 16 << 20;

/// Maximum accepted number of variables. A variable takes about 100 bytes in memory, but only six in the block.
pub const MAX_VARIABLES: u32 = 1 << 16;

/// An environment variable of the target, unsanitized: sanitize it before printing it to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Variable name.
    pub name: String,
    /// Value; can be a secret.
    pub value: String,
}

/// Reason why an environment block cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EnvironmentError {
    /// The block is longer than [`MAX_ENVIRONMENT`].
    #[error("the runtime announced an environment of {0} bytes; dn-top reads up to {MAX_ENVIRONMENT}")]
    TooBig(u32),
    /// The block has more variables than [`MAX_VARIABLES`].
    #[error("the runtime announced {0} environment variables; dn-top reads up to {MAX_VARIABLES}")]
    TooMany(u32),
    /// The connection ended before the end of the block.
    #[error("the environment was cut off: {missing} bytes are missing")]
    CutOff {
        /// Number of missing bytes.
        missing: usize,
    },
    /// The bytes are not a list of strings.
    #[error("the environment cannot be read: {0}")]
    Malformed(#[from] WireError),
}

/// Returns the number of bytes to receive after a reply that announced an environment block.
///
/// # Errors
/// [`EnvironmentError::TooBig`] if it exceeds [`MAX_ENVIRONMENT`].
pub fn environment_bytes(announced: u32) -> Result<usize, EnvironmentError> {
    if announced > MAX_ENVIRONMENT { Err(EnvironmentError::TooBig(announced)) } else { Ok(announced as usize) }
}

/// Decodes an environment block of `bytes` bytes, as far as received. Returns the variables in the target's order.
///
/// # Errors
/// [`EnvironmentError::CutOff`] if bytes are missing, [`EnvironmentError::TooMany`], or [`EnvironmentError::Malformed`].
pub fn decode_environment(received: &[u8], bytes: usize) -> Result<Vec<Variable>, EnvironmentError> {
    let missing = bytes.saturating_sub(received.len());
    if missing > 0 {
        return Err(EnvironmentError::CutOff { missing });
    }
    let reader = &mut Reader::new(received);
    let count = reader.u32()?;
    if count > MAX_VARIABLES {
        return Err(EnvironmentError::TooMany(count));
    }
    (0..count).map(|_| Ok(Variable::from_entry(&read_string(reader)?.unwrap_or_default()))).collect()
}

/// Encodes an environment block; the reply announces its length.
pub fn encode_environment(variables: &[Variable]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(variables.len() as u32);
    for Variable { name, value } in variables {
        put_string(&mut out, &format!("{name}={value}"));
    }
    out
}

impl Variable {
    /// A leading `=` is part of the name: Windows has variables such as `=C:`.
    fn from_entry(entry: &str) -> Self {
        let skip = usize::from(entry.starts_with('='));
        let split = entry[skip..].find('=').map(|at| at + skip);
        let (name, value) = split.map_or((entry, ""), |at| (&entry[..at], &entry[at + 1..]));
        Self { name: name.to_owned(), value: value.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn variable(name: &str, value: &str) -> Variable {
        Variable { name: name.to_owned(), value: value.to_owned() }
    }

    fn read(bytes: &[u8]) -> Result<Vec<Variable>, EnvironmentError> {
        decode_environment(bytes, bytes.len())
    }

    #[test]
    fn environment_entries_are_split() {
        let table = [
            ("PATH=/bin:/usr/bin", "PATH", "/bin:/usr/bin"),
            ("A=b=c", "A", "b=c"),
            ("EMPTY=", "EMPTY", ""),
            ("=C:=C:\\tmp", "=C:", "C:\\tmp"),
            ("LONELY", "LONELY", ""),
            ("=", "=", ""),
            ("", "", ""),
        ];
        for (entry, name, value) in table {
            assert_eq!(Variable::from_entry(entry), variable(name, value), "{entry}");
        }
    }

    #[test]
    fn environment_block_byte_for_byte() {
        let bytes = encode_environment(&[variable("A", "1")]);
        assert_eq!(bytes, [1, 0, 0, 0, 4, 0, 0, 0, b'A', 0, b'=', 0, b'1', 0, 0, 0]);
        assert_eq!(read(&bytes), Ok(vec![variable("A", "1")]));
        assert_eq!(read(&[0; 4]), Ok(vec![]));
    }

    #[test]
    fn environment_block_limits_are_enforced() {
        assert_eq!(environment_bytes(MAX_ENVIRONMENT), Ok(MAX_ENVIRONMENT as usize));
        assert_eq!(environment_bytes(MAX_ENVIRONMENT + 1), Err(EnvironmentError::TooBig(MAX_ENVIRONMENT + 1)));
        assert_eq!(read(&[0xff; 8]), Err(EnvironmentError::TooMany(u32::MAX)));
        assert!(matches!(read(&[7; 2]), Err(EnvironmentError::Malformed(_))));
        assert!(matches!(read(&[]), Err(EnvironmentError::Malformed(_))));
        assert_eq!(decode_environment(&[0; 4], 6), Err(EnvironmentError::CutOff { missing: 2 }));
    }

    #[test]
    fn too_many_variables_are_an_error() {
        let many = |count: u32| encode_environment(&vec![variable("", ""); count as usize]);
        assert_eq!(read(&many(MAX_VARIABLES)).map(|variables| variables.len()), Ok(MAX_VARIABLES as usize));
        assert_eq!(read(&many(MAX_VARIABLES + 1)), Err(EnvironmentError::TooMany(MAX_VARIABLES + 1)));
    }

    proptest! {
        #[test]
        fn environments_round_trip(values: Vec<String>, behind: Vec<u8>) {
            let variables: Vec<_> = values.iter().enumerate().map(|(i, value)| variable(&format!("V{i}"), &value.replace('\0', ""))).collect();
            let bytes = [encode_environment(&variables), behind].concat();
            prop_assert_eq!(read(&bytes), Ok(variables));
        }

        #[test]
        fn any_bytes_are_safe(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
