//! Exceptions.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// An exception is thrown (event 80).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceptionThrown<'a> {
    /// Full name of the exception type.
    pub type_name: Utf16<'a>,
    /// Message; can be empty.
    pub message: Utf16<'a>,
    /// HRESULT of the exception.
    pub hresult: u32,
    /// Flags: 1 has an inner exception, 2 nested (thrown while another was handled), 4 rethrown, 8 corrupted state, 0x10 CLS-compliant.
    pub flags: u16,
}

impl ExceptionThrown<'_> {
    /// Returns whether the exception was caught before and is rethrown.
    pub fn is_rethrown(&self) -> bool {
        self.flags & 4 != 0
    }
}

impl<'a> Payload<'a> for ExceptionThrown<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (type_name, message) = (fields.text()?, fields.text()?);
        let _address = fields.pointer()?;
        Some(Self { type_name, message, hresult: fields.u32()?, flags: fields.u16()? })
    }
}
