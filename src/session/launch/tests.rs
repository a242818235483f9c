#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use super::*;

#[test]
fn ports_that_were_asked_for_stay() {
    // Tests share one environment, so only the start of the value is checked.
    let value = ports(Path::new("/tmp/p"), "suspend");
    assert!(value.to_str().unwrap().starts_with("/tmp/p,suspend,connect"), "{value:?}");
    assert!(short_folder().as_os_str().len() <= MAX_FOLDER_BYTES);
}
