//! Detection and masking of secrets in names and texts, for environments, command lines, and what is copied from them.

use std::borrow::Cow;
use std::ops::Range;

use super::{SafeText, sanitize};

use crate::sorting::CompactSort;

/// Replacement of a secret.
const MASK: &str = "***";

/// Secret words of a name, delimited by separators or camel case: `GITHUB_TOKEN`, `authCookie`. Also matched as plural, and with a number appended.
const SECRET_WORDS: [&str; 13] =
    ["TOKEN", "SECRET", "PASS", "SSHPASS", "PWD", "PW", "PAT", "SESSION", "JWT", "BEARER", "AUTH", "AUTHORIZATION", "COOKIE"];
/// Secret suffixes of words without a separator: `GITHUBTOKEN`.
const SECRET_SUFFIXES: [&str; 3] = ["TOKEN", "SECRET", "PWD"];
/// Substrings that make any name secret, with or without separators: `API_KEY`, `ApiKey`, `APIKEY`, `PGPASSWORD`.
const SECRET_SUBSTRINGS: [&str; 16] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "ACCOUNTKEY",
    "PRIVATEKEY",
    "SHAREDKEY",
    "SECRETKEY",
    "MASTERKEY",
    "SIGNINGKEY",
    "ENCRYPTIONKEY",
    "INSTRUMENTATIONKEY",
    "CONNECTIONSTRING",
    "SHAREDACCESSSIGNATURE",
];
/// Last words of names that denote a location, not a secret.
const LOCATION_WORDS: [&str; 6] = ["SOCK", "SOCKET", "FILE", "PATH", "DIR", "DIRECTORY"];
/// Keys in URLs that are not words of names: signatures of shared access and of cloud storage.
const URL_KEYS: [&str; 2] = ["SIG", "SIGNATURE"];

/// Whether a name is that of a secret. `PWD` and `OLDPWD` are a shell's directories, and the key in an assembly name is public.
pub(super) fn is_secret_name(name: &str) -> bool {
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let words = words(name);
    let joined = words.concat();
    if words.last().is_some_and(|last| LOCATION_WORDS.contains(&last.as_str())) || joined.ends_with("PUBLICKEYTOKEN") {
        return false;
    }
    let is_secret = |word: &String| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let singular = word.strip_suffix('S').unwrap_or(word);
        word == "SAS"
            || SECRET_WORDS.iter().any(|secret| *secret == word || *secret == singular)
            || SECRET_SUFFIXES.iter().any(|end| singular.ends_with(end))
    };
    words.iter().any(is_secret) || SECRET_SUBSTRINGS.iter().any(|part| joined.contains(part))
}

/// Returns the upper-case words of a name, split at separators and camel case boundaries.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut before) = (vec![String::new()], None);
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let before = before.replace(c);
        let ends_capitals = characters.peek().is_some_and(|after| after.is_lowercase());
        let begins_word =
            c.is_uppercase() && before.is_some_and(|before: char| before.is_lowercase() || before.is_ascii_digit() || ends_capitals);
        if begins_word || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns a command line as it is displayed, stored and searched: sanitized, with secrets masked.
pub fn shown_command_line(text: &str) -> SafeText {
    SafeText::new(&mask_secrets(&sanitize(text)))
}

/// Whether a text contains a secret, whatever its name.
pub(super) fn contains_secret(text: &str) -> bool {
    !secrets(text).is_empty()
}

/// Replaces each secret in a text by `***`: passwords in URLs, values of keys and options with secret names, tokens, keys in PEM form. If the end
/// of a secret is ambiguous, more is masked rather than less: in a command line, blanks within an argument look like those between arguments. Takes
/// linear time.
pub(super) fn mask_secrets(text: &str) -> Cow<'_, str> {
    let found = secrets(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut masked, mut at) = (String::with_capacity(text.len()), 0);
    for range in found {
        masked.push_str(&text[at..range.start]);
        masked.push_str(MASK);
        at = range.end;
    }
    masked.push_str(&text[at..]);
    Cow::Owned(masked)
}

/// Returns the ranges of secrets in a text, sorted and disjoint.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    for find in [url_passwords, assignments, options, bearer_tokens, web_tokens, pem] {
        // Each search reports in order, and does not search within what it has found: that would take quadratic time.
        find(text, &mut Found { all: &mut all, end: 0 });
    }
    all.compact_sort_by_key(|range: &Range<usize>| range.start);
    all.dedup_by(|next, before| {
        let touches = next.start <= before.end;
        if touches {
            before.end = before.end.max(next.end);
        }
        touches
    });
    all.retain(|range| &text[range.clone()] != MASK);
    all
}

/// The results of one search.
struct Found<'a> {
    all: &'a mut Vec<Range<usize>>,
    /// End of the latest result.
    end: usize,
}

impl Found<'_> {
    fn add(&mut self, range: Range<usize>) {
        self.end = range.end;
        if !range.is_empty() {
            self.all.push(range);
        }
    }

    fn covers(&self, at: usize) -> bool {
        at < self.end
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

/// `scheme://user:PASSWORD@host`.
fn url_passwords(text: &str, found: &mut Found<'_>) {
    let mut at = 0;
    for piece in text.split_inclusive(|c: char| c.is_whitespace() || is_quote(c)) {
        let start = at;
        at += piece.len();
        let last_at = piece.rfind('@');
        for (separator, _) in piece.match_indices("://") {
            let authority = separator + 3;
            if found.covers(start + authority) {
                continue;
            }
            let length = piece[authority..].find(['/', '?', '#']).unwrap_or(piece.len() - authority);
            let Some(colon) = piece[authority..authority + length].find(':') else { continue };
            let password = authority + colon + 1;
            let end = match piece[authority..authority + length].rfind('@') {
                Some(end) => authority + end,
                // A password may contain a slash, although that is invalid. A number is a port.
                None => match last_at {
                    Some(end) if !is_port(&piece[password..]) => end,
                    _ => continue,
                },
            };
            if end > password {
                found.add(start + password..start + end);
            }
        }
    }
}

fn is_port(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '*');
    rest.len() < text.len() && rest.chars().next().is_none_or(|c| !c.is_alphanumeric())
}

/// `NAME=VALUE`, `NAME: VALUE`, `"NAME":"VALUE"` and `--NAME:VALUE` in command lines, connection strings, addresses, headers and JSON.
fn assignments(text: &str, found: &mut Found<'_>) {
    // Names lie between separators, so that no part of the text is scanned twice.
    let (mut after_equals, mut after_colon) = (0, 0);
    for (at, separator) in text.match_indices(['=', ':']) {
        let is_colon = separator == ":";
        let from = if is_colon { after_colon.max(after_equals) } else { after_equals };
        let name = name_before(&text[from..at], !is_colon);
        if is_colon {
            after_colon = at + 1;
        } else {
            after_equals = at + 1;
        }
        if found.covers(at) || name.is_empty() {
            continue;
        }
        let is_key = || {
            let last = name.rsplit(['-', '_', '.']).next().unwrap_or(name);
            URL_KEYS.iter().any(|key| last.eq_ignore_ascii_case(key))
        };
        if !(is_secret_name(name) || !is_colon && is_key()) {
            continue;
        }
        let before = text[..at].trim_end_matches(is_quote);
        let before = &before[..before.len() - name.len()];
        let rest = &text[at + 1..];
        let start = at + 1 + if is_colon { rest.len() - rest.trim_start_matches(' ').len() } else { 0 };
        let value = &text[start..];
        let is_option = before.ends_with(['-', '/']) && !before.ends_with("//");
        if is_colon && start == at + 1 && !is_option && !value.starts_with(is_quote) {
            continue;
        }
        let length = if before.ends_with(['?', '&']) {
            value.find(|c: char| c.is_whitespace() || c == '&' || is_quote(c)).unwrap_or(value.len())
        } else {
            value_length(value, if is_colon { "" } else { ";" })
        };
        found.add(start..start + length);
    }
}

/// Returns the name at the end of a text, which may be quoted. Configuration keys may contain colons.
fn name_before(text: &str, with_colons: bool) -> &str {
    let text = text.trim_end_matches(is_quote);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || with_colons && c == ':';
    let start = text.char_indices().rev().take_while(|(_, c)| is_part(*c)).last().map_or(text.len(), |(start, _)| start);
    text[start..].trim_start_matches('-')
}

/// Returns the length of the value at the start of a text: up to the closing quote, the next quote, option or one of `ends`, or the end of the
/// text.
fn value_length(text: &str, ends: &str) -> usize {
    if let Some(rest) = text.strip_prefix(MASK)
        && rest.chars().next().is_none_or(|c| c.is_whitespace() || is_quote(c) || matches!(c, '}' | ',') || ends.contains(c))
    {
        // Already masked.
        return MASK.len();
    }
    if let Some(quote) = text.chars().next().filter(|c| is_quote(*c)) {
        let mut is_escaped = true;
        let end = text.char_indices().find(|(_, c)| {
            let ends = *c == quote && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        });
        return end.map_or(text.len(), |(end, _)| end + 1);
    }
    let mut before = None;
    let end = text.char_indices().find(|(_, c)| {
        let begins_option = *c == '-' && before.is_some_and(char::is_whitespace);
        before = Some(*c);
        begins_option || is_quote(*c) || ends.contains(*c)
    });
    text[..end.map_or(text.len(), |(end, _)| end)].trim_end().len()
}

/// `--password VALUE` and `-pw VALUE`. The meaning of a one-letter option such as `-p` is unknown, so it is not masked.
fn options(text: &str, found: &mut Found<'_>) {
    let (mut end, mut secret_follows) = (0, false);
    for piece in text.split_inclusive(char::is_whitespace) {
        let (at, word) = (end, piece.trim_end());
        end += piece.len();
        if word.is_empty() || found.covers(at) {
            continue;
        }
        let bare = word.trim_matches(is_quote);
        if std::mem::take(&mut secret_follows) && !bare.starts_with("--") {
            found.add(at..at + value_length(&text[at..], ""));
            continue;
        }
        let option = bare.strip_prefix(['-', '/']).filter(|option| !option.contains(['=', ':', '/']));
        secret_follows = option.is_some_and(is_secret_name);
    }
}

/// `Bearer VALUE`, as in headers.
fn bearer_tokens(text: &str, found: &mut Found<'_>) {
    let (mut end, mut token_follows) = (0, false);
    for piece in text.split_inclusive(|c: char| c.is_whitespace() || is_quote(c)) {
        let (at, word) = (end, piece.trim_end_matches(|c: char| c.is_whitespace() || is_quote(c)));
        end += piece.len();
        if token_follows && !word.is_empty() {
            found.add(at..at + word.len());
        }
        token_follows = word.eq_ignore_ascii_case("bearer") || token_follows && word.is_empty();
    }
}

/// JSON Web Tokens: three base64 parts, the first of which begins with `{"`.
fn web_tokens(text: &str, found: &mut Found<'_>) {
    let mut searched_until = 0;
    for (at, _) in text.match_indices("eyJ") {
        if at < searched_until {
            continue;
        }
        let rest = &text[at..];
        let token = &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.=".contains(c))).unwrap_or(rest.len())];
        searched_until = at + token.len();
        if token.split('.').filter(|part| part.len() >= 4).count() >= 3 {
            found.add(at..at + token.len());
        }
    }
}

/// Keys and certificates in PEM form, up to their end or that of the text.
fn pem(text: &str, found: &mut Found<'_>) {
    const END: &str = "-----END";
    for (at, begin) in text.match_indices("-----BEGIN ") {
        let start = at + begin.len();
        if !found.covers(start) {
            found.add(start..text[start..].find(END).map_or(text.len(), |end| start + end));
        }
    }
}

#[cfg(test)]
mod tests;
