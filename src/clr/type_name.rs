//! Type names: from the runtime's syntax to C# syntax.

/// Maximum nesting of type arguments.
const MAX_DEPTH: usize = 16;
/// Maximum number of type arguments.
const MAX_ARITY: usize = 64;

/// Format of the type arguments in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeArguments {
    /// Without namespaces, with C# keywords for built-in types: `Dictionary<string, int[]>`.
    Short,
    /// Fully qualified, as in dotnet-gcdump: `Dictionary<System.String,System.Int32[]>`.
    Full,
}

/// Returns a type name with its type arguments in angle brackets, after the type that they belong to:
/// ``System.Collections.Generic.Dictionary`2[System.String,System.Int32]`` becomes `System.Collections.Generic.Dictionary<string, int>`. If
/// the name has no type arguments, only their commas are written. Some events name a nested type without the type that it is nested in, but with the
/// type arguments of that: `Entry[System.Int32,System.String]` becomes `Entry<int, string>`. A malformed name is unchanged. The result is not
/// sanitized.
pub fn type_name(name: &str, arguments: TypeArguments) -> String {
    // The brackets of an array contain at most commas, and those of an array of unknown bounds an asterisk.
    let has_arguments = || name.split('[').skip(1).any(|rest| !rest.starts_with([']', ',', '*']));
    if !name.contains('`') && !has_arguments() {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let mut parser = Parser { rest: name, arguments };
    let is_parsed = parser.write(&mut out, false, MAX_DEPTH).is_some() && parser.rest.is_empty();
    // A few bytes can stand for 64 commas: a real name has one such list.
    if is_parsed && out.len() <= 2 * name.len() + MAX_ARITY { out } else { name.to_owned() }
}

/// Returns the C# keyword of a built-in type, given its full name.
pub(super) fn keyword(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("System.")? {
        "Boolean" => "bool",
        "Byte" => "byte",
        "SByte" => "sbyte",
        "Char" => "char",
        "Int16" => "short",
        "UInt16" => "ushort",
        "Int32" => "int",
        "UInt32" => "uint",
        "Int64" => "long",
        "UInt64" => "ulong",
        "IntPtr" => "nint",
        "UIntPtr" => "nuint",
        "Single" => "float",
        "Double" => "double",
        "Decimal" => "decimal",
        "String" => "string",
        "Object" => "object",
        _ => return None,
    })
}

struct Parser<'a> {
    rest: &'a str,
    arguments: TypeArguments,
}

/// A type or nested type, with the number of its own type arguments.
struct Segment<'a> {
    name: &'a str,
    arity: usize,
}

impl<'a> Parser<'a> {
    /// Parses and writes a type; a type argument is written in the selected format.
    fn write(&mut self, out: &mut String, is_argument: bool, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let mut segments = Vec::new();
        loop {
            let end = self.rest.find(['+', '[', ']', ',', '`', '*', '&']).unwrap_or(self.rest.len());
            let (name, rest) = self.rest.split_at(end);
            self.rest = rest;
            segments.push(Segment { name, arity: self.arity()? });
            match self.rest.strip_prefix('+') {
                Some(rest) => self.rest = rest,
                None => break,
            }
        }
        let mut arity: usize = segments.iter().map(|segment| segment.arity).sum();
        let mut written = Vec::new();
        if self.rest.starts_with('[') && !self.rest[1..].starts_with([']', ',', '*']) {
            loop {
                self.rest = &self.rest[1..];
                let mut argument = String::new();
                self.write(&mut argument, true, depth)?;
                written.push(argument);
                match self.rest.as_bytes().first()? {
                    b',' => {}
                    b']' => break,
                    _ => return None,
                }
            }
            self.rest = &self.rest[1..];
            if let [only] = &mut segments[..]
                && !only.name.is_empty()
                && written.len() > arity
            {
                // The first ones are those of the type that it is nested in.
                (only.arity, arity) = (written.len(), written.len());
            }
            if written.len() != arity {
                return None;
            }
        }
        let is_short = is_argument && self.arguments == TypeArguments::Short;
        let mut written = written.into_iter();
        for (index, Segment { name, arity }) in segments.iter().enumerate() {
            if index > 0 {
                out.push('+');
            }
            match keyword(name).filter(|_| is_short && segments.len() == 1) {
                Some(keyword) => out.push_str(keyword),
                // A name that ends with a dot has no namespace to strip.
                None if is_short && index == 0 => out.push_str(name.rsplit('.').next().filter(|name| !name.is_empty()).unwrap_or(name)),
                None => out.push_str(name),
            }
            if *arity > 0 {
                out.push('<');
                for place in 0..*arity {
                    if place > 0 {
                        out.push_str(if self.arguments == TypeArguments::Short && written.len() > 0 { ", " } else { "," });
                    }
                    out.push_str(&written.next().unwrap_or_default());
                }
                out.push('>');
            }
        }
        self.suffixes(out)
    }

    /// Parses the arity after a type name; 0 if there is none.
    fn arity(&mut self) -> Option<usize> {
        let Some(rest) = self.rest.strip_prefix('`') else { return Some(0) };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let arity = rest[..end].parse().ok().filter(|arity| *arity <= MAX_ARITY)?;
        self.rest = &rest[end..];
        Some(arity)
    }

    /// Parses and writes array, pointer and reference suffixes.
    fn suffixes(&mut self, out: &mut String) -> Option<()> {
        while let Some(first) = self.rest.chars().next() {
            let length = match first {
                '*' | '&' => 1,
                '[' => self.rest.find(']').filter(|end| self.rest[1..*end].bytes().all(|byte| byte == b','))? + 1,
                _ => break,
            };
            let (suffix, rest) = self.rest.split_at(length);
            out.push_str(suffix);
            self.rest = rest;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn type_names_are_written_as_in_csharp() {
        // Names written by runtimes 3.1, 9 and 10, and invalid ones.
        for (name, short, full) in [
            ("System.String", "System.String", "System.String"),
            ("", "", ""),
            (
                "System.Collections.Generic.ArraySortHelper`1[System.Int32]",
                "System.Collections.Generic.ArraySortHelper<int>",
                "System.Collections.Generic.ArraySortHelper<System.Int32>",
            ),
            (
                "System.Collections.Generic.Dictionary`2[System.UInt64,System.__Canon]",
                "System.Collections.Generic.Dictionary<ulong, __Canon>",
                "System.Collections.Generic.Dictionary<System.UInt64,System.__Canon>",
            ),
            (
                "System.Collections.Generic.Dictionary`2+Entry[System.String,System.Int32[]][]",
                "System.Collections.Generic.Dictionary<string, int[]>+Entry[]",
                "System.Collections.Generic.Dictionary<System.String,System.Int32[]>+Entry[]",
            ),
            ("A`1+B`2[X.P,Y.Q,Z.R]", "A<P>+B<Q, R>", "A<X.P>+B<Y.Q,Z.R>"),
            ("A`1[N.B`1[N.C+D[,]]]", "A<B<C+D[,]>>", "A<N.B<N.C+D[,]>>"),
            ("Shop.<>c__DisplayClass5_0`1[System.Byte*]", "Shop.<>c__DisplayClass5_0<byte*>", "Shop.<>c__DisplayClass5_0<System.Byte*>"),
            ("List`1", "List<>", "List<>"),
            ("List`1[]", "List<>[]", "List<>[]"),
            ("Map`2", "Map<,>", "Map<,>"),
            // Nested types without the type that they are nested in, in heap walks of .NET 10.
            (
                "Entry[System.Int32,System.Diagnostics.Tracing.EventSource+EventMetadata][]",
                "Entry<int, EventSource+EventMetadata>[]",
                "Entry<System.Int32,System.Diagnostics.Tracing.EventSource+EventMetadata>[]",
            ),
            ("Lookup`1[A.B,A.C[]]", "Lookup<B, C[]>", "Lookup<A.B,A.C[]>"),
            ("Map`1[Entry[A.B]]", "Map<Entry<B>>", "Map<Entry<A.B>>"),
            ("A[*]", "A[*]", "A[*]"),
            ("A[B", "A[B", "A[B"),
            ("A`2[B]", "A`2[B]", "A`2[B]"),
            ("A`1[B", "A`1[B", "A`1[B"),
            ("A`1[B]C", "A`1[B]C", "A`1[B]C"),
            ("A`", "A`", "A`"),
            ("A`99", "A`99", "A`99"),
            ("A`1[[B, Version=1]]", "A`1[[B, Version=1]]", "A`1[[B, Version=1]]"),
        ] {
            assert_eq!(type_name(name, TypeArguments::Short), short, "{name}");
            assert_eq!(type_name(name, TypeArguments::Full), full, "{name}");
        }
        let deep = format!("{}X{}", "A`1[".repeat(100), "]".repeat(100));
        assert_eq!(type_name(&deep, TypeArguments::Short), deep, "no more than is sensible");
        let wide = "A`64+B`64".to_owned();
        assert_eq!(type_name(&wide, TypeArguments::Full), wide, "a few bytes stand for many commas");
        let arguments = "A`64[".to_owned() + &["B"; 64].join(",") + "]";
        assert_eq!(type_name(&arguments, TypeArguments::Short), format!("A<{}>", ["B"; 64].join(", ")));
    }

    proptest! {
        #[test]
        fn output_length_is_bounded_for_any_name(name in "[A-Za`.+*&\\[\\],0-9é]{0,40}") {
            let written = type_name(&name, TypeArguments::Short);
            prop_assert!(written.len() <= 2 * name.len() + MAX_ARITY);
        }
    }
}
