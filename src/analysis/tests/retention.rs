//! Retained sizes and paths to roots.

use proptest::prelude::*;

use crate::analysis::{ObjectGraph, PathStep, RetainedType, Retention};

/// A graph of objects: size, type, references. Roots refer to the objects with these indexes.
fn graph(types: &[&str], objects: &[(u32, u32, &[u32])], roots: &[(&'static str, &[u32])]) -> ObjectGraph {
    let references = objects.iter().map(|(_, _, targets)| targets.len()).sum();
    let mut graph = ObjectGraph::new(objects.len(), references).unwrap();
    graph.types = types.iter().map(|name| (*name).to_owned()).collect();
    for (size, kind, targets) in objects {
        graph.push(*size, *kind, targets.iter().copied());
    }
    for (name, held) in roots {
        graph.root(*name, held.iter().copied());
    }
    graph
}

fn all(graph: &ObjectGraph) -> Retention {
    graph.retention(graph.types.len()).unwrap()
}

fn bytes(graph: &ObjectGraph) -> Vec<u64> {
    all(graph).types.into_iter().map(|of| of.unwrap().bytes).collect()
}

/// Formats each path as a single line.
fn describe_paths(of: &RetainedType) -> Vec<String> {
    let step = |step: &PathStep| match step {
        PathStep::Objects { name, count: 1 } => name.clone(),
        PathStep::Objects { name, count } => format!("{name} x{count}"),
        PathStep::Omitted(count) => format!("({count})"),
    };
    of.paths.iter().map(|path| format!("{}: {}", path.root, path.steps.iter().map(step).collect::<Vec<_>>().join(" > "))).collect()
}

#[test]
fn retained_size_per_type() {
    let types = ["Cache", "Entry", "Text"];
    for (what, objects, roots, expected) in [
        ("a chain", &[(1, 0, &[1_u32][..]), (10, 1, &[2]), (100, 2, &[])][..], &[0_u32][..], [111, 110, 100]),
        ("shared by two", &[(1, 0, &[1, 2]), (10, 1, &[3]), (10, 1, &[3]), (100, 2, &[])], &[0], [121, 20, 100]),
        ("held by another root as well", &[(1, 0, &[1]), (10, 1, &[2]), (100, 2, &[])], &[0, 2], [11, 10, 100]),
        ("a circle", &[(1, 0, &[1]), (10, 1, &[2, 0]), (100, 2, &[1])], &[0], [111, 110, 100]),
        ("a list counts once", &[(1, 0, &[1]), (10, 1, &[2]), (10, 1, &[3]), (100, 2, &[])], &[0], [121, 120, 100]),
        ("no root", &[(1, 0, &[]), (10, 1, &[2]), (100, 2, &[])], &[0], [1, 10, 100]),
        ("to itself and to nothing that is there", &[(1, 0, &[0, 9]), (10, 1, &[]), (100, 2, &[])], &[0, 7], [1, 10, 100]),
    ] {
        assert_eq!(bytes(&graph(&types, objects, &[("root", roots)])), expected, "{what}");
    }
    let unreachable = graph(&types, &[(1, 0, &[]), (10, 1, &[2]), (100, 2, &[])], &[("root", &[0])]);
    assert_eq!(all(&unreachable).unreached, 2);
}

#[test]
fn distinct_paths_to_roots_are_shown() {
    let types = ["Cache", "Entry", "Text"];
    let objects: &[(u32, u32, &[u32])] =
        &[(1, 0, &[1, 2]), (10, 1, &[3]), (10, 1, &[3, 4]), (100, 2, &[]), (100, 2, &[]), (10, 1, &[6]), (10, 1, &[7]), (100, 2, &[])];
    let graph = graph(&types, objects, &[("static App.cache", &[0]), ("local variable", &[5, 4])]);
    let found = all(&graph).types;
    assert_eq!(describe_paths(found[0].as_ref().unwrap()), ["static App.cache: Cache"]);
    assert_eq!(
        describe_paths(found[1].as_ref().unwrap()),
        ["local variable: Entry", "static App.cache: Cache > Entry"],
        "consecutive objects of one type are one step, however many there are"
    );
    assert_eq!(
        describe_paths(found[2].as_ref().unwrap()),
        ["local variable: Text", "static App.cache: Cache > Entry > Text", "local variable: Entry x2 > Text"]
    );
    assert_eq!(graph.retention(1).unwrap().types.len(), 1, "only of what was asked for");
}

/// The runtime itself holds some arrays by static variables, which are closer to the roots than what an application keeps in a list.
#[test]
fn paths_to_most_bytes_are_first() {
    let objects: &[(u32, u32, &[u32])] = &[
        (1, 2, &[]),
        (2, 2, &[]),
        (3, 2, &[]),
        (4, 2, &[]),
        (10, 0, &[5]),
        (10, 1, &[6, 7, 8]),
        (100, 2, &[]),
        (100, 2, &[]),
        (100, 2, &[]),
    ];
    let roots: [(_, &[u32]); 5] = [("static A", &[0]), ("static B", &[1]), ("static C", &[2]), ("static D", &[3]), ("static Leaked", &[4])];
    let found = all(&graph(&["List", "Bytes[]", "Bytes"], objects, &roots)).types;
    let bytes = found[2].as_ref().unwrap();
    assert_eq!(describe_paths(bytes), ["static Leaked: List > Bytes[] > Bytes", "static D: Bytes", "static C: Bytes"]);
    assert_eq!(bytes.paths.iter().map(|path| (path.objects, path.bytes)).collect::<Vec<_>>(), [(3, 300), (1, 4), (1, 3)]);
}

/// A path of a million objects is a single step if they have the same type, and is truncated in the middle otherwise.
#[test]
fn long_paths_are_condensed() {
    const LEN: u32 = 1_000_000;
    let mut list = ObjectGraph::new(LEN as usize + 1, LEN as usize).unwrap();
    list.types = ["Node", "Pair", "End"].map(str::to_owned).to_vec();
    for object in 0..LEN {
        list.push(24, u32::from(object >= LEN - 100 && object % 2 == 0), std::iter::once(object + 1));
    }
    list.push(8, 2, std::iter::empty());
    list.root("local variable", std::iter::once(0));
    let found = all(&list);
    let end = found.types[2].as_ref().unwrap();
    assert_eq!(end.paths[0].steps.len(), 25);
    let counted = |step: &PathStep| match step {
        PathStep::Objects { count, .. } | PathStep::Omitted(count) => *count,
    };
    assert_eq!(end.paths[0].steps.iter().map(counted).sum::<u32>(), LEN + 1);
    assert_eq!(found.types[0].as_ref().unwrap().bytes, 24 * u64::from(LEN) + 8);
}

#[test]
fn graph_exceeding_the_memory_limit_is_rejected() {
    assert!(ObjectGraph::new(100_000_000, 0).is_none());
    assert!(ObjectGraph::new(0, 1 << 30).is_none());
}

/// Returns the bytes that are unreachable without the object.
fn retained_bytes(objects: &[(u32, u32, Vec<u32>)], roots: &[u32], without: u32) -> u64 {
    let reached = |without: Option<u32>| {
        let mut seen = vec![false; objects.len()];
        let mut stack: Vec<u32> = roots.to_vec();
        while let Some(at) = stack.pop() {
            if Some(at) != without && !std::mem::replace(&mut seen[at as usize], true) {
                stack.extend(&objects[at as usize].2);
            }
        }
        objects.iter().zip(seen).filter(|(_, seen)| *seen).map(|((size, _, _), _)| u64::from(*size)).sum::<u64>()
    };
    let all = reached(None) - reached(Some(without));
    // An unreachable object retains itself.
    if all == 0 { objects[without as usize].0.into() } else { all }
}

proptest! {
    /// Each object has its own type, so its retained size is what is unreachable without it.
    #[test]
    fn retained_size_is_what_is_unreachable_without_the_object(
        edges in prop::collection::vec(prop::collection::vec(0_u32..24, 0..4), 24),
        roots in prop::collection::vec(0_u32..24, 1..4),
    ) {
        let objects: Vec<(u32, u32, Vec<u32>)> = edges.into_iter().zip(0..).map(|(targets, number)| (1 << (number % 12), number, targets)).collect();
        let mut graph = ObjectGraph::new(24, 96).unwrap();
        graph.types = (0..24).map(|number| number.to_string()).collect();
        for (size, kind, targets) in &objects {
            graph.push(*size, *kind, targets.iter().copied());
        }
        graph.root("root", roots.iter().copied());
        let expected: Vec<u64> = (0..24).map(|number| retained_bytes(&objects, &roots, number)).collect();
        prop_assert_eq!(bytes(&graph), expected);
        // Each path begins at a root and follows references.
        for (number, of) in all(&graph).types.into_iter().enumerate() {
            for path in of.unwrap().paths {
                let steps: Vec<u32> = path.steps.iter().map(|step| match step {
                    PathStep::Objects { name, count: 1 } => name.parse().unwrap(),
                    step => panic!("{step:?}"),
                }).collect();
                prop_assert!(roots.contains(&steps[0]));
                prop_assert!(steps.windows(2).all(|pair| objects[pair[0] as usize].2.contains(&pair[1])));
                prop_assert_eq!(*steps.last().unwrap(), number as u32);
            }
        }
    }
}
