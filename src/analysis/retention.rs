//! What keeps the objects of a heap alive, and what they retain: paths from roots, and retained sizes by type.

use std::borrow::Cow;
use std::cmp::Reverse;

use foldhash::HashMap;

use super::dominators::{Dominators, Edges, NONE};
use crate::sorting::CompactSort;

/// Maximum number of paths per type.
const PATHS: usize = 3;
/// Maximum number of kinds of paths that are distinguished; of the others, those to objects of one type are the same kind.
const MAX_KINDS: usize = 1 << 20;
/// Number of steps kept at each end of a path; consecutive objects of one type are a single step.
const STEPS: usize = 12;
/// Maximum total length of all paths, in objects, before they are shortened.
const MAX_PATH_OBJECTS: usize = 1 << 26;
/// Memory limit of the computation, in bytes.
const MAX_MEMORY_BYTES: u64 = 2 << 30;

/// Objects by index, with their references, and the roots.
#[derive(Debug, Default)]
pub struct ObjectGraph {
    /// Type names by type index.
    pub types: Vec<String>,
    /// Size in bytes and type of each object.
    objects: Vec<(u32, u32)>,
    edges: Edges,
    /// Objects referenced by roots, with the index of the root.
    roots: Vec<(u32, u32)>,
    root_names: Vec<Cow<'static, str>>,
    is_full: bool,
}

/// What the objects of each type keep alive, and what keeps them alive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// In the order of the requested types; `None` for a type that is unknown by this name.
    pub types: Vec<Option<RetainedType>>,
    /// Number of objects not reachable from any known root.
    pub unreached: u64,
}

/// What the objects of a type keep alive, and what keeps them alive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedType {
    /// Bytes that would be freed with these objects: their own size, and that of objects reachable only through a single one of them. Objects
    /// shared by several of them are not included, so this is a lower bound.
    pub bytes: u64,
    /// The paths from roots by which most bytes of the type are reached, the largest first.
    pub paths: Vec<RootPath>,
}

/// The paths to objects of a type that lead from roots of the same name through the same types. Each object counts for one, which is among its
/// shortest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath {
    /// Kind of the root, or name of the static variable. Not sanitized.
    pub root: String,
    /// Steps of the shortest of them, from the root to the object.
    pub steps: Vec<PathStep>,
    /// Number of objects of the type at their ends.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// A kind of paths, and the objects at their ends.
struct PathKind {
    /// Type of the objects.
    of: u32,
    /// The object of the shortest path.
    nearest: u32,
    objects: u64,
    bytes: u64,
}

/// The kinds of paths, each found by the one before its last type, or its root.
#[derive(Default)]
struct PathKinds {
    all: Vec<PathKind>,
    found: HashMap<(Before, u32), u32>,
}

/// What precedes the last type of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Before {
    /// Index of the root name.
    Root(u32),
    /// Index of a kind.
    Path(u32),
    /// Not distinguished.
    Any,
}

/// A step of a root path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// Consecutive objects of one type.
    Objects {
        /// Type name; empty if unknown. Not sanitized.
        name: String,
        /// Number of objects.
        count: u32,
    },
    /// Number of objects left out.
    Omitted(u32),
}

impl ObjectGraph {
    /// Creates an empty graph for this many objects and references; `None` if the computation would need too much memory.
    pub fn new(objects: usize, references: usize) -> Option<Self> {
        // Per object: size, type, position, path, 8 integers for the dominators. Per reference: both directions.
        let bytes = (objects as u64).saturating_mul(52).saturating_add((references as u64).saturating_mul(8));
        (bytes <= MAX_MEMORY_BYTES).then(Self::default)
    }

    /// Adds an object with its type and references. The first object has index 0.
    pub fn push(&mut self, size: u32, kind: u32, targets: impl Iterator<Item = u32>) {
        self.is_full |= !self.edges.push(targets);
        self.objects.push((size, kind));
    }

    /// Adds a root with its name. If several roots lead to an object, the first is shown.
    pub fn root(&mut self, name: impl Into<Cow<'static, str>>, objects: impl Iterator<Item = u32>) {
        let number = self.root_names.len() as u32;
        self.root_names.push(name.into());
        self.roots.extend(objects.filter(|object| (*object as usize) < self.objects.len()).map(|object| (object, number)));
    }

    /// Computes what the first `types` types keep alive, and what keeps them alive; `None` if the graph has too many references for 32-bit
    /// indexes.
    pub fn retention(&self, types: usize) -> Option<Retention> {
        if self.is_full {
            return None;
        }
        let found = Dominators::new(&self.edges, self.roots.iter().map(|(object, _)| *object));
        let unreached = found.places.iter().filter(|place| **place == NONE).count() as u64;
        let mut bytes = self.retained(&found);
        bytes.truncate(types);
        drop(found);
        let paths = self.paths(types);
        let types = bytes.into_iter().zip(paths).map(|(bytes, paths)| Some(RetainedType { bytes, paths })).collect();
        Some(Retention { types, unreached })
    }

    /// Returns the retained bytes by type.
    fn retained(&self, Dominators { nodes, dominators, places }: &Dominators) -> Vec<u64> {
        let mut of_type = vec![0_u64; self.types.len()];
        let mut of_place: Vec<u64> = vec![0; nodes.len()];
        // A node dominates only nodes after it. The lists of children are built in the same pass.
        let (mut first, mut next) = (vec![NONE; nodes.len()], vec![NONE; nodes.len()]);
        for place in (1..nodes.len()).rev() {
            let above = dominators[place] as usize;
            of_place[place] += u64::from(self.objects[nodes[place] as usize].0);
            of_place[above] += of_place[place];
            next[place] = std::mem::replace(&mut first[above], place as u32);
        }
        // Objects dominated by two objects of the same type, one of which dominates the other, are counted once.
        let mut around = vec![0_u32; self.types.len()];
        let kind = |place: u32| self.objects[nodes[place as usize] as usize].1 as usize;
        let mut stack = vec![0_u32];
        while let Some(place) = stack.last().copied() {
            let child = first[place as usize];
            if child == NONE {
                stack.pop();
                if let Some(around) = around.get_mut(if place == 0 { usize::MAX } else { kind(place) }) {
                    *around -= 1;
                }
                continue;
            }
            first[place as usize] = next[child as usize];
            stack.push(child);
            let kind = kind(child);
            if let (Some(around), Some(bytes)) = (around.get_mut(kind), of_type.get_mut(kind)) {
                *bytes += if *around == 0 { of_place[child as usize] } else { 0 };
                *around += 1;
            }
        }
        // An unreachable object is only known to retain itself.
        for ((size, kind), _) in self.objects.iter().zip(places).filter(|(_, place)| **place == NONE) {
            if let Some(bytes) = of_type.get_mut(*kind as usize) {
                *bytes += u64::from(*size);
            }
        }
        of_type
    }

    /// Returns the paths by type by which most of its bytes are reached.
    fn paths(&self, types: usize) -> Vec<Vec<RootPath>> {
        // The preceding object on the path; for the first object, the root index plus the number of objects.
        let mut before = vec![NONE; self.objects.len()];
        // Objects with the kinds of their paths, the closest to the roots first.
        let mut queue: Vec<(u32, u32)> = Vec::new();
        let mut kinds = PathKinds::default();
        let names: HashMap<&str, u32> = self.root_names.iter().map(AsRef::as_ref).zip(0..).collect();
        for ((object, name), root) in self.roots.iter().zip(self.objects.len() as u32..NONE) {
            if before[*object as usize] == NONE {
                before[*object as usize] = root;
                let name = names[self.root_names[*name as usize].as_ref()];
                queue.push((*object, kinds.add(Before::Root(name), *object, self.objects[*object as usize])));
            }
        }
        let mut at = 0;
        while let Some((object, kind)) = queue.get(at).copied() {
            at += 1;
            for target in self.edges.of(object) {
                if let Some(before) = before.get_mut(*target as usize).filter(|before| **before == NONE) {
                    *before = object;
                    queue.push((*target, kinds.add(Before::Path(kind), *target, self.objects[*target as usize])));
                }
            }
        }
        drop(queue);
        let mut kinds: Vec<_> = kinds.all.into_iter().filter(|kind| (kind.of as usize) < types).collect();
        // The sort is stable: of equal ones, the shorter path is first.
        kinds.compact_sort_by_key(|kind| Reverse(kind.bytes));
        let mut paths = vec![Vec::new(); types];
        let mut left = MAX_PATH_OBJECTS;
        for kind in kinds {
            if let Some(paths) = paths.get_mut(kind.of as usize).filter(|paths| paths.len() < PATHS && left > 0) {
                let (root, steps) = self.path(kind.nearest, &before, &mut left);
                paths.push(RootPath { root, steps, objects: kind.objects, bytes: kind.bytes });
            }
        }
        paths
    }

    /// Returns the root of the path to an object, and its steps.
    fn path(&self, object: u32, before: &[u32], left: &mut usize) -> (String, Vec<PathStep>) {
        // From the object to the root: types, with the number of consecutive objects.
        let mut rows: Vec<(u32, u32)> = Vec::new();
        let mut at = object;
        while let Some((_, kind)) = self.objects.get(at as usize) {
            match rows.last_mut() {
                Some((last, count)) if last == kind => *count += 1,
                _ => rows.push((*kind, 1)),
            }
            *left = left.saturating_sub(1);
            at = before[at as usize];
        }
        let root = self.roots.get(at as usize - self.objects.len()).and_then(|(_, root)| self.root_names.get(*root as usize));
        let step = |(kind, count): &(u32, u32)| PathStep::Objects {
            name: self.types.get(*kind as usize).cloned().unwrap_or_default(),
            count: *count,
        };
        rows.reverse();
        let steps = if rows.len() <= 2 * STEPS {
            rows.iter().map(step).collect()
        } else {
            let between = &rows[STEPS..rows.len() - STEPS];
            let omitted = PathStep::Omitted(between.iter().map(|(_, count)| count).sum());
            rows[..STEPS].iter().map(step).chain([omitted]).chain(rows[rows.len() - STEPS..].iter().map(step)).collect()
        };
        (root.map(ToString::to_string).unwrap_or_default(), steps)
    }
}

impl PathKinds {
    /// Adds a path to an object (its size and type), and returns its kind. A path to an object of the type before it is of the same kind.
    fn add(&mut self, before: Before, object: u32, (size, of): (u32, u32)) -> u32 {
        let same = match before {
            Before::Path(kind) if self.all[kind as usize].of == of => Some(kind),
            _ => self.found.get(&(before, of)).copied(),
        };
        let index = same.unwrap_or_else(|| {
            let before = if self.all.len() < MAX_KINDS { before } else { Before::Any };
            *self.found.entry((before, of)).or_insert_with(|| {
                self.all.push(PathKind { of, nearest: object, objects: 0, bytes: 0 });
                self.all.len() as u32 - 1
            })
        });
        let kind = &mut self.all[index as usize];
        kind.objects += 1;
        kind.bytes += u64::from(size);
        index
    }
}
