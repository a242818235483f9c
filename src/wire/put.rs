//! Little-endian writing.

/// Defines methods that append a number.
macro_rules! numbers {
    ($($name:ident $type:ident),+) => {
        $(
            #[doc = concat!("Appends a little-endian `", stringify!($type), "`.")]
            fn $name(&mut self, value: $type) {
                self.put(&value.to_le_bytes());
            }
        )+
    };
}

/// Appends little-endian values to a buffer.
pub trait Put {
    /// Appends bytes unchanged.
    fn put(&mut self, bytes: &[u8]);

    numbers! { put_u8 u8, put_u16 u16, put_u32 u32, put_u64 u64, put_i32 i32, put_i64 i64, put_f64 f64 }

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
