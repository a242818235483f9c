//! Functions that are no managed methods, in the same table.

use super::{Body, Method, MethodId, NameId, Symbols};

/// Whose code a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Origin {
    /// A .NET method.
    #[default]
    Managed,
    /// A library, the runtime's own among them.
    Native,
    /// The garbage collector.
    Gc,
    /// The JIT compiler.
    Jit,
    /// The runtime's helper that allocates an object.
    Allocation,
    /// What the runtime does to throw and catch an exception: it looks for handlers and unwinds stacks.
    Exception,
    /// The kernel.
    Kernel,
    /// Code that the runtime generated and gave no name: it leads from one method to another.
    Stub,
    /// Not known.
    Unknown,
}

impl Origin {
    /// All, most interesting first.
    pub const ALL: [Self; 9] =
        [Self::Managed, Self::Native, Self::Gc, Self::Jit, Self::Allocation, Self::Exception, Self::Kernel, Self::Stub, Self::Unknown];

    /// What native code does, by its file and, where the file names its functions, by their names.
    pub fn of_native(image: &str, function: &str) -> Self {
        let is_of = |(images, functions, _): &&NativeRow| {
            let is_image = images.is_empty() || images.iter().any(|name| image.starts_with(name));
            is_image && (functions.is_empty() || functions.iter().any(|name| function.starts_with(name)))
        };
        NATIVE.iter().find(is_of).map_or(Self::Native, |(.., origin)| *origin)
    }

    /// A name with a sign before it that shows what it is, as perf has them: `[k] do_syscall_64`. .NET methods have none.
    pub fn label(self, name: &str) -> String {
        let sign = match self {
            Self::Managed | Self::Unknown => return name.to_owned(),
            Self::Native => "n",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Allocation => "alloc",
            Self::Exception => "ex",
            Self::Kernel => "k",
            Self::Stub => "stub",
        };
        format!("[{sign}] {name}")
    }

    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Native => "native",
            Self::Gc => "GC",
            Self::Jit => "JIT",
            Self::Allocation => "alloc",
            Self::Exception => "exception",
            Self::Kernel => "kernel",
            Self::Stub => "stub",
            Self::Unknown => "unknown",
        }
    }
}

/// How files begin, how functions begin, and what these do; nothing stands for all.
type NativeRow = (&'static [&'static str], &'static [&'static str], Origin);

/// Names of Microsoft's builds, whose `libcoreclr.so` keeps no names since .NET 5: its functions have some in .NET Core 3.1, in NativeAOT programs
/// (`Rh..`) and where a distribution built it. Source: src/coreclr/{gc,vm,jit,nativeaot/Runtime} of dotnet/runtime.
const NATIVE: &[NativeRow] = &[
    (&["libclrjit", "libjitinterface"], &[], Origin::Jit),
    (&["libclrgc"], &[], Origin::Gc),
    (&["libgcc_s", "libunwind"], &[], Origin::Exception),
    (&["libc.so", "libc-", "libm.so", "libpthread", "libstdc++", "ld-", "libSystem.", "[vdso]"], &[], Origin::Native),
    (&[], &["WKS::", "SVR::", "GCHeap::", "GCScan::", "GCToEEInterface::", "BGCThread", "gc_heap::"], Origin::Gc),
    (
        &[],
        &["JIT_New", "JIT_Box", "AllocateObject", "AllocateString", "AllocateSzArray", "RhpNew", "RhpGcAlloc", "RhNewObject"],
        Origin::Allocation,
    ),
    (
        &[],
        &["IL_Throw", "IL_Rethrow", "RaiseTheException", "ProcessCLRException", "RhpThrow", "RhpCallCatch", "RhpSfi", "_Unwind_"],
        Origin::Exception,
    ),
    (
        &["libcoreclr"],
        &["ExceptionTracker::", "StackFrameIterator::", "DispatchEx", "UnwindManagedException", "SfiNext"],
        Origin::Exception,
    ),
    (&["libcoreclr"], &["UnsafeJitFunction", "invokeCompileMethod", "CEEJitInfo::", "CEEInfo::"], Origin::Jit),
];

/// A function, and where its code is.
#[derive(Debug, Clone, Copy)]
pub struct NativeFunction<'a> {
    /// An address that it has.
    pub address: u64,
    /// Its first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// Its name.
    pub name: &'a str,
    /// The file that it is of; may be empty.
    pub image: &'a str,
    /// Whose code it is.
    pub origin: Origin,
}

impl Symbols {
    /// Adds a function. Where it overlaps what is known it gets only the address itself.
    pub fn add_native(&mut self, function: &NativeFunction<'_>) {
        let &NativeFunction { address, start, size, name, image, origin } = function;
        let (image, name) = (self.names.add_str(image), self.names.add_str(name));
        // The numbers of modules are addresses of the process: these are none.
        let module = u64::MAX - u64::from(image.number());
        if self.has_room_for(module) {
            self.modules.insert(module, image);
        }
        let method = Method { module, token: origin as u32, namespace: NameId::default(), name };
        let Some(method) = self.method(method, origin, |_| NameId::default()) else { return };
        let last = start.saturating_add(u64::from(size.max(1)) - 1);
        if start > address || last < address || self.covers(start, last) {
            self.clear(address, 1);
            self.insert(address, Body { size: 1, method });
        } else {
            self.insert(start, Body { size: size.max(1), method });
        }
    }

    /// Whether it stands for all code of a file whose functions have no names: such a name is in brackets, and no other is.
    pub(in crate::analysis) fn is_nameless(&self, method: MethodId) -> bool {
        self.names(method).1.starts_with('[')
    }

    /// Whether its name is the last: that of a .NET method, and of code that the runtime generated, may still come.
    pub(in crate::analysis) fn is_final(&self, method: MethodId) -> bool {
        match self.origin(method) {
            Origin::Managed => !self.is_nameless(method),
            Origin::Native | Origin::Gc | Origin::Jit | Origin::Allocation | Origin::Exception | Origin::Kernel => true,
            Origin::Stub | Origin::Unknown => false,
        }
    }

    /// Whose code a method is.
    pub fn origin(&self, method: MethodId) -> Origin {
        self.origins[method.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_code_is_known_by_what_it_does() {
        for (image, function, origin) in [
            ("libclrjit.so", "", Origin::Jit),
            ("libclrjit.so", "memcpy", Origin::Jit),
            ("libclrgc.so", "", Origin::Gc),
            ("libcoreclr.so", "", Origin::Native),
            ("libcoreclr.so", "WKS::gc_heap::mark_phase", Origin::Gc),
            ("libcoreclr.so", "JIT_NewArr1", Origin::Allocation),
            ("aot8", "RhpNewFast", Origin::Allocation),
            ("aot8", "RhpThrowEx", Origin::Exception),
            ("libgcc_s.so.1", "_Unwind_Find_FDE", Origin::Exception),
            ("libc.so.6", "JIT_New", Origin::Native),
            ("", "", Origin::Native),
        ] {
            assert_eq!(Origin::of_native(image, function), origin, "{image} {function}");
        }
    }

    #[test]
    fn functions_are_found_by_address() {
        let mut symbols = Symbols::default();
        let function = |address, start, size, name, origin| NativeFunction { address, start, size, name, image: "libc.so.6", origin };
        symbols.add_native(&function(105, 100, 10, "memcpy", Origin::Native));
        symbols.add_native(&function(109, 95, 100, "overlaps", Origin::Native));
        symbols.add_native(&function(200, 200, 1, "", Origin::Native));
        symbols.add_native(&function(300, 300, 1, "", Origin::Native));
        symbols.add_native(&function(400, 400, 0, "do_syscall_64", Origin::Kernel));
        let found =
            |address| symbols.find(address).map(|method| (symbols.full_name(method), symbols.module(method), symbols.origin(method)));
        assert_eq!(found(100), None, "the place was taken");
        assert_eq!(found(109).unwrap(), ("overlaps".to_owned(), "libc.so.6", Origin::Native));
        assert_eq!(found(400).unwrap().2, Origin::Kernel);
        assert_eq!(symbols.find(200), symbols.find(300), "what has no name in a file is one");
        assert_eq!(found(201), None);
    }
}
