//! Little-endian writing.

/// Appends little-endian values to a buffer.
pub trait Put {
    /// Appends bytes unchanged.
    fn put(&mut self, bytes: &[u8]);

    /// Appends a byte.
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends a 16-bit integer.
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a 32-bit integer.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a 64-bit integer.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a signed 32-bit integer.
    fn put_i32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a signed 64-bit integer.
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a 64-bit floating-point number.
    fn put_f64(&mut self, value: f64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a variable-length integer, 7 bits per byte, least significant first.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }

    /// Appends UTF-16 code units and a NUL.
    fn put_utf16z(&mut self, text: &str) {
        for unit in text.encode_utf16() {
            self.put_u16(unit);
        }
        self.put_u16(0);
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
