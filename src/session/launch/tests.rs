#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use super::*;

#[test]
fn existing_diagnostic_ports_are_kept() {
    // Tests share one environment, so only the start of the value is checked.
    let value = ports(Path::new("/tmp/p"), "suspend");
    assert!(value.to_str().unwrap().starts_with("/tmp/p,suspend,connect"), "{value:?}");
}
