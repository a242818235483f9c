//! The README's table of JSON fields, compared with what the commands print.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cpu::can_sample;
use crate::follow::{follow, lines_with};
use crate::support::runtimes;
use crate::support::{Invocation, folder};

/// A field of the table.
#[derive(Debug)]
struct Field {
    /// The commands whose output has it; any if empty.
    commands: Vec<String>,
    /// Its name, or its beginning with `…`.
    name: String,
    /// The values that a text may have; any if empty.
    values: Vec<String>,
}

/// Returns the words in backquotes.
fn words(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Reads the rows `| commands: fields; commands: fields | meaning |`; the values of the first field are the words of the meaning.
fn table() -> Vec<Field> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let rows = readme.split("\n### JSON\n").nth(1).unwrap().split("\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut found = Vec::new();
    for row in rows.lines() {
        let [_, fields, meaning, _] = row.split('|').collect::<Vec<_>>().try_into().unwrap_or_else(|cells| panic!("{cells:?}"));
        let mut values = words(meaning);
        for part in fields.split(';') {
            let (commands, names) =
                part.split_once("`: ").map_or((Vec::new(), part), |(commands, names)| (words(&format!("{commands}`")), names));
            for name in words(names) {
                found.push(Field { commands: commands.clone(), name, values: std::mem::take(&mut values) });
            }
        }
    }
    found
}

/// Collects the values of all fields, at any depth.
fn collect<'a>(document: &'a Value, fields: &mut BTreeMap<&'a str, Vec<&'a Value>>) {
    match document {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            fields.entry(name).or_default().push(value);
            collect(value, fields);
        }),
        Value::Array(values) => values.iter().for_each(|value| collect(value, fields)),
        _ => {}
    }
}

#[test]
fn documented_fields_are_printed() {
    let fields = table();
    assert!(fields.len() > 40, "{fields:?}");
    runtimes::each_in_turn(runtimes::since(9, runtimes::with("known")), |runtime| {
        let (mut program, place) = (runtime.program("known").start(), folder());
        if !can_sample(&program) {
            return runtimes::skip("the kernel does not sample");
        }
        program.carry_out("hold 10");
        let pid = program.pid().to_string();
        let dump = place.path().join("a.dmp");
        let second = ["--duration", "1s"];
        let commands: [&[&str]; 16] = [
            &["ps"],
            &["info", &pid],
            &["doctor"],
            &["counters", &pid, second[0], second[1]],
            &["trace", &pid, "-o", "a.nettrace", "--profile", "slow", "--profile", "cpu", second[0], second[1]],
            &["trace", &pid, "-o", "b.nettrace", "--profile", "cpu", "--separate", second[0], second[1]],
            &["trace", &pid, "-o", "c.nettrace", second[0], second[1]],
            &["cpu", &pid, second[0], second[1]],
            &["report", "a.nettrace"],
            &["report", "c.nettrace", "--off-cpu"],
            &["slow", "a.nettrace"],
            &["stats", "a.nettrace"],
            &["heap", &pid, "--yes", "--retained", "--paths", "Held"],
            &["gc", "a.nettrace"],
            &["http", "a.nettrace"],
            &["dump", &pid, "--type", "mini", "-o", dump.to_str().unwrap()],
        ];
        program.settle();
        let mut documents: Vec<(&str, Value)> = commands
            .iter()
            .flat_map(|words| {
                let output = Invocation::new([words, &["--json"][..]].concat()).current_dir(place.path()).run();
                assert_eq!(output.code, 0, "{runtime}: {words:?}: {}", output.stderr);
                let each: Vec<Value> = match words[0] {
                    "counters" => output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
                    _ => vec![output.json()],
                };
                each.into_iter().map(|document| (words[0], document))
            })
            .collect();
        let following = follow(&["allocations", &pid, "--follow", "--json"]);
        program.carry_out("churn 300");
        let samples = lines_with(&following, "\"LOH\"", 1, runtime);
        assert_eq!(following.interrupt().code, 130, "{runtime}");
        documents.extend(samples.iter().map(|line| ("allocations --follow", serde_json::from_str(line).unwrap())));
        for (command, document) in &documents {
            assert_eq!(document["schema"], 1, "{runtime}: {command}: {document:#}");
        }
        for Field { commands, name, values } in &fields {
            let commands: Vec<_> = if commands.is_empty() { vec![""] } else { commands.iter().map(String::as_str).collect() };
            for command in commands {
                let mut found = BTreeMap::new();
                let outputs = documents.iter().filter(|(printed_by, _)| command.is_empty() || *printed_by == command);
                outputs.for_each(|(_, document)| collect(document, &mut found));
                let is_it = |key: &str| name.strip_suffix('…').map_or(key == name, |begin| key.starts_with(begin));
                let printed: Vec<_> = found.iter().filter(|(key, _)| is_it(key)).flat_map(|(_, values)| values).collect();
                assert!(!printed.is_empty(), "{runtime}: `{command}` prints no {name}: {:?}", found.keys());
                let texts = printed.iter().filter_map(|value| value.as_str());
                let other: Vec<_> = texts.filter(|text| !values.is_empty() && !values.iter().any(|value| value == text)).collect();
                assert!(other.is_empty(), "{runtime}: {name} of `{command}` may not be {other:?}");
            }
        }
        // Names end in the unit of the value.
        let mut found = BTreeMap::new();
        documents.iter().for_each(|(_, document)| collect(document, &mut found));
        let units = ["_ms", "_ns", "_bytes", "_percent"];
        let other = found.iter().filter(|(name, _)| units.iter().any(|unit| name.ends_with(unit)));
        let other: Vec<_> = other.filter(|(_, values)| values.iter().any(|value| !value.is_number() && !value.is_null())).collect();
        assert!(other.iter().all(|(name, _)| **name == "waits_percent"), "{runtime}: {other:?}");
    });
}
