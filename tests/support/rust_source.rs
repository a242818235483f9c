//! Rust sources as tokens, and the paths used in them.

/// Splits a source into words, `::`, and other single characters.
pub(crate) fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(string) = string(rest) {
            string
        } else if first == '\'' {
            character_or_lifetime(rest)
        } else if word > 0 {
            tokens.push(rest[..word].to_owned());
            word
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                tokens.push(rest[..length].to_owned());
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let step = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        depth += step.0;
        at += step.1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Returns the length of the string literal, plain or raw, at the start of the text.
fn string(text: &str) -> Option<usize> {
    let prefixed = text.trim_start_matches(['b', 'c']);
    let open = text.len() - prefixed.len();
    let raw = prefixed.strip_prefix('r').map(|raw| (raw, raw.bytes().take_while(|byte| *byte == b'#').count()));
    if let Some((raw, hashes)) = raw.filter(|(raw, hashes)| raw[*hashes..].starts_with('"')) {
        let close = format!("\"{}", "#".repeat(hashes));
        let start = hashes + 1;
        return Some(open + 1 + start + raw[start..].find(&close)? + close.len());
    }
    let mut escaped = false;
    let close = prefixed.strip_prefix('"')?.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    close.map(|close| open + close + 2)
}

fn character_or_lifetime(text: &str) -> usize {
    let mut inside = text[1..].char_indices();
    match inside.next() {
        Some((_, '\\')) => 3 + text[3..].find('\'').unwrap() + 1,
        Some((_, c)) if text[1 + c.len_utf8()..].starts_with('\'') => c.len_utf8() + 2,
        _ => 1,
    }
}

/// Removes test-only items from the tokens.
pub(crate) fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if !rest.iter().take(attribute.len()).eq(attribute.iter()) {
            kept.push(first.clone());
            rest = after;
            continue;
        }
        let mut depth = 0;
        let end = rest[attribute.len()..].iter().position(|token| {
            depth += i32::from(token == "{") - i32::from(token == "}");
            depth == 0 && (token == ";" || token == "}")
        });
        rest = &rest[attribute.len() + end.unwrap() + 1..];
    }
    kept
}

/// Returns every path of two names or more, with `use` trees expanded, and `self` and `super` resolved to `crate::`.
pub(crate) fn paths(file_module: &[String], tokens: &[String]) -> Vec<String> {
    let mut module = file_module.to_vec();
    // For each open brace, whether it opened a module.
    let mut braces = Vec::new();
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => {
                module.push(tokens[at + 1].clone());
                braces.push(true);
                at += 2;
            }
            "{" => braces.push(false),
            "}" if braces.pop() == Some(true) => _ = module.pop(),
            "use" => {
                at = tree(tokens, at + 1, &[], &mut |path| found.push(resolve(&module, path)));
                continue;
            }
            token if is_name(token) && tokens.get(at + 1).is_some_and(|next| next == "::") => {
                at = tree(tokens, at, &[], &mut |path| found.push(resolve(&module, path)));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads one path or `use` tree at `at`, passes each path in it to `visit`, and returns its end.
fn tree(tokens: &[String], mut at: usize, before: &[&str], visit: &mut impl FnMut(&[&str])) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("::") => at += 1,
            Some("{") => {
                at += 1;
                while tokens[at] != "}" {
                    at = if tokens[at] == "," { at + 1 } else { tree(tokens, at, &path, visit).max(at + 1) };
                }
                return at + 1;
            }
            Some(token) if is_name(token) || token == "*" => {
                path.push(token);
                at += 1;
                if tokens.get(at).is_none_or(|next| next != "::") {
                    break;
                }
            }
            // `Type::<T>`, `<T>::f`: the rest is read as separate paths.
            _ => break,
        }
    }
    if tokens.get(at).is_some_and(|token| token == "as") {
        at += 2;
    }
    visit(&path);
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn resolve(module: &[String], path: &[&str]) -> String {
    let supers = path.iter().take_while(|name| **name == "super").count();
    let (base, rest): (&[String], &[&str]) = match path.first() {
        Some(&"crate" | &"dn_top") => (&[], &path[1..]),
        Some(&"self") => (module, &path[1..]),
        Some(&"super") => (&module[..module.len().saturating_sub(supers)], &path[supers..]),
        _ => return path.join("::"),
    };
    base.iter().map(String::as_str).chain(rest.iter().copied()).fold("crate".to_owned(), |whole, name| whole + "::" + name)
}
