//! Methods in which a thread does nothing but wait.

/// Whether a thread whose leaf is this method, and which is in native code, waits.
pub(super) fn waits(namespace: &str, name: &str) -> bool {
    WAITS.iter().any(|(types, names)| types.contains(&namespace) && names.iter().any(|prefix| name.starts_with(prefix)))
}

/// Types, and how their methods that wait begin.
const WAITS: &[(&[&str], &[&str])] = &[
    (&["System.Threading.Thread"], &["Sleep", "Join"]),
    (&["System.Threading.WaitHandle"], &["WaitOne", "WaitMultiple", "SignalAndWait", "WaitAny", "WaitAll"]),
    (&["System.Threading.Monitor"], &["Wait", "ObjWait", "Enter", "ReliableEnter", "TryEnter", "ReliableEnterTimeout"]),
    (&["System.Threading.Lock", "System.Threading.Condition"], &["Enter", "TryEnter", "Wait"]),
    (
        &["System.Threading.LowLevelLifoSemaphore", "System.Threading.LowLevelMonitor", "System.Threading.WaitSubsystem"],
        &["Wait", "Acquire"],
    ),
    (&["System.Threading.ManualResetEventSlim", "System.Threading.SemaphoreSlim", "System.Threading.CountdownEvent"], &["Wait"]),
    (&["System.Threading.SpinWait"], &["SpinOnce"]),
    // Calls into the system. Runtimes before .NET 5 have no frame for those, but for the method that calls.
    (
        &["Interop+Sys"],
        &["WaitForSocketEvents", "LowLevelMonitor_", "Poll", "Select", "Accept", "Receive", "Read", "WaitPid", "WaitIdAnyExited"],
    ),
    (&["System.ConsolePal"], &["Read"]),
    (&["System.Net.Sockets.SocketAsyncEngine"], &["EventLoop"]),
];
