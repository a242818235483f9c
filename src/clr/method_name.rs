//! Names of methods as they are in the source, where a compiler made others of them.

use super::type_name::{TypeArguments, write_type_name};

/// Methods within methods that are read, as in a lambda of a lambda.
const DEPTH: usize = 8;

/// Writes type and name of a method with a dot between, as they are in the source: type arguments as [`write_type_name`] writes them, and what C#'s compilers make of a
/// method under the name of that method.
///
/// The body of an asynchronous method or an iterator, `Shop+<Load>d__3.MoveNext`, is `Shop.Load`; a lambda, `Shop+<>c.<Load>b__3_0`, is `Shop.Load.lambda_3_0`; a
/// local function, `Shop.<Load>g__Read|3_1`, is `Shop.Load.Read`; `Program.<Main>$` is `Program.Main`. Other names stay as they are. Not sanitised.
///
/// Source: `GeneratedNames.cs` of dotnet/roslyn, and what Mono's mcs wrote into the programs of the tests.
pub fn write_method_name(class: &str, method: &str, out: &mut String) {
    let mut written = String::with_capacity(class.len());
    write_type_name(class, TypeArguments::Short, &mut written);
    let class = without_closure(&written);
    let (outer, innermost) = split_nested(class);
    match state_machine(innermost).filter(|_| method == "MoveNext") {
        Some((source, arguments)) => {
            write_class(without_closure(outer), out);
            write_source(source, DEPTH, out);
            out.push_str(arguments);
        }
        None => {
            // What a compiler adds to a closure beside methods of the source is named with it.
            write_class(if method.starts_with('<') { class } else { &written }, out);
            // Mono names the method of the source in the closure.
            let closure = written.strip_prefix(class).and_then(|rest| generated(rest.strip_prefix('+').unwrap_or(rest)));
            match (closure, method.strip_prefix("<>m__")) {
                (Some((source, _)), Some(number)) if !source.is_empty() => {
                    write_source(source, DEPTH, out);
                    out.push_str(".lambda_");
                    out.push_str(number);
                }
                _ => write_source(method, DEPTH, out),
            }
        }
    }
}

fn write_class(class: &str, out: &mut String) {
    out.push_str(class);
    if !class.is_empty() {
        out.push('.');
    }
}

/// Writes a method of the source by what a compiler made of its name.
fn write_source(name: &str, depth: usize, out: &mut String) {
    let parts = generated(name).filter(|(source, _)| !source.is_empty() && depth > 0);
    let part = parts.and_then(|(source, rest)| {
        Some(match rest {
            "$" => (source, "", ""),
            _ if rest.starts_with("g__") => (source, ".", rest[3..].split('|').next().unwrap_or_default()),
            // Roslyn's and Mono's.
            _ => (source, ".lambda_", rest.strip_prefix("b__").or_else(|| rest.strip_prefix("m__"))?),
        })
    });
    match part {
        Some((source, mark, name)) => {
            write_source(source, depth - 1, out);
            out.push_str(mark);
            out.push_str(name);
        }
        None => out.push_str(name),
    }
}

/// The method that the type of a state machine was made of, and its type arguments in angle brackets.
fn state_machine(name: &str) -> Option<(&str, &str)> {
    let (source, rest) = generated(name)?;
    let (kind, arguments) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
    // Roslyn's, that of a lambda, and Mono's.
    let is_one = kind == "d" || ["d__", "c__async", "c__Iterator"].iter().any(|start| kind.starts_with(start));
    (is_one && !source.is_empty()).then_some((source, arguments))
}

/// A type without the innermost one where that one only holds the variables of lambdas.
fn without_closure(class: &str) -> &str {
    let (outer, innermost) = split_nested(class);
    let is_closure = innermost.starts_with("<>c") || generated(innermost).is_some_and(|(_, rest)| rest.starts_with("c__AnonStorey"));
    if is_closure { outer } else { class }
}

/// The type around the innermost one, and that one.
fn split_nested(class: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, byte) in class.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' => depth = depth.saturating_sub(1),
            b'+' if depth == 0 => return (&class[..at], &class[at + 1..]),
            _ => {}
        }
    }
    ("", class)
}

/// What stands in the angle brackets that a generated name begins with, and what stands behind them.
fn generated(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if depth == 1 => return Some((&name[1..at], &name[at + 1..])),
            b'>' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(class: &str, method: &str) -> String {
        let mut out = String::new();
        write_method_name(class, method, &mut out);
        out
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (class, method, expected) in [
            // Names that .NET 3.1, 8, 9 and 10 reported.
            ("Work", "Main", "Work.Main"),
            ("", "IL_STUB_PInvoke", "IL_STUB_PInvoke"),
            ("System.Collections.Generic.List`1[System.Int32]", "Add", "System.Collections.Generic.List<int>.Add"),
            ("Kestrel.HttpProtocol+<ProcessRequests>d__238`1[System.__Canon]", "MoveNext", "Kestrel.HttpProtocol.ProcessRequests<__Canon>"),
            ("Kestrel.Connection`1+<ExecuteAsync>d__8[System.__Canon]", "MoveNext", "Kestrel.Connection<__Canon>.ExecuteAsync"),
            ("System.Linq.Enumerable+<RangeIterator>d__2", "MoveNext", "System.Linq.Enumerable.RangeIterator"),
            (
                "System.Linq.Enumerable+<RangeIterator>d__2",
                "System.IDisposable.Dispose",
                "System.Linq.Enumerable+<RangeIterator>d__2.System.IDisposable.Dispose",
            ),
            ("Work", "<Main>m__0", "Work.Main.lambda_0"),
            ("Work+<Read>c__async0", "MoveNext", "Work.Read"),
            ("Work+<Read>c__Iterator1", "MoveNext", "Work.Read"),
            ("Work+<Main>c__AnonStorey2", "<>m__0", "Work.Main.lambda_0"),
            ("<Main>c__AnonStorey2", "<>m__0", "Main.lambda_0"),
            ("Work", "<>m__0", "Work.<>m__0"),
            ("Program+<>c", "<Main>b__0_3", "Program.Main.lambda_0_3"),
            ("Program+<>c", ".cctor", "Program+<>c..cctor"),
            ("Program+<>c__DisplayClass5_0`1[System.Int32]", "<Sort>b__2", "Program.Sort.lambda_2"),
            ("Program+<>c+<<Main>b__0_0>d", "MoveNext", "Program.Main.lambda_0_0"),
            ("Program+<>c__DisplayClass0_0+<<<Main>$>b__1>d", "MoveNext", "Program.Main.lambda_1"),
            ("Program", "<<Main>$>g__Compute|0_5", "Program.Main.Compute"),
            ("Program", "<Main>$", "Program.Main"),
            ("Program+<<Main>$>d__0", "MoveNext", "Program.Main"),
            // Not generated, or by nothing that is known.
            ("<PrivateImplementationDetails>", "ComputeStringHash", "<PrivateImplementationDetails>.ComputeStringHash"),
            ("Shop", "MoveNext", "Shop.MoveNext"),
            ("Shop", "<Load>k__BackingField", "Shop.<Load>k__BackingField"),
            ("Shop+<>d__1", "MoveNext", "Shop+<>d__1.MoveNext"),
            ("Shop", "<Load", "Shop.<Load"),
            ("Shop", ">", "Shop.>"),
            ("", "", ""),
        ] {
            assert_eq!(name(class, method), expected);
        }
    }

    proptest! {
        #[test]
        fn any_name_is_written(class in "[+<>a`1\\[\\],|.$é]{0,24}", method in "(MoveNext|[+<>ab_$|é]{0,24})") {
            prop_assert!(name(&class, &method).len() <= 2 * (class.len() + method.len()) + 64);
        }

        #[test]
        fn nested_names_end(depth in 0_usize..10_000) {
            prop_assert!(name("", &("<".repeat(depth) + "M" + &">b__0".repeat(depth))).len() < 32 + 8 * (depth + 1));
        }
    }
}
