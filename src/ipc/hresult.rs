//! HRESULTs: result codes in the replies of a runtime.

use std::fmt;

/// A result code of a runtime. Displayed with its symbolic name if known: `DS_IPC_E_UNKNOWN_COMMAND (0x80131385)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hresult(pub u32);

/// The table of constants, names and explanations.
macro_rules! hresults {
    ($($constant:ident = $value:literal, $name:literal, $explanation:literal;)+) => {
        impl Hresult {
            $(
                #[doc = $name]
                pub const $constant: Self = Self($value);
            )+

            /// All values that the specification defines or runtimes were seen to send.
            pub const KNOWN: &[Self] = &[$(Self::$constant),+];

            /// Returns the symbolic name, if known.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$constant => Some($name),)+
                    _ => None,
                }
            }

            /// Returns the meaning and a possible remedy, in one or two sentences.
            pub fn explain(self) -> &'static str {
                match self {
                    $(Self::$constant => $explanation,)+
                    _ => "unknown error code; the process's own log may have details",
                }
            }
        }
    };
}

hresults! {
    OK = 0x0000_0000, "S_OK",
        "done";
    BAD_ENCODING = 0x8013_1384, "DS_IPC_E_BAD_ENCODING",
        "the runtime could not read the request: please report this, with the runtime's version";
    UNKNOWN_COMMAND = 0x8013_1385, "DS_IPC_E_UNKNOWN_COMMAND",
        "this runtime is too old for the request";
    UNKNOWN_MAGIC = 0x8013_1386, "DS_IPC_E_UNKNOWN_MAGIC",
        "the runtime uses another version of the diagnostic protocol";
    UNKNOWN_ERROR = 0x8013_1387, "DS_IPC_E_UNKNOWN_ERROR",
        "the runtime failed and gave no reason";
    NOT_SUPPORTED = 0x8013_1515, "DS_IPC_E_NOTSUPPORTED",
        "this kind of runtime (Mono or NativeAOT) cannot do that";
    FAIL = 0x8000_4005, "E_FAIL",
        "the operation failed in the runtime";
    NOT_YET_AVAILABLE = 0x8013_135b, "DS_IPC_E_NOT_YET_AVAILABLE",
        "the runtime is still starting up: resume it, or wait a moment, and try again";
    RUNTIME_UNINITIALIZED = 0x8013_1371, "DS_IPC_E_RUNTIME_UNINITIALIZED",
        "the runtime is not initialized yet: wait a moment and try again";
    PROFILER_ALREADY_ACTIVE = 0x8013_136a, "CORPROF_E_PROFILER_ALREADY_ACTIVE",
        "a profiler is already loaded in this process, and only one can be";
    PROFILER_NOT_ATTACHABLE = 0x8013_1368, "CORPROF_E_PROFILER_NOT_ATTACHABLE",
        "this profiler cannot be attached to a running process, it lacks ICorProfilerCallback3: load it into a process suspended at startup";
    PROFILER_DETACHING = 0x8013_1367, "CORPROF_E_PROFILER_DETACHING",
        "a profiler is being unloaded from this process: wait a moment and try again";
    PROFILER_CANCEL_ACTIVATION = 0x8013_1375, "CORPROF_E_PROFILER_CANCEL_ACTIVATION",
        "the profiler was loaded and canceled its activation: see its own settings and log";
    CONCURRENT_GC_NOT_PROFILABLE = 0x8013_1376, "CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE",
        "the profiler needs features that are incompatible with concurrent GC: start the process with DOTNET_gcConcurrent=0";
    TIMEOUT_WAITING_FOR_CONCURRENT_GC = 0x8013_1379, "CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC",
        "a concurrent collection did not end in time: try again";
    CLASS_NOT_AVAILABLE = 0x8004_0111, "CLASS_E_CLASSNOTAVAILABLE",
        "the library has no profiler with this GUID";
    ENTRY_NOT_FOUND = 0x8007_007f, "ERROR_PROC_NOT_FOUND",
        "the library is not a CLR profiler: it has no DllGetClassObject";
    TYPE_LOAD = 0x8013_1522, "COR_E_TYPELOAD",
        "the assembly lacks a type or method that the runtime needs: a startup hook has `static void Initialize()` in a class StartupHook";
    INVALID_ARGUMENT = 0x8007_0057, "DS_IPC_E_INVALIDARG",
        "the runtime rejected this value, or cannot accept it in its current state";
    MODULE_NOT_FOUND = 0x8007_007e, "ERROR_MOD_NOT_FOUND",
        "the target cannot load the library: it must exist and be readable as the target sees it, and be built for its architecture";
    INSUFFICIENT_BUFFER = 0x8007_007a, "DS_IPC_E_INSUFFICIENT_BUFFER",
        "the reply does not fit into the runtime's buffer";
    VARIABLE_NOT_FOUND = 0x8007_00cb, "ERROR_ENVVAR_NOT_FOUND",
        "the target has no environment variable with that name";
    VARIABLE_NOT_FOUND_AS_DEFINED = 0x8000_00cb, "DS_IPC_E_ENVVAR_NOT_FOUND",
        "the target has no environment variable with that name";
    NATIVE_AOT_STUB = 0x0000_ffff, "NativeAOT stub",
        "a NativeAOT program cannot change its environment this way";
}

impl Hresult {
    /// Returns the value as encoded in messages.
    pub fn as_i32(self) -> i32 {
        self.0.cast_signed()
    }

    /// Creates a result code from the encoded value.
    pub fn from_i32(value: i32) -> Self {
        Self(value.cast_unsigned())
    }
}

impl fmt::Display for Hresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (0x{:08x})", self.0),
            None => write!(f, "0x{:08x}", self.0),
        }
    }
}

impl fmt::Debug for Hresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hresult_names_match_the_specification() {
        let table = [
            (0x8013_1384, "DS_IPC_E_BAD_ENCODING (0x80131384)"),
            (0x8013_1385, "DS_IPC_E_UNKNOWN_COMMAND (0x80131385)"),
            (0x8013_1386, "DS_IPC_E_UNKNOWN_MAGIC (0x80131386)"),
            (0x8013_1515, "DS_IPC_E_NOTSUPPORTED (0x80131515)"),
            (0x8000_4005, "E_FAIL (0x80004005)"),
            (0x8013_135b, "DS_IPC_E_NOT_YET_AVAILABLE (0x8013135b)"),
            (0x8013_1371, "DS_IPC_E_RUNTIME_UNINITIALIZED (0x80131371)"),
            (0x8013_1367, "CORPROF_E_PROFILER_DETACHING (0x80131367)"),
            (0x8013_1368, "CORPROF_E_PROFILER_NOT_ATTACHABLE (0x80131368)"),
            (0x8013_136a, "CORPROF_E_PROFILER_ALREADY_ACTIVE (0x8013136a)"),
            (0x8013_1375, "CORPROF_E_PROFILER_CANCEL_ACTIVATION (0x80131375)"),
            (0x8013_1376, "CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE (0x80131376)"),
            (0x8013_1379, "CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC (0x80131379)"),
            (0x8013_1522, "COR_E_TYPELOAD (0x80131522)"),
            (0x8004_0111, "CLASS_E_CLASSNOTAVAILABLE (0x80040111)"),
            (0x8007_007f, "ERROR_PROC_NOT_FOUND (0x8007007f)"),
            (0x8007_0057, "DS_IPC_E_INVALIDARG (0x80070057)"),
            (0x8007_007a, "DS_IPC_E_INSUFFICIENT_BUFFER (0x8007007a)"),
            (0x8000_00cb, "DS_IPC_E_ENVVAR_NOT_FOUND (0x800000cb)"),
            (0x8007_00cb, "ERROR_ENVVAR_NOT_FOUND (0x800700cb)"),
            (0xdead_beef, "0xdeadbeef"),
        ];
        for (value, text) in table {
            assert_eq!(Hresult(value).to_string(), text);
            assert_eq!(Hresult::from_i32(Hresult(value).as_i32()), Hresult(value));
        }
    }

    #[test]
    fn every_known_value_is_explained_once() {
        let unknown = Hresult(0xdead_beef).explain();
        for (i, hresult) in Hresult::KNOWN.iter().enumerate() {
            assert!(hresult.name().is_some() && hresult.explain() != unknown, "{hresult}");
            assert!(!Hresult::KNOWN[..i].contains(hresult), "{hresult} twice");
        }
        assert_eq!(Hresult::KNOWN.len(), 24);
    }
}
