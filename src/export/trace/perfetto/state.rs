//! Interned state of a packet sequence: the ids of names, frames and stacks.

use foldhash::{HashMap, HashSet};

use super::super::stacks::{FrameId, NodeId, Stacks};
use crate::perfetto::Message;
use crate::perfetto::field::interned;

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 4096;
/// Maximum number of interned names of a kind, and maximum size of all in bytes; beyond it the state is reset.
const MAX_NAMES: usize = 1 << 14;
const MAX_TOTAL_BYTES: usize = 2 << 20;
/// Maximum number of addresses whose methods are named at the end.
const MAX_ADDRESSES: usize = 1 << 18;
/// Mapping of frames whose module is unknown.
const UNKNOWN_MODULE: &str = "unknown";
/// Frame of code called by managed code: the runtime, a native library, the kernel.
const NATIVE_CODE: &str = "(native code)";

/// The interned state. Ids start at 1.
#[derive(Debug, Default)]
pub(super) struct State {
    /// By kind.
    names: [HashMap<Box<str>, u64>; 3],
    /// The latest name of each kind: successive events often have the same.
    latest: [(String, u64); 3],
    /// Static names of dn-top, by kind: found by address, without comparing text.
    labels: [Vec<(&'static str, u64)>; 3],
    /// Total size of all names, in bytes.
    text_bytes: usize,
    mappings: HashMap<Box<str>, u64>,
    /// By frame: whether it is described.
    frames: Vec<bool>,
    /// By node: whether its stack is described.
    stacks: Vec<bool>,
    /// Whether the frame of native code is described.
    native: bool,
    /// Definitions for the next packet.
    pub(super) pending: Vec<u8>,
    /// Code whose methods are named at the end, if enabled.
    pub(super) late: Option<LateNames>,
}

/// Code whose methods are unknown until the end of the stream.
#[derive(Debug)]
pub(super) struct LateNames {
    /// Path of the mapping that contains only this code.
    pub(super) path: String,
    /// Addresses seen in stacks.
    pub(super) addresses: HashSet<u64>,
}

/// Kinds of names, with separate ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Event,
    Category,
    Annotation,
}

impl Kind {
    fn field(self) -> u32 {
        match self {
            Self::Event => interned::EVENT_NAMES,
            Self::Category => interned::EVENT_CATEGORIES,
            Self::Annotation => interned::DEBUG_ANNOTATION_NAMES,
        }
    }
}

impl State {
    /// Creates a state for late names: code is described by `path`, and its methods are named at the end.
    pub(super) fn with_late_names(path: String) -> Self {
        Self { late: Some(LateNames { path, addresses: HashSet::default() }), ..Self::default() }
    }

    /// Forgets all descriptions.
    pub(super) fn clear(&mut self) {
        *self = Self { late: self.late.take(), ..Self::default() };
    }

    /// Returns the id of a name. Only allocates for new names.
    pub(super) fn name(&mut self, kind: Kind, name: &str) -> u64 {
        let (latest, id) = &mut self.latest[kind as usize];
        if *id != 0 && latest == name {
            return *id;
        }
        let name = truncated(name);
        let names = &mut self.names[kind as usize];
        let next = names.len() as u64 + 1;
        *id = names.get(name).copied().unwrap_or(next);
        name.clone_into(latest);
        if *id == next {
            names.insert(name.into(), next);
            self.text_bytes += name.len();
            Message::new(&mut self.pending).message(kind.field(), |entry| {
                entry.uint(interned::IID, next);
                entry.text(interned::STRING, name);
            });
        }
        *id
    }

    /// Returns the id of a static name of dn-top.
    pub(super) fn label(&mut self, kind: Kind, name: &'static str) -> u64 {
        if let Some((_, known)) = self.labels[kind as usize].iter().find(|(known, _)| std::ptr::eq(*known, name)) {
            return *known;
        }
        let number = self.name(kind, name);
        self.labels[kind as usize].push((name, number));
        number
    }

    /// Whether there are so many names that the state must be reset.
    pub(super) fn is_full(&self) -> bool {
        self.text_bytes >= MAX_TOTAL_BYTES || self.names.iter().any(|names| names.len() >= MAX_NAMES)
    }

    pub(super) fn mapping(&mut self, module: &str) -> u64 {
        let module = if module.is_empty() { UNKNOWN_MODULE } else { truncated(module) };
        let next = self.mappings.len() as u64 + 1;
        if let Some(known) = self.mappings.get(module) {
            return *known;
        }
        self.mappings.insert(module.into(), next);
        let mut pending = Message::new(&mut self.pending);
        pending.message(interned::MAPPING_PATHS, |path| {
            path.uint(interned::IID, next);
            path.text(interned::STRING, module);
        });
        pending.message(interned::MAPPINGS, |mapping| {
            mapping.uint(interned::IID, next);
            mapping.uint(interned::PATH_STRING_IDS, next);
        });
        next
    }

    fn frame(&mut self, frame: FrameId, stacks: &Stacks) -> u64 {
        let iid = u64::from(frame) + 1;
        let index = frame as usize;
        if self.frames.len() <= index {
            self.frames.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.frames[index], true) {
            let (mapping, address) = self.place(frame, stacks);
            self.define_frame(iid, &stacks.name(frame), mapping, address.unwrap_or(iid));
        }
        iid
    }

    /// Defines a frame and its function. The address distinguishes the frames of a mapping.
    fn define_frame(&mut self, iid: u64, name: &str, mapping: u64, address: u64) {
        let mut pending = Message::new(&mut self.pending);
        pending.message(interned::FUNCTION_NAMES, |function| {
            function.uint(interned::IID, iid);
            function.text(interned::STRING, truncated(name));
        });
        pending.message(interned::FRAMES, |entry| {
            entry.uint(interned::IID, iid);
            entry.uint(interned::FUNCTION_NAME_ID, iid);
            entry.uint(interned::MAPPING_ID, mapping);
            entry.uint(interned::REL_PC, address);
        });
    }

    /// Returns the mapping of a frame, and its address if it is named later.
    fn place(&mut self, frame: FrameId, stacks: &Stacks) -> (u64, Option<u64>) {
        if let Some(address) = stacks.address(frame)
            && let Some(mut late) = self.late.take()
        {
            if late.addresses.len() < MAX_ADDRESSES {
                late.addresses.insert(address);
            }
            let mapping = self.mapping(&late.path);
            self.late = Some(late);
            return (mapping, Some(address));
        }
        (self.mapping(stacks.module(frame)), None)
    }

    /// Returns the id of a stack, optionally with a native leaf. `None` if it has no frames.
    pub(super) fn stack(&mut self, node: NodeId, is_native: bool, stacks: &Stacks, path: &mut Vec<FrameId>) -> Option<u64> {
        if node == 0 && !is_native {
            return None;
        }
        // Each node has two stacks: with and without a native leaf.
        let index = node as usize * 2 + usize::from(is_native);
        if self.stacks.len() <= index {
            self.stacks.resize(index + 1, false);
        }
        let iid = index as u64 + 1;
        if !std::mem::replace(&mut self.stacks[index], true) {
            stacks.path(node, path);
            path.iter().for_each(|frame| {
                self.frame(*frame, stacks);
            });
            let native = is_native.then(|| self.native());
            Message::new(&mut self.pending).message(interned::CALLSTACKS, |stack| {
                stack.uint(interned::IID, iid);
                let frames = path.iter().map(|frame| u64::from(*frame) + 1).chain(native);
                frames.for_each(|frame| stack.uint(interned::FRAME_IDS, frame));
            });
        }
        Some(iid)
    }

    /// Returns the id of the native frame, which differs from those of all other frames.
    fn native(&mut self) -> u64 {
        const IID: u64 = u32::MAX as u64 + 1;
        if !std::mem::replace(&mut self.native, true) {
            let mapping = self.mapping("native");
            self.define_frame(IID, NATIVE_CODE, mapping, 0);
        }
        IID
    }
}

/// Returns the start of a name, cut to the maximum length.
pub(super) fn truncated(name: &str) -> &str {
    let end = (0..=MAX_NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}
