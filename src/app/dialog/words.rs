//! Splitting typed text into words.

/// Splits at whitespace outside double quotes.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut quoted = false;
    let split = |c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    };
    text.split(split).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Splits like a shell, handling quotes and backslashes only; `None` if a quote or an escape is incomplete.
pub(super) fn shell_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                let next = chars.next()?;
                let word = word.get_or_insert_default();
                // Within double quotes a backslash is literal unless it precedes a special character.
                if quote.is_some() && !"\"\\$`".contains(next) {
                    word.push(c);
                }
                word.push(next);
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split() {
        assert_eq!(words(" a  b:1:verbose:k=\"x y\" c "), ["a", "b:1:verbose:k=\"x y\"", "c"]);
        let shell = |text| shell_words(text);
        assert_eq!(
            shell(r#" dotnet 'my app.dll' --name "a \"b\"" '' x\ y "#).unwrap(),
            ["dotnet", "my app.dll", "--name", "a \"b\"", "", "x y"]
        );
        assert_eq!(shell(r#"printf "a\n\$b" '\t' c\d"#).unwrap(), ["printf", "a\\n$b", "\\t", "cd"]);
        assert_eq!(shell("  ").unwrap(), [""; 0]);
        for open in ["'a", "\"a", "a\\"] {
            assert_eq!(shell(open), None, "{open}");
        }
    }
}
