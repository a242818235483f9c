use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A small assembly: a module, the type of its global members, one class with one method, a reference to `System.Runtime`, a manifest. It
/// contains no instructions.
#[derive(Clone)]
pub(crate) struct TestAssembly {
    pub(crate) name: &'static str,
    pub(crate) mvid: u8,
    pub(crate) machine: u16,
    pub(crate) cli_flags: u32,
    pub(crate) namespace: &'static str,
    pub(crate) class: &'static str,
    pub(crate) class_flags: u32,
    pub(crate) method: &'static str,
    pub(crate) method_flags: u16,
    pub(crate) signature: &'static [u8],
    pub(crate) version: Version,
    pub(crate) system_runtime: Version,
    pub(crate) manifest: bool,
}

/// A valid startup hook.
pub(crate) const HOOK: TestAssembly = TestAssembly {
    name: "hook",
    mvid: 1,
    machine: 0x14c,
    cli_flags: 1,
    namespace: "",
    class: "StartupHook",
    class_flags: 0,
    method: "Initialize",
    // Private, static, hidden by signature.
    method_flags: 0x0091,
    signature: &[0, 0, 1],
    version: [1, 2, 3, 4],
    system_runtime: [8, 0, 0, 0],
    manifest: true,
};

impl TestAssembly {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        const ADDRESS: u32 = 0x2000;
        const OFFSET: usize = 0x200;
        let metadata = self.metadata();
        let mut cli = Vec::new();
        for word in [72, 0x0005_0002, ADDRESS + 72, metadata.len() as u32, self.cli_flags] {
            cli.extend(u32::to_le_bytes(word));
        }
        cli.resize(72, 0);

        let mut file = vec![0; OFFSET];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &0x80_u32.to_le_bytes());
        put(0x80, b"PE\0\0");
        put(0x84, &self.machine.to_le_bytes());
        put(0x86, &1_u16.to_le_bytes());
        put(0x94, &224_u16.to_le_bytes());
        put(0x98, &0x10b_u16.to_le_bytes());
        put(0x98 + 92, &16_u32.to_le_bytes());
        put(0x98 + 96 + 14 * 8, &ADDRESS.to_le_bytes());
        let section = 0x98 + 224;
        put(section + 12, &ADDRESS.to_le_bytes());
        put(section + 16, &((72 + metadata.len()) as u32).to_le_bytes());
        put(section + 20, &(OFFSET as u32).to_le_bytes());
        [file, cli, metadata].concat()
    }

    fn metadata(&self) -> Vec<u8> {
        let mut texts = vec![0];
        let mut text = |text: &str| {
            let at = texts.len() as u16;
            texts.extend(text.as_bytes());
            texts.push(0);
            if text.is_empty() { 0 } else { at }
        };
        let [module, name, namespace, class, method, runtime] =
            ["m.dll", self.name, self.namespace, self.class, self.method, "System.Runtime"].map(&mut text);
        let mut blobs = vec![0, self.signature.len() as u8];
        blobs.extend(self.signature);

        let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
        let present = [0x00, 0x02, 0x06, 0x23].iter().fold(u64::from(self.manifest) << 0x20, |bits, table| bits | 1 << table);
        tables.extend(present.to_le_bytes());
        tables.extend([0; 8]);
        // In the order of table numbers.
        for rows in [Some(1_u32), Some(2), Some(1), self.manifest.then_some(1), Some(1)].into_iter().flatten() {
            tables.extend(rows.to_le_bytes());
        }
        let mut halves = |halves: &[u16]| tables.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        halves(&[0, module, 1, 0, 0]);
        halves(&[0, 0, 0, 0, 0, 1, 1]);
        halves(&[self.class_flags as u16, (self.class_flags >> 16) as u16, class, namespace, 0, 1, 1]);
        halves(&[0, 0, 0, self.method_flags, method, 1, 1]);
        if self.manifest {
            let [a, b, c, d] = self.version;
            halves(&[0x8004, 0, a, b, c, d, 0, 0, 0, name, 0]);
        }
        let [a, b, c, d] = self.system_runtime;
        halves(&[a, b, c, d, 0, 0, 0, runtime, 0, 0]);

        let streams = [("#~\0\0", tables), ("#Strings\0\0\0\0", texts), ("#GUID\0\0\0", vec![self.mvid; 16]), ("#Blob\0\0\0", blobs)];
        let mut root = b"BSJB\x01\0\x01\0\0\0\0\0\x08\0\0\0v4.0.30\0\0\0\x04\0".to_vec();
        let mut at = root.len() + streams.iter().map(|(name, _)| 8 + name.len()).sum::<usize>();
        for (name, content) in &streams {
            root.extend((at as u32).to_le_bytes());
            root.extend((content.len() as u32).to_le_bytes());
            root.extend(name.as_bytes());
            at += content.len();
        }
        streams.iter().for_each(|(_, content)| root.extend(content));
        root
    }

    fn read(&self) -> Result<Assembly, AssemblyError> {
        read(&self.bytes())
    }
}

fn read(bytes: &[u8]) -> Result<Assembly, AssemblyError> {
    Assembly::read(&mut Cursor::new(bytes))
}

#[test]
fn a_startup_hook_is_read() {
    let expected = Assembly {
        name: "hook".to_owned(),
        version: [1, 2, 3, 4],
        mvid: [1; 16],
        machine: Machine::Any,
        system_runtime: Some([8, 0, 0, 0]),
        startup_hook: StartupHook::Yes,
    };
    assert_eq!(HOOK.read().unwrap(), expected);
}

/// What .NET 8 to 10 were observed to accept and reject.
#[test]
fn startup_hook_needs_class_and_initialize_method() {
    use StartupHook::{NoClass, NoMethod, Yes};
    for (sample, expected) in [
        (TestAssembly { class_flags: 0x0010_0001, method_flags: 0x0096, ..HOOK }, Yes),
        (TestAssembly { class: "startuphook", ..HOOK }, NoClass),
        (TestAssembly { class: "StartupHook2", ..HOOK }, NoClass),
        (TestAssembly { class: "StartupHook`1", ..HOOK }, NoClass),
        (TestAssembly { namespace: "Shop", ..HOOK }, NoClass),
        (TestAssembly { class_flags: 2, ..HOOK }, NoClass),
        (TestAssembly { method: "initialize", ..HOOK }, NoMethod),
        (TestAssembly { method_flags: 0x0081, ..HOOK }, NoMethod),
        (TestAssembly { method_flags: 0x2091, ..HOOK }, NoMethod),
        // Instance method, with a parameter, with a result, generic.
        (TestAssembly { signature: &[0x20, 0, 1], ..HOOK }, NoMethod),
        (TestAssembly { signature: &[0, 1, 1, 8], ..HOOK }, NoMethod),
        (TestAssembly { signature: &[0, 0, 8], ..HOOK }, NoMethod),
        (TestAssembly { signature: &[0x10, 1, 0, 1], ..HOOK }, NoMethod),
    ] {
        let TestAssembly { namespace, class, method, .. } = sample;
        assert_eq!(sample.read().unwrap().startup_hook, expected, "{namespace} {class} {method}");
    }
}

#[test]
fn target_machine_is_detected() {
    for (machine, cli_flags, expected) in [
        (0x14c, 1, Machine::Any),
        (0x14c, 3, Machine::Only(0x14c)),
        (0x14c, 0x2_0003, Machine::Any),
        (0x8664, 1, Machine::Only(0x8664)),
        (0xfd1d, 4, Machine::Only(0x8664)),
        (0xd11d, 4, Machine::Only(0xaa64)),
        (0x1c4, 1, Machine::Only(0x1c4)),
    ] {
        assert_eq!(TestAssembly { machine, cli_flags, ..HOOK }.read().unwrap().machine, expected, "{machine:#x} {cli_flags:#x}");
    }
}

#[test]
fn files_that_are_not_assemblies_are_rejected() {
    let native = {
        let mut bytes = HOOK.bytes();
        bytes[0x98 + 96 + 14 * 8..][..4].fill(0);
        bytes
    };
    let module = TestAssembly { manifest: false, ..HOOK }.bytes();
    for bytes in [&b""[..], b"MZ", b"#!/bin/sh", b"\x7fELF", &[0xff; 8192], &native, &module] {
        assert!(matches!(read(bytes), Err(AssemblyError::NotAnAssembly)), "{:?}", read(bytes));
    }
    let mut huge = HOOK.bytes();
    huge[0x200 + 12..][..4].fill(0xff);
    assert!(matches!(read(&huge), Err(AssemblyError::Malformed("it is too large"))));
    let whole = HOOK.bytes();
    assert!(matches!(read(&whole[..whole.len() - 1]), Err(AssemblyError::Malformed("the file is cut off"))));
}

#[test]
fn truncated_assemblies_are_rejected() {
    let bytes = HOOK.bytes();
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn damaged_assemblies_do_not_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = HOOK.bytes();
        for (at, byte) in damage {
            *at.get_mut(&mut bytes) = byte;
        }
        let _ = read(&bytes);
    }

    #[test]
    fn random_metadata_does_not_panic(random in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = HOOK.bytes();
        bytes.truncate(0x200 + 72 + 32);
        bytes.extend(&random);
        let _ = read(&bytes);
        let _ = read(&random);
    }
}
