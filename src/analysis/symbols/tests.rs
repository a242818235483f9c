use super::*;
use crate::wire::Put;

pub(in crate::analysis) fn load(symbols: &mut Symbols, start: u64, size: u32, token: u32, name: &str, flags: u32) {
    load_at(symbols, start, size, token, name, flags, 0);
}

fn load_at(symbols: &mut Symbols, start: u64, size: u32, token: u32, name: &str, flags: u32, at: i64) {
    let mut text = Vec::new();
    text.put_utf16z(name);
    let name = Utf16::new(&text[..text.len() - 2]);
    let body = MethodBody { method: 1, module: 1, start, size, token, flags };
    let mut signature = Vec::new();
    signature.put_utf16z(&format!("void  (int32,class System.Type[{token}])"));
    let signature = Utf16::new(&signature[..signature.len() - 2]);
    symbols.add(&MethodVerbose { body, namespace: Utf16::new(b"T\0"), name, signature }, at);
}

#[test]
fn method_and_module_names_are_normalized() {
    for (namespace, name, expected) in
        [("", "A", "A"), ("N.T", "A", "N.T.A"), ("N.ArraySortHelper`1[System.Int32]", "Sort", "N.ArraySortHelper<int>.Sort")]
    {
        assert_eq!(method_name(namespace, name), expected);
    }
    let mut symbols = Symbols::default();
    load(&mut symbols, 100, 10, 1, "A", 0x188);
    for (path, module) in [("/a/b/Shop.dll", "Shop"), ("C:\\a\\Shop.ni.exe", "Shop"), ("Shop.ni.dll", "Shop"), ("Omni", "Omni")] {
        let path_id = symbols.names.add_str(path);
        symbols.modules.insert(1, path_id);
        assert_eq!(symbols.module(symbols.find(100).unwrap()), module, "{path}");
    }
}

#[test]
fn number_of_unloaded_bodies_is_limited() {
    let mut symbols = Symbols::default();
    load(&mut symbols, 1, 9, 1, "A", 0x188);
    load(&mut symbols, 10, 10, 2, "B", 0x288);
    symbols.unload(10, 0);
    symbols.unload(15, 0);
    assert_eq!((symbols.frame_name(10), symbols.osr_code().count()), ("T.B".to_owned(), 1), "samples of it may follow");
    for number in 2..=UNLOADED as u64 {
        load(&mut symbols, number * 10, 10, 2, "B", 0x188);
        symbols.unload(number * 10, 0);
    }
    assert_eq!(symbols.bodies(), UNLOADED + 1);
    // The address range of the oldest is reused.
    load(&mut symbols, 10, 10, 3, "C", 0x188);
    for number in UNLOADED as u64 + 1..=2 * UNLOADED as u64 {
        load(&mut symbols, number * 10, 10, 2, "B", 0x188);
        symbols.unload(number * 10, 0);
    }
    assert_eq!((symbols.bodies(), symbols.osr_code().count()), (UNLOADED + 2, 0));
    let found = [1, 10, 20, UNLOADED as u64 * 10, UNLOADED as u64 * 10 + 10].map(|address| symbols.frame_name(address));
    assert_eq!(found, ["T.A", "T.C", "0x14", &format!("{:#x}", UNLOADED * 10), "T.B"]);
}

#[test]
fn loads_and_unloads_may_arrive_out_of_order() {
    let mut symbols = Symbols::default();
    let unloaded = |symbols: &Symbols| symbols.bodies.values().map(Body::is_unloaded).collect::<Vec<_>>();
    // The unload event arrives first.
    symbols.unload(10, 5);
    load_at(&mut symbols, 10, 10, 1, "A", 0x188, 3);
    assert_eq!((unloaded(&symbols), symbols.frame_name(10)), (vec![true], "T.A".to_owned()));
    // The range is reused: the unload events of both bodies arrive after the second load event.
    load_at(&mut symbols, 20, 10, 2, "B", 0x188, 6);
    load_at(&mut symbols, 20, 10, 3, "C", 0x188, 8);
    symbols.unload(20, 7);
    assert_eq!(unloaded(&symbols), [true, false]);
    symbols.unload(20, 9);
    symbols.unload(20, 9);
    assert_eq!((unloaded(&symbols), symbols.unloaded.len()), (vec![true, true], 2));
    // The unload event belongs to a body loaded before the session.
    symbols.unload(30, 4);
    load_at(&mut symbols, 30, 10, 4, "D", 0x188, 5);
    assert_eq!(unloaded(&symbols), [true, true, false]);
    // Another session names the body.
    symbols.unload(50, 4);
    let mut other = Symbols::default();
    load(&mut other, 50, 10, 5, "E", 0x188);
    symbols.merge(&other);
    assert_eq!(unloaded(&symbols), [true, true, false, true]);
    for start in 100..100 + 2 * UNLOADED as u64 {
        symbols.unload(start, 0);
    }
    assert!(symbols.early_unloads.len() <= UNLOADED);
}

#[test]
fn bodies_of_the_same_method_are_merged() {
    let mut symbols = Symbols::default();
    load(&mut symbols, 100, 10, 1, "A", 0x188);
    load(&mut symbols, 200, 20, 1, "A", 0x208);
    load(&mut symbols, 110, 5, 2, "B", 0x188);
    load(&mut symbols, 100, 10, 1, "A", 0x188);
    assert_eq!((symbols.bodies(), symbols.methods()), (3, 2));
    let found: Vec<_> = [99, 100, 109, 110, 114, 115, 219, 220].iter().map(|address| symbols.frame_name(*address)).collect();
    assert_eq!(found, ["0x63", "T.A", "T.A", "T.B", "T.B", "0x73", "T.A", "0xdc"]);
    assert_eq!(symbols.tiers(symbols.find(100).unwrap()), [Tier::Tier0, Tier::Tier1]);
    load(&mut symbols, 220, 5, 2, "B", 0x188);
    assert_eq!([219, 220].map(|address| symbols.frame_name(address)), ["T.A", "T.B"], "next to each other");
    load(&mut symbols, 105, 100, 3, "C", 0x188);
    let found: Vec<_> = [100, 105, 200, 204, 205].iter().map(|address| symbols.frame_name(*address)).collect();
    assert_eq!(found, ["0x64", "T.C", "T.C", "T.C", "0xcd"], "a place that is used again");
    load(&mut symbols, 105, 100, 4, "D", 0x188);
    assert_eq!(symbols.frame_name(105), "T.D");
    let mut other = Symbols::default();
    load(&mut other, 50, 60, 1, "X", 0x188);
    load(&mut other, 300, 10, 1, "A", 0x100);
    symbols.merge(&other);
    assert_eq!([50, 105, 300].map(|address| symbols.frame_name(address)), ["0x32", "T.D", "T.A"], "what is known stays");
    let method = symbols.find(300).unwrap();
    assert_eq!((symbols.tiers(method).len(), symbols.parameters(method)), (3, "(int, Type[1])"));
    load(&mut symbols, u64::MAX - 1, 100, 5, "E", 0);
    load(&mut symbols, 0, 0, 6, "F", 0);
    assert_eq!(symbols.frame_name(u64::MAX), "T.E");
    assert_eq!(symbols.frame_name(0), "0x0");
}
