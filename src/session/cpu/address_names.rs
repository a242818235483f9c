//! Names of sampled addresses.

use super::methods::Methods;
use crate::analysis::{CpuSamples, NativeFunction, Origin, Symbols};
use crate::net::perf::{CodeFunction, CodeKind, NativeCode, NativeFunctions};

/// How to treat generated code that has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum MethodNames {
    /// More names may arrive: it is left as an address.
    Pending,
    /// All names have arrived: it is not a method.
    Complete,
    /// Names are not available.
    Missing,
}

/// Functions at sampled addresses, and the names resolved so far.
#[derive(Debug)]
pub(super) struct AddressNames {
    functions: NativeFunctions,
    /// Names of the sampled addresses. It holds code ranges only during a lookup.
    pub(super) symbols: Symbols,
}

impl AddressNames {
    pub(super) fn new(functions: NativeFunctions) -> Self {
        Self { functions, symbols: Symbols::default() }
    }

    /// Resolves each of these addresses.
    pub(super) fn find(&mut self, code: &NativeCode, methods: &impl Methods, known: MethodNames, addresses: &[u64]) {
        let Self { functions, symbols } = self;
        methods.with(&mut |methods| {
            for &address in addresses {
                if symbols.find(address).is_none() {
                    symbols.add_method_at(address, methods);
                }
            }
        });
        // Reads files.
        for &address in addresses {
            if symbols.find(address).is_none() {
                add_name(symbols, address, code, functions, known);
            }
        }
    }
}

/// Adds the function at an address, from the code that the process has mapped there.
fn add_name(symbols: &mut Symbols, address: u64, code: &NativeCode, functions: &mut NativeFunctions, names: MethodNames) {
    if Symbols::GC_CODE.contains(&address) {
        symbols.add_gc_frame();
        return;
    }
    let function = match CpuSamples::kernel_address(address) {
        Some(in_kernel) => {
            let function = functions.kernel_function(in_kernel);
            Some(CodeFunction { start: address - (in_kernel - function.start), ..function })
        }
        None => functions.function(code, address),
    };
    let Some(CodeFunction { start, size, name, image, kind }) = function else { return };
    let of_image = || format!("[{}]", image.trim_matches(['[', ']']));
    let (origin, unknown) = match (kind, names) {
        (CodeKind::Image, _) => (Origin::from_native(&image, &name), of_image()),
        (CodeKind::Kernel, _) => (Origin::Kernel, of_image()),
        (CodeKind::Assembly | CodeKind::Generated, MethodNames::Pending) => return,
        (CodeKind::Assembly, _) => (Origin::Managed, of_image()),
        (CodeKind::Generated, MethodNames::Complete) => (Origin::Stub, "[runtime stubs]".to_owned()),
        (CodeKind::Generated, MethodNames::Missing) => (Origin::Unknown, "[JIT-compiled code]".to_owned()),
    };
    let name = if name.is_empty() { &unknown } else { &name };
    symbols.add_native(&NativeFunction { address, start, size, name, image: &image, origin });
}
