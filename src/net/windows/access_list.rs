//! Access control lists of files, in their memory layout (Windows, "ACL", "ACCESS_ALLOWED_ACE", "SID").

/// `ACL_REVISION`, `ACCESS_ALLOWED_ACE_TYPE` and the revision of a security identifier.
const LIST: u32 = 2;
const ALLOWED: u32 = 0;
const IDENTIFIER: u32 = 1;
/// `FILE_ALL_ACCESS`.
const EVERYTHING: u32 = 0x001f_01ff;
/// Size in bytes of a list without entries, and of an entry without the subauthorities of its user.
const HEAD: u32 = 8;
const ENTRY: u32 = 16;

/// Returns a list that grants full access to one user and none to others; `None` if `sid` is not a security identifier (`S-1-5-21-1-2-3-1001`).
pub(super) fn for_user_only(sid: &str) -> Option<Vec<u32>> {
    let mut numbers = sid.strip_prefix("S-1-")?.split('-').map(str::parse::<u32>);
    let authority = numbers.next()?.ok()?.to_be_bytes();
    let user = numbers.collect::<Result<Vec<u32>, _>>().ok().filter(|user| user.len() <= 15)?;
    let count = user.len() as u32;
    let entry = ENTRY + 4 * count;
    let mut list = vec![
        LIST | (HEAD + entry) << 16,
        1,
        ALLOWED | entry << 16,
        EVERYTHING,
        // The authority has six bytes, of which the first two are zero here.
        IDENTIFIER | count << 8,
        u32::from_le_bytes(authority),
    ];
    list.extend(user);
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_list_grants_full_access_to_one_user() {
        let list = for_user_only("S-1-5-21-1-2-3-1001").unwrap();
        let bytes: Vec<u8> = list.iter().flat_map(|word| word.to_le_bytes()).collect();
        let expected = [
            &[2, 0, 44, 0, 1, 0, 0, 0][..],
            &[0, 0, 36, 0, 0xff, 0x01, 0x1f, 0],
            &[1, 5, 0, 0, 0, 0, 0, 5],
            &[21, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0xe9, 3, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
        for wrong in ["", "S-1-", "S-1-5-x", "S-2-5-1", "S-1-5--1", &format!("S-1-5{}", "-1".repeat(16))] {
            assert_eq!(for_user_only(wrong), None, "{wrong}");
        }
    }
}
