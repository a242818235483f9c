//! Contents of a simulated program: methods, exceptions, counters.

use crate::wire::Put;

pub(super) struct Method {
    pub(super) address: u64,
    size: u32,
    namespace: &'static str,
    name: &'static str,
    signature: &'static str,
}

const fn method(index: u64, namespace: &'static str, name: &'static str, signature: &'static str) -> Method {
    Method { address: 0x7f3a_1000_0000 + index * 0x1000, size: 0x400, namespace, name, signature }
}

/// The methods, callers before callees.
pub(super) const METHODS: [Method; 8] = [
    method(0, "System.Threading.Thread", "StartCallback", "instance void  ()"),
    method(1, "Demo.Api.OrdersController", "Create", "instance class Demo.Order  (class Demo.OrderRequest)"),
    method(2, "Demo.Pricing.PriceEngine", "PriceBasket", "instance float64  (class Demo.Basket)"),
    method(3, "Demo.Api.Validation", "Require", "void  (bool,class System.String)"),
    method(4, "Demo.Pricing.Discounts", "Apply", "instance float64  (float64,class Demo.Customer)"),
    method(5, "System.Collections.Generic.Dictionary`2[System.__Canon,System.__Canon]", "FindValue", "instance !1&  (!0)"),
    method(6, "Demo.Jobs.Worker", "WaitForWork", "instance void  ()"),
    method(7, "System.Threading.WaitHandle", "WaitOneNoCheck", "instance bool  (int32)"),
];

/// Exceptions that it throws, in rotation.
pub(super) const EXCEPTIONS: [(&str, &str); 4] = [
    ("System.InvalidOperationException", "Order 4711 has been shipped already"),
    ("System.TimeoutException", "The payment service did not answer within 3 s"),
    ("System.InvalidOperationException", "Order 4712 has been shipped already"),
    ("System.FormatException", "Input string was not in a correct format."),
];

/// Counters of `System.Runtime`: name, display name, unit, mean.
pub(super) const COUNTERS: [(&str, &str, &str, f64); 6] = [
    ("cpu-usage", "CPU Usage", "%", 23.0),
    ("working-set", "Working Set", "MB", 312.0),
    ("gc-heap-size", "GC Heap Size", "MB", 61.0),
    ("time-in-gc", "% Time in GC since last GC", "%", 4.0),
    ("threadpool-thread-count", "ThreadPool Thread Count", "", 12.0),
    ("threadpool-queue-length", "ThreadPool Queue Length", "", 3.0),
];

pub(super) const MODULE: u64 = 0x7f3a_0000_4000;

/// Payload of `MethodLoadVerbose` and `MethodDCEndVerbose`, version 2.
pub(super) fn payload(index: usize) -> Vec<u8> {
    let Method { address, size, namespace, name, signature } = &METHODS[index];
    let mut payload = Vec::new();
    payload.put_u64(0x7f3a_0000_8000 + index as u64 * 0x40);
    payload.put_u64(MODULE);
    payload.put_u64(*address);
    payload.put_u32(*size);
    payload.put_u32(0x0600_0001 + index as u32);
    // JIT-compiled, optimized at tier 1.
    payload.put_u32(0x208);
    for text in [namespace, name, signature] {
        payload.put_utf16z(text);
    }
    payload.put_u16(0);
    payload.put_u64(0);
    payload
}

/// Payload of `ModuleDCEnd`, version 2.
pub(super) fn module() -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_u64(MODULE);
    payload.put_u64(0x7f3a_0000_2000);
    payload.put_u32(0x8);
    payload.put_u32(0);
    payload.put_utf16z("/srv/demo/Demo.dll");
    payload.put_utf16z("");
    payload.put_u16(0);
    for _ in ["managed", "native"] {
        payload.put(&[0; 16]);
        payload.put_u32(0);
        payload.put_utf16z("");
    }
    payload
}
