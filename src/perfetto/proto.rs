//! A minimal encoder of protocol buffers: a message is bytes in a vector, and writing one requires no schema.

/// Appends the fields of a message to a buffer. Allocates only when the buffer grows.
#[derive(Debug)]
pub struct Message<'a>(&'a mut Vec<u8>);

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;

impl<'a> Message<'a> {
    /// Creates a message whose fields are appended to the buffer.
    pub fn new(buffer: &'a mut Vec<u8>) -> Self {
        Self(buffer)
    }

    /// Returns the bytes of a message.
    pub fn encode(fill: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        fill(&mut Message(&mut bytes));
        bytes
    }

    /// Writes an unsigned integer, a boolean or an enumeration.
    #[inline]
    pub fn uint(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    /// Writes a signed integer of type `int32` or `int64`.
    #[inline]
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value as u64);
    }

    /// Writes a `fixed64`.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// Writes a string or bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Writes a string.
    pub fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Writes fields that are already encoded.
    pub fn fields(&mut self, encoded: &[u8]) {
        self.0.extend_from_slice(encoded);
    }

    /// Writes a nested message.
    #[inline]
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message<'_>)) {
        self.key(field, BYTES);
        let at = self.0.len();
        // The length of nearly every message fits in one byte; a longer message is moved.
        self.0.push(0);
        fill(&mut Message(self.0));
        let size = self.0.len() - at - 1;
        if size < 0x80 {
            self.0[at] = size as u8;
            return;
        }
        // The length is first written after the message, to encode it; then the two are swapped.
        let end = self.0.len();
        self.varint(size as u64);
        let more = self.0.len() - end - 1;
        let mut length = [0; 10];
        length[..=more].copy_from_slice(&self.0[end..]);
        self.0.truncate(end + more);
        self.0.copy_within(at + 1..end, at + 1 + more);
        self.0[at..=at + more].copy_from_slice(&length[..=more]);
    }

    /// Writes the integers of a packed repeated field.
    pub fn packed(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        self.message(field, |message| values.for_each(|value| message.varint(value)));
    }

    #[inline]
    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the protocol buffers documentation ("Encoding"): 150 in field 1, "testing" in field 2, a message in field 3, packed
    /// integers in field 6.
    #[test]
    fn fields_are_encoded_as_documented() {
        let mut bytes = Vec::new();
        let mut message = Message::new(&mut bytes);
        message.uint(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.uint(1, 150));
        message.packed(6, [3, 270, 86_942].into_iter());
        message.int(1, -2);
        message.double(1, 1.0);
        let expected = "089601 120774657374696e67 1a03089601 3206038e029ea705 08feffffffffffffffff01 09000000000000f03f";
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.replace(' ', ""));
    }

    #[test]
    fn long_messages_have_multi_byte_lengths() {
        let mut bytes = Vec::new();
        Message::new(&mut bytes).message(1, |outer| {
            outer.message(2, |inner| inner.bytes(3, &[7; 300]));
            outer.uint(4, 1);
        });
        let inner = [&[0x1a, 0xac, 0x02][..], &[7; 300]].concat();
        let outer = [&[0x12, 0xaf, 0x02][..], &inner, &[0x20, 1]].concat();
        assert_eq!(bytes, [&[0x0a, 0xb4, 0x02][..], &outer].concat());
    }
}
