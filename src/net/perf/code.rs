//! Maps the addresses of a process to files and functions.

#[cfg(test)]
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::HashMap;

use super::debug_symbols::read_functions;
use super::demangle::Demangler;
use super::kernel::KernelFunctions;
pub use super::unwind::Unwinder;
use super::{CodeChain, CodeFunction, CodeKind, CpuSample};
use crate::model::{ImageIdentity, ProcessKey};
use crate::net::client::Client;
use crate::net::elf::{Functions, identity};
use crate::net::proc::{CodeMapping, Proc};

/// Minimum time before the mappings are read again because of an address outside of them.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of mappings kept.
const MAX_MAPPINGS: usize = 1 << 16;
/// Maximum bytes for the functions of all files; those of further files have no names.
const MAX_FUNCTIONS_BYTES: usize = 256 << 20;

/// The runtime's own library.
const RUNTIME: &[u8] = b"/libcoreclr.so";

/// The executable mappings of a process. Clones share them until either is refreshed.
#[derive(Debug, Clone)]
pub struct NativeCode {
    proc: Arc<Proc>,
    key: ProcessKey,
    map: Arc<CodeMap>,
    read_at: Instant,
}

/// The functions of its files and of the kernel. Files are read on demand, which takes far longer than a lookup of the mappings.
#[derive(Debug)]
pub struct NativeFunctions {
    proc: Arc<Proc>,
    key: ProcessKey,
    /// By path.
    files: HashMap<Vec<u8>, Functions>,
    /// Bytes left for the functions of further files.
    names_left: usize,
    demangler: Demangler,
    kernel: Option<KernelFunctions>,
}

/// Executable mappings, sorted by address.
#[derive(Debug, Clone, Default)]
struct CodeMap(Vec<CodeMapping>);

impl Client {
    /// Returns the code of the process; `None` if /proc does not show it.
    pub fn native_code(&self) -> Option<NativeCode> {
        let (proc, key) = (Arc::clone(self.own_proc()?), self.endpoint().key);
        let mut code = NativeCode { proc, key, map: Arc::default(), read_at: Instant::now() };
        code.refresh();
        Some(code)
    }
}

#[cfg(test)]
impl NativeCode {
    /// Returns an empty map.
    pub(crate) fn empty() -> Self {
        let proc = Arc::new(Proc::open(Path::new("/proc")).unwrap());
        let key = ProcessKey { pid: 0, started: 0 };
        Self { proc, key, map: Arc::default(), read_at: Instant::now() }
    }
}

impl NativeCode {
    /// Current executable mappings, and former ones.
    pub(crate) fn mappings(&self) -> impl Iterator<Item = &CodeMapping> {
        self.map.0.iter()
    }

    /// Reads the identity of a mapped file; `None` if it has none, or cannot be read.
    pub(crate) fn identity(&self, mapping: &CodeMapping) -> Option<ImageIdentity> {
        identity(&self.proc.regular_file(self.key.pid, mapping.file()?).ok()?).ok()?
    }

    /// Creates an empty cache of the functions of this code.
    pub fn functions(&self) -> NativeFunctions {
        let (proc, key) = (Arc::clone(&self.proc), self.key);
        NativeFunctions { proc, key, files: HashMap::default(), names_left: MAX_FUNCTIONS_BYTES, demangler: Demangler::new(), kernel: None }
    }

    /// Creates an unwinder for the stacks recorded with samples.
    pub fn unwinder(&self) -> Unwinder {
        Unwinder::new(Arc::clone(&self.proc), self.key)
    }

    /// Whether the process has generated code.
    pub fn has_generated(&self) -> bool {
        self.map.0.iter().any(|mapping| kind(mapping) == CodeKind::Generated)
    }

    /// Returns how many of these frames, innermost first, are the runtime's own or called by it; `None` if none is the runtime's.
    pub fn runtime_frames(&self, frames: &[u64]) -> Option<usize> {
        self.map.runtime_frames(frames)
    }

    /// Reads the mappings again. A removed mapping is kept as long as no other overlaps it.
    pub fn refresh(&mut self) {
        self.read_at = Instant::now();
        if let Ok(mappings) = self.proc.code_mappings(self.key.pid)
            && self.proc.exists(self.key)
        {
            Arc::make_mut(&mut self.map).update(mappings);
        }
    }

    /// Reads the mappings again if they lack the code at an address, and are not quite new.
    pub fn find_new(&mut self, address: u64) {
        if self.map.find(address).is_none() && self.read_at.elapsed() >= MIN_REFRESH_INTERVAL / 5 {
            self.refresh();
        }
    }

    /// Returns the kind of the code at an address; `None` if there is none.
    pub fn kind_at(&self, address: u64) -> Option<CodeKind> {
        self.map.find(address).map(kind)
    }

    /// Returns the user frames of a sample: by frame pointers, or for a wait by unwinding its stack if that yields more frames.
    pub fn chain_of<'a>(&'a mut self, sample: &CpuSample<'a>, unwinder: &'a mut Unwinder) -> CodeChain<'a> {
        let chain = self.chain(sample.user);
        let Some(stack) = sample.stack.filter(|_| chain.broken && sample.waited_ns.is_some()) else { return chain };
        let is_native = |mapping: &&CodeMapping| kind(mapping) == CodeKind::Image;
        let unwound = self.map.chain(unwinder.unwind(&stack, |address| self.map.find(address).filter(is_native)));
        if unwound.frames.len() > chain.frames.len() { unwound } else { chain }
    }

    /// Drops frames outside of code: in a function that does not keep the frame pointer, the kernel takes the register's arbitrary value for one.
    fn chain<'a>(&mut self, frames: &'a [u64]) -> CodeChain<'a> {
        let chain = self.map.chain(frames);
        if chain.frames.len() == frames.len() || self.read_at.elapsed() < MIN_REFRESH_INTERVAL {
            return chain;
        }
        // The frame may be in new code.
        self.refresh();
        self.map.chain(frames)
    }
}

impl NativeFunctions {
    /// Returns the function at an address, or only its file if the function is unknown; `None` if the process has no code there.
    pub fn function(&mut self, code: &NativeCode, address: u64) -> Option<CodeFunction> {
        let mapping = code.map.find(address)?;
        let kind = kind(mapping);
        let unknown = |image| CodeFunction { start: address, size: 1, name: String::new(), image, kind };
        if kind == CodeKind::Generated {
            return Some(unknown(String::new()));
        }
        let image = String::from_utf8_lossy(mapping.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()).into_owned();
        let Some(path) = mapping.file().filter(|_| kind != CodeKind::Assembly) else { return Some(unknown(image)) };
        if self.names_left > 0 && !self.files.contains_key(&mapping.path) {
            let functions = read_functions(&self.proc, self.key.pid, path).unwrap_or_default();
            self.names_left = self.names_left.saturating_sub(functions.cost() + mapping.path.len());
            self.files.insert(mapping.path.clone(), functions);
        }
        Some(match self.files.get(&mapping.path).and_then(|functions| functions.at(mapping.offset_of(address))) {
            Some((name, inside, size)) => CodeFunction {
                start: address.saturating_sub(inside),
                size: u32::try_from(size).unwrap_or(u32::MAX),
                name: self.demangler.readable(name),
                image,
                kind,
            },
            None => unknown(image),
        })
    }

    /// Returns the kernel function at an address; without a name if the kernel hides its symbols.
    pub fn kernel_function(&mut self, address: u64) -> CodeFunction {
        let kernel = self.kernel.get_or_insert_with(|| KernelFunctions::read(&self.proc));
        let (start, size, name) = kernel.find(address).unwrap_or((address, 1, String::new()));
        CodeFunction { start, size, name, image: "kernel".to_owned(), kind: CodeKind::Kernel }
    }
}

impl CodeMap {
    fn update(&mut self, mut mappings: Vec<CodeMapping>) {
        mappings.truncate(MAX_MAPPINGS);
        let gone = |old: &CodeMapping| {
            let next = mappings.partition_point(|new| new.range.end <= old.range.start);
            mappings.get(next).is_none_or(|new| new.range.start >= old.range.end)
        };
        let kept: Vec<_> = self.0.drain(..).filter(gone).take(MAX_MAPPINGS - mappings.len()).collect();
        mappings.extend(kept);
        mappings.sort_by_key(|mapping| mapping.range.start);
        self.0 = mappings;
    }

    fn find(&self, address: u64) -> Option<&CodeMapping> {
        let next = self.0.partition_point(|mapping| mapping.range.end <= address);
        self.0.get(next).filter(|mapping| mapping.range.contains(&address))
    }

    fn runtime_frames(&self, frames: &[u64]) -> Option<usize> {
        let native = frames.iter().map_while(|frame| self.find(*frame).filter(|mapping| kind(mapping) == CodeKind::Image));
        native.zip(1..).filter(|(mapping, _)| mapping.path.ends_with(RUNTIME)).last().map(|(_, count)| count)
    }

    fn chain<'a>(&self, frames: &'a [u64]) -> CodeChain<'a> {
        let outermost = frames.iter().rposition(|frame| self.find(*frame).is_some());
        let frames = &frames[..outermost.map_or(0, |at| at + 1)];
        let begins = |frame: &u64| self.find(*frame).is_some_and(|mapping| kind(mapping) == CodeKind::Image);
        CodeChain { frames, broken: frames.len() < 2 || !frames.last().is_some_and(begins) }
    }
}

fn kind(mapping: &CodeMapping) -> CodeKind {
    let path = &mapping.path[..];
    let of_no_file = |path: &[u8]| path.starts_with(b"/memfd:") || path.starts_with(b"/dev/zero") || path.starts_with(b"/SYSV");
    match path {
        b"[vdso]" | b"[vsyscall]" => CodeKind::Image,
        [b'/', ..] if of_no_file(path) => CodeKind::Generated,
        [b'/', ..] if [&b".dll"[..], b".exe"].iter().any(|end| path.ends_with(end)) => CodeKind::Assembly,
        [b'/', ..] => CodeKind::Image,
        _ => CodeKind::Generated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(range: std::ops::Range<u64>, path: &str) -> CodeMapping {
        CodeMapping { range, file_offset: 0, path: path.as_bytes().to_vec(), is_deleted: false }
    }

    fn map() -> CodeMap {
        let mut map = CodeMap::default();
        map.update(vec![
            mapping(10..20, "/lib/libcoreclr.so"),
            mapping(20..30, "/memfd:doublemapper"),
            mapping(40..50, "/a/App.dll"),
            mapping(60..70, ""),
        ]);
        map
    }

    #[test]
    fn chains_end_at_the_start_of_the_thread() {
        for (frames, code, broken) in [
            (&[25, 45, 65, 15][..], 4, false),
            // Frames beyond the outermost one in code are dropped.
            (&[25, 15, 7, 99], 2, false),
            // A frame outside of code in between is kept.
            (&[25, 35, 15], 3, false),
            (&[15, 25, 99], 2, true),
            (&[25], 1, true),
            (&[15], 1, true),
            (&[99], 0, true),
            (&[], 0, true),
        ] {
            assert_eq!(map().chain(frames), CodeChain { frames: &frames[..code], broken }, "{frames:?}");
        }
    }

    #[test]
    fn runtime_frames_end_at_the_managed_caller() {
        let mut map = map();
        map.update([map.0.clone(), vec![mapping(80..90, "/lib/libc.so.6")]].concat());
        for (frames, expected) in [
            (&[15, 16, 25, 15][..], Some(2)),
            // The C library, called by the runtime.
            (&[85, 15, 45], Some(2)),
            (&[15, 85, 86, 25], Some(1)),
            (&[85, 15], Some(2)),
            (&[85, 25, 15], None),
            (&[25, 15], None),
            (&[85], None),
            // Outside of known code.
            (&[99, 15], None),
            (&[], None),
        ] {
            assert_eq!(map.runtime_frames(frames), expected, "{frames:?}");
        }
    }

    #[test]
    fn code_is_distinguished_by_its_file() {
        let map = map();
        let kinds: Vec<_> = [10, 29, 49, 69].iter().map(|address| kind(map.find(*address).unwrap())).collect();
        assert_eq!(kinds, [CodeKind::Image, CodeKind::Generated, CodeKind::Assembly, CodeKind::Generated]);
        assert!([9, 30, 39, 50, 70].iter().all(|address| map.find(*address).is_none()));
    }

    #[test]
    fn files_without_functions_use_up_the_memory_for_functions() {
        let mut map = CodeMap::default();
        map.update((0..1000).map(|at| mapping(at..at + 1, &format!("/none/{at}.so"))).collect());
        let code = NativeCode { map: Arc::new(map), ..NativeCode::empty() };
        let mut functions = NativeFunctions { names_left: 10_000, ..code.functions() };
        let images: Vec<_> = (0..1000).map(|address| functions.function(&code, address).unwrap().image).collect();
        assert_eq!(images[999], "999.so");
        assert!((2..200).contains(&functions.files.len()), "{}", functions.files.len());
    }

    #[test]
    fn removed_mappings_stay_until_their_addresses_are_reused() {
        let mut map = map();
        map.update(vec![mapping(15..25, "/new.so"), mapping(60..70, "")]);
        let path = |address: u64| map.find(address).map(|mapping| String::from_utf8_lossy(&mapping.path).into_owned());
        assert_eq!((path(12), path(17), path(45)), (None, Some("/new.so".to_owned()), Some("/a/App.dll".to_owned())));
    }
}
