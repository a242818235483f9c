//! Runs a terminal program, types keys, and saves screenshots.
//!
//! ```text
//! cargo run --example screenshot -- [STEP].. --out FILE -- PROGRAM [ARGUMENT]..
//!   --size 120x40     columns and rows; first of all
//!   --wait TEXT       until the screen shows the text
//!   --keys KEYS       types them one by one; <enter>, <esc>, <tab>, <up>, <down>, <left>, <right>, <space> and <c-x> are keys
//!   --pause 500ms     lets time pass
//!   --out FILE        the picture as it is now: text for a name in .txt, otherwise SVG; may come more than once
//! ```
//!
//! To convert it to PNG: rsvg-convert FILE.svg -o FILE.png (Debian: librsvg2-bin).

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, bail};
use support::{Invocation, picture, screen};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let end = words.iter().position(|word| word == "--").context("no program: … -- PROGRAM [ARGUMENT]..")?;
    let (steps, program) = (&words[..end], &words[end + 1..]);
    let (program, args) = program.split_first().context("no program after --")?;
    let mut steps: &[String] = steps;
    let (mut columns, mut rows) = (120, 40);
    if let [option, size, rest @ ..] = steps
        && option == "--size"
    {
        let (wide, high) = size.split_once('x').context("a size is COLUMNSxROWS")?;
        (columns, rows) = (wide.parse()?, high.parse()?);
        steps = rest;
    }
    let here = std::env::current_dir()?;
    let screen = Invocation::of(program, args).current_dir(&here).screen(columns, rows);
    while let [option, value, rest @ ..] = steps {
        match option.as_str() {
            "--wait" => _ = screen.wait_for(value),
            "--keys" => type_keys(&screen, value)?,
            "--pause" => std::thread::sleep(humantime::parse_duration(value)?),
            "--out" if value.ends_with(".txt") => fs::write(value, screen.contents() + "\n")?,
            "--out" => fs::write(value, picture::svg(&screen.styled()))?,
            other => bail!("no such step: {other}"),
        }
        steps = rest;
    }
    if !steps.is_empty() {
        bail!("{} needs a value", steps[0]);
    }
    Ok(())
}

fn type_keys(screen: &support::Screen, keys: &str) -> anyhow::Result<()> {
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let name = rest.strip_prefix('<').and_then(|named| named.split_once('>'));
        let key = match name {
            None => first.to_string(),
            Some(("enter", _)) => screen::ENTER.to_owned(),
            Some(("esc", _)) => screen::ESC.to_owned(),
            Some(("tab", _)) => screen::TAB.to_owned(),
            Some(("up", _)) => screen::UP.to_owned(),
            Some(("down", _)) => screen::DOWN.to_owned(),
            Some(("left", _)) => screen::LEFT.to_owned(),
            Some(("right", _)) => screen::RIGHT.to_owned(),
            Some(("space", _)) => " ".to_owned(),
            Some((name, _)) => match name.strip_prefix("c-").and_then(|letter| letter.chars().next()) {
                Some(letter) => screen::ctrl(letter),
                None => bail!("no such key: <{name}>"),
            },
        };
        screen.keys(&key);
        // At human speed: a program may draw between two keys.
        std::thread::sleep(Duration::from_millis(100));
        rest = name.map_or(&rest[first.len_utf8()..], |(_, rest)| rest);
    }
    Ok(())
}
