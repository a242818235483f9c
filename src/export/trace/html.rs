//! A flame graph in one HTML file, which any browser shows without network access.

use std::io::{self, Write};

use super::folded::Folded;
use super::stacks::Stacks;
use super::writer::{Sample, Writer};

/// The page, with placeholders: `{title}`, and `{stacks}` for the folded stacks.
const PAGE: &str = include_str!("../../../assets/flame_graph.html");

pub(super) struct Html<W> {
    stacks: Folded<Escaped<W>>,
    rest: &'static str,
}

impl<W: Write> Html<W> {
    /// Writes the page up to the stacks. `process` is 0 in a recording of the whole machine.
    pub(super) fn new(mut out: W, process: u32, has_cpu_samples: bool) -> io::Result<Self> {
        let (start, rest) = PAGE.split_once("{stacks}").unwrap_or((PAGE, ""));
        let contents = if has_cpu_samples { "CPU samples" } else { "Samples of threads, running or waiting," };
        let whose = if process == 0 { "all processes".to_owned() } else { format!("process {process}") };
        out.write_all(start.replace("{title}", &format!("{contents} of {whose}")).as_bytes())?;
        Ok(Self { stacks: Folded::new(Escaped(out)), rest })
    }
}

impl<W: Write> Writer for Html<W> {
    fn sample(&mut self, sample: &Sample, stacks: &Stacks) -> io::Result<()> {
        self.stacks.sample(sample, stacks)
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.stacks.stacks_cleared(stacks)
    }

    fn finish(&mut self, end: i64, stacks: &Stacks) -> io::Result<()> {
        self.stacks.finish(end, stacks)?;
        let Escaped(out) = &mut self.stacks.out;
        out.write_all(self.rest.as_bytes())?;
        out.flush()
    }
}

/// Escapes what has a meaning in the text of an HTML element.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'&' | b'<')) {
            let (text, escaped) = match part.split_last() {
                Some((b'&', text)) => (text, "&amp;"),
                Some((b'<', text)) => (text, "&lt;"),
                _ => (part, ""),
            };
            self.0.write_all(text)?;
            self.0.write_all(escaped.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Images, Symbols};

    #[test]
    fn names_do_not_end_the_element() {
        let mut out = Escaped(Vec::new());
        out.write_all("a</pre><script>&lt; ü".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out.0).unwrap(), "a&lt;/pre>&lt;script>&amp;lt; ü");
    }

    #[test]
    fn placeholders_of_the_page_are_replaced() {
        let mut out = Vec::new();
        Html::new(&mut out, 42, true).unwrap().finish(0, &Stacks::new(Symbols::default(), Images::default())).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert_eq!(page.matches("CPU samples of process 42").count(), 2);
        assert!(!page.contains("{title}") && !page.contains("{stacks}") && page.ends_with("</html>\n"));
        let mut out = Vec::new();
        Html::new(&mut out, 0, false).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("Samples of threads, running or waiting, of all processes"));
    }
}
