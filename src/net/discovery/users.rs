//! User names.

use std::collections::HashMap;
use std::path::Path;

use crate::model::SafeText;

/// User names by user id, from a file in the format of `/etc/passwd`. Users known only to a directory service have no name here.
#[derive(Debug, Default)]
pub(super) struct Users(HashMap<u32, SafeText>);

impl Users {
    pub(super) fn read(path: &Path) -> Self {
        let text = std::fs::read(path).unwrap_or_default();
        // If two names share an id the first one wins, so it is inserted last.
        Self(String::from_utf8_lossy(&text).lines().rev().filter_map(entry).collect())
    }

    pub(super) fn name(&self, uid: u32) -> Option<&SafeText> {
        self.0.get(&uid)
    }
}

/// `name:password:uid:...`
fn entry(line: &str) -> Option<(u32, SafeText)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty() && !name.starts_with('#'))?;
    Some((fields.nth(1)?.parse().ok()?, name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_passwd_lines_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("passwd");
        std::fs::write(&path, "root:x:0:0:root:/root:/bin/sh\n# a comment:x:1:\n\n+@nis\nbad:x:minus\napp:x:1000:1000::/:\n").unwrap();
        let users = Users::read(&path);
        assert_eq!([0, 1000, 1].map(|uid| users.name(uid).map(SafeText::as_str)), [Some("root"), Some("app"), None]);
        assert_eq!(Users::read(Path::new("/nonexistent")).name(0), None);
    }
}
