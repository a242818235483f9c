//! Files of a process, by the path at which we see them.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use super::file::inspect_in;
use super::proc::Proc;

/// Inspects a file. If its path leads through the root directory of a process, links are followed as the process follows them, and nothing on a
/// file system on which another user can block us is accessed.
///
/// # Errors
/// Those of the system; `Unsupported` for such a file system.
pub fn inspect(path: &Path) -> io::Result<Metadata> {
    let proc = Proc::open(Path::new("/proc"))?;
    match proc.split_root(path) {
        Some((pid, below)) => inspect_in(&proc, pid, &below),
        None => path.metadata(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_inspected_through_the_root_of_a_process() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "four").unwrap();
        std::os::unix::fs::symlink(place.path().join("file"), place.path().join("link")).unwrap();
        let root = format!("/proc/{}/root", std::process::id());
        let length = |path: &Path| inspect(path).map(|facts| facts.len()).map_err(|error| error.kind());
        for name in ["file", "link"] {
            let path = place.path().join(name);
            let through = Path::new(&root).join(path.strip_prefix("/").unwrap());
            assert_eq!((length(&path), length(&through)), (Ok(4), Ok(4)), "{name}");
        }
        assert_eq!(length(&Path::new(&root).join("no/such")), Err(io::ErrorKind::NotFound));
    }
}
