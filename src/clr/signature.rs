//! Method signatures as in the runtime's events.

use super::type_name::keyword;

/// Writes the parameters of a signature in C# syntax: `instance void  (int32,class System.String[],value class System.Guid&)` becomes `(int,
/// string[], Guid&)`. Namespaces are removed and C# keywords are used for built-in types. Writes nothing if the signature has no parameter
/// list. The output is not sanitized.
pub fn write_parameters(signature: &str, out: &mut String) {
    // Two spaces precede the parameter list, and occur nowhere else.
    let Some(start) = signature.find("  (") else { return };
    let mut rest = &signature[start + 2..];
    let mut word = Word::default();
    loop {
        let end = rest.bytes().position(|byte| b" ,()<>[]&*".contains(&byte)).unwrap_or(rest.len());
        word.text = &rest[..end];
        let delimiter = rest.as_bytes().get(end).copied().unwrap_or(b' ');
        match delimiter {
            b' ' if end < rest.len() => word.space(out),
            _ => word.end(delimiter, out),
        }
        match rest.get(end..=end) {
            None => return,
            Some(" ") => {}
            Some(",") => out.push_str(", "),
            Some(delimiter) => out.push_str(delimiter),
        }
        rest = &rest[end + 1..];
    }
}

/// A word of a signature, with the qualifiers before it.
#[derive(Default)]
struct Word<'a> {
    text: &'a str,
    unsigned: bool,
    /// Whether the next word is a modifier type, such as `IsVolatile`.
    is_modifier: bool,
}

impl Word<'_> {
    /// Handles a space: keywords such as `class` or `unsigned` are followed by the type that they belong to.
    fn space(&mut self, out: &mut String) {
        match self.text {
            // A collectible type has an address instead of a name.
            "" | "class" | "value" | "pMT:" => {}
            "unsigned" => self.unsigned = true,
            "required_modifier" | "optional_modifier" => self.is_modifier = true,
            _ if self.is_modifier => self.is_modifier = false,
            _ => {
                self.end(b' ', out);
                out.push(' ');
            }
        }
    }

    fn end(&mut self, delimiter: u8, out: &mut String) {
        let text = self.text;
        out.push_str(match (text, self.unsigned) {
            ("int8", false) => "sbyte",
            ("int8", true) => "byte",
            ("int16", false) => "short",
            ("int16", true) => "ushort",
            ("int32", false) => "int",
            ("int32", true) => "uint",
            ("int64", false) => "long",
            ("int64", true) => "ulong",
            // Native-sized integers.
            ("int", false) => "nint",
            ("int", true) => "nuint",
            ("wchar", _) => "char",
            _ if text.starts_with("0x") => "?",
            _ => match keyword(text) {
                Some(keyword) => keyword,
                None => {
                    let name = text.rsplit('.').next().filter(|name| !name.is_empty()).unwrap_or(text);
                    // The arity is redundant if the type arguments follow.
                    if delimiter == b'<' { name.split('`').next().unwrap_or(name) } else { name }
                }
            },
        });
        (self.unsigned, self.is_modifier) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_as_in_csharp() {
        // Signatures written by runtimes 3.1 and 9, and invalid ones.
        for (signature, expected) in [
            ("void  ()", "()"),
            ("instance bool  (unsigned int32&)", "(uint&)"),
            ("int32  (int,int32,unsigned int8*&)", "(nint, int, byte*&)"),
            ("void  (wchar**,wchar**,int32)", "(char**, char**, int)"),
            ("generic unsigned int  (!!0*,!!1*,unsigned int)", "(!!0*, !!1*, nuint)"),
            (
                "instance void  (class System.String,value class System.Guid*,value class EventData*,class System.String[])",
                "(string, Guid*, EventData*, string[])",
            ),
            (
                "bool  (class System.RuntimeType,bool,value class ListBuilder`1<class System.Object>&)",
                "(RuntimeType, bool, ListBuilder<object>&)",
            ),
            ("generic void  (!!0[],int32,class System.Collections.Generic.IComparer`1<!!0>)", "(!!0[], int, IComparer<!!0>)"),
            (
                "class System.Object  (class System.Func`2<value class ErrorInfo,value class System.ValueTuple`2<int64,float>>)",
                "(Func<ErrorInfo, ValueTuple<long, float>>)",
            ),
            ("class System.Object  (class System.Object,pMT: 0x7f70c7295438<class System.Object>)", "(object, ?<object>)"),
            ("void  (required_modifier System.Runtime.InteropServices.InAttribute !!0&,optional_modifier IsConst int32)", "(!!0&, int)"),
            ("instance void  (value class System.Int128,class System.Single)", "(Int128, float)"),
            ("", ""),
            ("void (int32)", ""),
            ("void  (int32", "(int"),
            ("void  (class ...)", "(...)"),
        ] {
            let mut out = String::new();
            write_parameters(signature, &mut out);
            assert_eq!(out, expected, "{signature}");
        }
    }
}
