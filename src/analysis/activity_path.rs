//! Activity IDs of event sources. Each contains the path from the outermost activity to this one, as half bytes, and a checksum of it
//! (`ActivityTracker.CreateActivityPathGuid` of .NET).

/// Bytes of the path; the others are the checksum.
const PATH: usize = 12;
/// Added to the words of the path for the checksum.
const CHECKSUM_BASE: u32 = 0x599d_99ad;

/// Returns the IDs of the activities around this one, the innermost first, and IDs that no activity has: the elements of a path have different
/// lengths, so it is cut off after each half byte.
pub(super) fn enclosing(id: [u8; 16]) -> impl Iterator<Item = [u8; 16]> {
    // The checksum also contains the process ID.
    let key = sum(&id) ^ word(&id, PATH);
    (1..2 * PATH).rev().map(move |length| {
        let mut outer = [0; 16];
        outer[..length / 2].copy_from_slice(&id[..length / 2]);
        if length % 2 == 1 {
            outer[length / 2] = id[length / 2] & 0xf0;
        }
        let checksum = sum(&outer) ^ key;
        outer[PATH..].copy_from_slice(&checksum.to_le_bytes());
        outer
    })
}

fn sum(id: &[u8; 16]) -> u32 {
    (0..PATH).step_by(4).fold(CHECKSUM_BASE, |sum, at| sum.wrapping_add(word(id, at)))
}

fn word(id: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes([id[at], id[at + 1], id[at + 2], id[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a web server that was recorded with .NET 9.
    const PROCESS_ID: u32 = 0x2283;

    /// A request on a connection of that server, and a log scope in it.
    #[test]
    fn enclosing_activities_are_found() {
        let id = |path: &[u8]| {
            let mut id = [0; 16];
            id[..path.len()].copy_from_slice(path);
            let checksum = sum(&id) ^ PROCESS_ID;
            id[PATH..].copy_from_slice(&checksum.to_le_bytes());
            id
        };
        let around = |path: &[u8]| enclosing(id(path)).collect::<Vec<_>>();
        let scope = around(&[0x1c, 0xbd, 0x11, 0x11]);
        for outer in [&[0x1c, 0xbd, 0x11, 0x10][..], &[0x1c, 0xbd, 0x11], &[0x1c, 0xbd, 0x10], &[0x1c, 0xbd]] {
            assert!(scope.contains(&id(outer)), "{outer:x?}");
        }
        for other in [&[0x1c, 0xbd, 0x12][..], &[0x1c, 0xbe], &[0x1c, 0xbd, 0x11, 0x11, 0x10]] {
            assert!(!scope.contains(&id(other)), "{other:x?}");
        }
        let position = |outer: &[u8]| scope.iter().position(|found| *found == id(outer));
        assert!(position(&[0x1c, 0xbd, 0x11, 0x10]) < position(&[0x1c, 0xbd]));
        // As in the recording.
        assert_eq!(id(&[0x1c, 0xbd, 0x11, 0x10])[PATH..], [0x4a, 0x74, 0xaf, 0x69]);
        assert_eq!(enclosing([0xff; 16]).count(), 23);
    }
}
