//! What keeps the objects of a heap alive, and what they keep alive: paths from roots, and retained sizes by type.

use std::borrow::Cow;

use super::dominators::{Dominators, Edges, NONE};

/// Paths of a type.
const PATHS: usize = 3;
/// Objects of a type, those nearest to roots first, whose paths are compared to find different ones.
const TRIED: u32 = 64;
/// Steps that are kept at each end of a path; objects of one type in a row are one.
const STEPS: usize = 12;
/// Objects that all paths together may lead through before they were made short.
const WALKED: usize = 1 << 26;
/// Bytes that the computation may take.
const MOST: u64 = 2 << 30;

/// Objects by number, what each refers to, and the roots.
#[derive(Debug, Default)]
pub struct ObjectGraph {
    /// Names of types, by number.
    pub types: Vec<String>,
    /// The size of each object, bytes, and its type.
    objects: Vec<(u32, u32)>,
    edges: Edges,
    /// Objects that roots refer to, and which root it is.
    roots: Vec<(u32, u32)>,
    root_names: Vec<Cow<'static, str>>,
    is_full: bool,
}

/// What the objects of each type keep alive, and what keeps them alive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// In the order of the requested types; `None` for one that is not known by this name.
    pub types: Vec<Option<RetainedType>>,
    /// Objects to which no known root leads.
    pub unreached: u64,
}

/// What the objects of a type keep alive, and what keeps them alive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedType {
    /// Bytes that would be freed with these objects: their own, and those of objects that only one of them leads to. Objects that several of them share
    /// are not in it, so that it is at least as much.
    pub bytes: u64,
    /// The shortest different paths from roots to objects of the type, the shortest first.
    pub paths: Vec<RootPath>,
}

/// How a root leads to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath {
    /// What kind of root it is, or the name of the static variable. Not sanitised.
    pub root: String,
    /// From the root to the object.
    pub steps: Vec<PathStep>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// Objects of a type.
    Objects {
        /// The type; empty where it is not known. Not sanitised.
        name: String,
        /// How many of them in a row.
        count: u32,
    },
    /// So many objects that are left out.
    Omitted(u32),
}

impl ObjectGraph {
    /// Room for a graph of so many objects and references; `None` where the computation would take too much memory.
    pub fn new(objects: usize, references: usize) -> Option<Self> {
        // An object: size, type, place, path, 8 numbers of the dominators. A reference: there and back.
        let bytes = (objects as u64).saturating_mul(52).saturating_add((references as u64).saturating_mul(8));
        (bytes <= MOST).then(Self::default)
    }

    /// Adds an object of a type with what it refers to. The first has the number 0.
    pub fn push(&mut self, size: u32, kind: u32, targets: impl Iterator<Item = u32>) {
        self.is_full |= !self.edges.push(targets);
        self.objects.push((size, kind));
    }

    /// Adds a root, whatever it is called. Of several that lead to an object, the first is shown.
    pub fn root(&mut self, name: impl Into<Cow<'static, str>>, objects: impl Iterator<Item = u32>) {
        let number = self.root_names.len() as u32;
        self.root_names.push(name.into());
        self.roots.extend(objects.filter(|object| (*object as usize) < self.objects.len()).map(|object| (object, number)));
    }

    /// What the first so many types keep alive, and what keeps them alive; `None` for a graph with more references than can be numbered.
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

    /// Retained bytes by type.
    fn retained(&self, Dominators { nodes, dominators, places }: &Dominators) -> Vec<u64> {
        let mut of_type = vec![0_u64; self.types.len()];
        let mut of_place: Vec<u64> = vec![0; nodes.len()];
        // Each dominates those behind it alone. Children are listed on the way.
        let (mut first, mut next) = (vec![NONE; nodes.len()], vec![NONE; nodes.len()]);
        for place in (1..nodes.len()).rev() {
            let above = dominators[place] as usize;
            of_place[place] += u64::from(self.objects[nodes[place] as usize].0);
            of_place[above] += of_place[place];
            next[place] = std::mem::replace(&mut first[above], place as u32);
        }
        // What an object of the type dominates that another of the type dominates counts once.
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
        // What no root leads to is known to hold itself.
        for ((size, kind), _) in self.objects.iter().zip(places).filter(|(_, place)| **place == NONE) {
            if let Some(bytes) = of_type.get_mut(*kind as usize) {
                *bytes += u64::from(*size);
            }
        }
        of_type
    }

    /// The shortest paths by type.
    fn paths(&self, types: usize) -> Vec<Vec<RootPath>> {
        let mut paths = vec![Vec::new(); types];
        let mut tried = vec![0; types];
        let mut left = WALKED;
        // The object before it; for the first of a path, the number of its root behind all objects.
        let mut before = vec![NONE; self.objects.len()];
        let mut queue: Vec<u32> = Vec::new();
        for ((object, _), root) in self.roots.iter().zip(self.objects.len() as u32..NONE) {
            if before[*object as usize] == NONE {
                before[*object as usize] = root;
                queue.push(*object);
            }
        }
        let mut at = 0;
        while let Some(object) = queue.get(at).copied() {
            at += 1;
            let kind = self.objects[object as usize].1 as usize;
            if kind < types && paths[kind].len() < PATHS && tried[kind] < TRIED && left > 0 {
                tried[kind] += 1;
                let path = self.path(object, &before, &mut left);
                if !paths[kind].contains(&path) {
                    paths[kind].push(path);
                }
            }
            for target in self.edges.of(object) {
                if let Some(before) = before.get_mut(*target as usize).filter(|before| **before == NONE) {
                    *before = object;
                    queue.push(*target);
                }
            }
        }
        paths
    }

    fn path(&self, object: u32, before: &[u32], left: &mut usize) -> RootPath {
        // From the object to the root: types, and how many in a row.
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
        RootPath { root: root.map(ToString::to_string).unwrap_or_default(), steps }
    }
}
