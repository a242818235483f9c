//! Facts about processes and users that the process list does not provide.

use std::io;
use std::time::Duration;

use foldhash::HashMap;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind, get_current_pid};
use winsafe::{ConvertStringSidToSid, FILETIME, GetSystemTimes, HPROCESS, HPROCESSLIST, LookupAccountSid, TokenInfo, co};

/// Nanoseconds per unit of a file time.
const FILE_TIME_NS: u64 = 100;

/// The modules of the process changed while they were listed: to be tried again (`ERROR_BAD_LENGTH`, `CreateToolhelp32Snapshot`).
const BAD_LENGTH: u32 = 24;
/// Maximum number of attempts: a process that is starting loads one module after the other.
const MAX_SNAPSHOTS: usize = 16;

/// Converts a Windows error to an error of the standard library.
pub(super) fn failed(error: co::ERROR) -> io::Error {
    io::Error::from_raw_os_error(error.raw().cast_signed())
}

/// Returns the number of threads of each process (Tool Help Library, `PROCESSENTRY32`).
pub(super) fn thread_counts() -> HashMap<u32, u32> {
    let Ok(mut list) = HPROCESSLIST::CreateToolhelp32Snapshot(co::TH32CS::SNAPPROCESS, None) else { return HashMap::default() };
    list.iter_processes().map_while(Result::ok).map(|entry| (entry.th32ProcessID, entry.cntThreads)).collect()
}

/// Whether a library with this file name is loaded into a process (Tool Help Library, `MODULEENTRY32`).
pub(super) fn has_module(pid: u32, name: &str) -> bool {
    let modules = co::TH32CS::SNAPMODULE | co::TH32CS::SNAPMODULE32;
    let mut attempts = (0..MAX_SNAPSHOTS).map(|_| HPROCESSLIST::CreateToolhelp32Snapshot(modules, Some(pid)));
    let taken = attempts.find(|taken| !matches!(taken, Err(error) if error.raw() == BAD_LENGTH));
    let Some(Ok(mut list)) = taken else { return false };
    list.iter_modules().map_while(Result::ok).any(|module| module.szModule().eq_ignore_ascii_case(name))
}

/// Whether a process runs with administrator rights (`TOKEN_ELEVATION`); `None` if we may not query it.
pub(super) fn is_elevated(pid: u32) -> Option<bool> {
    let process = HPROCESS::OpenProcess(co::PROCESS::QUERY_LIMITED_INFORMATION, false, pid).ok()?;
    let token = process.OpenProcessToken(co::TOKEN::QUERY).ok()?;
    match token.GetTokenInformation(co::TOKEN_INFORMATION_CLASS::Elevation).ok()? {
        TokenInfo::Elevation(elevation) => Some(elevation.TokenIsElevated()),
        _ => None,
    }
}

/// Returns the peak resident memory of a process, in bytes (`PROCESS_MEMORY_COUNTERS`).
pub(super) fn peak_memory(pid: u32) -> io::Result<u64> {
    let rights = co::PROCESS::QUERY_INFORMATION | co::PROCESS::VM_READ;
    let process = HPROCESS::OpenProcess(rights, false, pid).map_err(failed)?;
    process.GetProcessMemoryInfo().map(|memory| memory.PeakWorkingSetSize as u64).map_err(failed)
}

/// Returns the private writable memory of a process, in bytes: `sysinfo` calls `PrivateUsage` its virtual memory.
pub(super) fn private_memory(process: &sysinfo::Process) -> u64 {
    process.virtual_memory()
}

/// Returns the non-idle time of all processors together since boot (`GetSystemTimes`).
pub(super) fn machine_busy() -> io::Result<Duration> {
    let (idle, kernel, user) = GetSystemTimes().map_err(failed)?;
    let nanoseconds = |time: FILETIME| u64::from(time).saturating_mul(FILE_TIME_NS);
    // Kernel time includes idle time.
    let busy = nanoseconds(kernel).saturating_add(nanoseconds(user)).saturating_sub(nanoseconds(idle));
    Ok(Duration::from_nanos(busy))
}

/// Returns the user of a process as a security identifier.
pub(super) fn account_of(process: &sysinfo::Process) -> Option<String> {
    process.user_id().map(|sid| sid.to_string())
}

/// Returns the name of an account without its domain. Blocks, for seconds if a domain does not respond.
pub(super) fn account_name(sid: &str) -> Option<String> {
    let sid = ConvertStringSidToSid(sid).ok()?;
    LookupAccountSid(None, &sid).ok().map(|(name, _, _)| name)
}

/// Returns the security identifier of our user, such as `S-1-5-21-1-2-3-1001`.
pub(super) fn account() -> io::Result<String> {
    let pid = get_current_pid().map_err(io::Error::other)?;
    let mut system = System::new();
    let user = ProcessRefreshKind::nothing().with_user(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, user);
    let sid = system.process(pid).and_then(|process| process.user_id()).map(|sid| sid.to_string());
    sid.ok_or_else(|| io::Error::other("the user that this program runs as cannot be determined"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::user;

    #[test]
    fn own_process_details_are_read() {
        let pid = std::process::id();
        assert!(thread_counts()[&pid] >= 1);
        assert!(has_module(pid, "KERNEL32.DLL") && !has_module(pid, "none.dll"));
        assert!(is_elevated(pid).is_some() && is_elevated(u32::MAX - 3).is_none());
        assert!(peak_memory(pid).unwrap() > 1 << 20 && peak_memory(u32::MAX - 3).is_err());
        let before = machine_busy().unwrap();
        assert!(before > Duration::ZERO && machine_busy().unwrap() >= before);
    }

    #[test]
    fn account_names_are_resolved() {
        assert_eq!(account_name("S-1-5-18").as_deref(), Some("SYSTEM"));
        let ours = account().unwrap();
        assert!(ours.starts_with("S-1-5-") && account_name(&ours) == Some(user::name()), "{ours}");
        assert_eq!((account_name("S-1-5-21-1-2-3-4"), account_name("x")), (None, None));
    }
}
