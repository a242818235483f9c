//! Seeds made from the captures in the repository: small enough that changing one byte matters.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dn_top::export::{DumpInfo, HeapGraph};
use dn_top::nettrace::{Decoder, Encoder, Limits, Metadata, NewEvent, TraceHeader};

use super::bodies::{ScriptRecorder, V4_BLOCKS};

/// Captures: the oldest runtime, a newer one, and the other format.
const CAPTURES: [&str; 3] = ["net31-heavy", "net9-heavy-norundown", "v6-record-trace-oncpu-offcpu"];

/// Returns the start of a capture.
fn start(name: &str, length: usize) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.nettrace.xz"));
    let mut bytes = Vec::new();
    let file = xz2::read::XzDecoder::new(File::open(path).expect("a capture"));
    file.take(length as u64).read_to_end(&mut bytes).expect("xz");
    bytes
}

/// Returns the seeds of a target.
pub(crate) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "stream" => CAPTURES.iter().flat_map(|name| [700, 6000, 20_000].map(|length| start(name, length))).collect(),
        "blocks" | "findings" => CAPTURES.iter().flat_map(|name| blocks(&start(name, 2_000_000))).collect(),
        "payloads" => CAPTURES.iter().flat_map(|name| payloads(&start(name, 2_000_000))).collect(),
        "analyses" => CAPTURES.iter().flat_map(|name| scripts(&start(name, 2_000_000))).collect(),
        "heap" => [&[][..], &[(24, 0)], &[(24, 3), (8000, 2), (24, 0), (120, 1)], &[(40, 1); 300], &[(2_000_000, 40); 50]].map(heap).into(),
        "text" => TEXTS.iter().map(|text| text.repeat(20).into_bytes()).collect(),
        "keys" => KEYS.iter().map(|keys| keys.to_vec()).collect(),
        "flight" => seeds("analyses")
            .into_iter()
            .enumerate()
            .map(|(number, script)| [&[number as u8, 0, number as u8 % 3], &script[..]].concat())
            .collect(),
        other => super::bodies::others::seeds(other),
    }
}

/// Returns a heap of these objects, given their sizes and numbers of references: each refers to the objects after it. Every other one has a root.
fn heap(objects: &[(u64, u64)]) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader::default());
    let mut event = |event_id, rows: &[Vec<u64>], cut: usize| {
        let metadata = encoder.metadata(&Metadata { provider: "Microsoft-Windows-DotNETRuntime".into(), event_id, ..Metadata::default() });
        let mut payload = [&[0; 4][..], &(rows.len() as u32).to_le_bytes(), &[0; 2]].concat();
        for row in rows {
            payload.extend(row.iter().flat_map(|word| word.to_le_bytes()));
            payload.truncate(payload.len() - cut);
        }
        encoder.event(&NewEvent { metadata, payload: &payload, ..NewEvent::default() });
    };
    let address = |number: u64| 0x1000 + 0x10 * number;
    let numbered = || (0..).zip(objects);
    // For each root, 3 bytes of the flags and one byte of the ID are omitted: a stack root, whatever its flags.
    event(16, &numbered().step_by(2).map(|(number, _)| vec![address(number), 0, 0]).collect::<Vec<_>>(), 3);
    event(18, &numbered().map(|(number, (bytes, held))| vec![address(number), *bytes, number % 3, *held]).collect::<Vec<_>>(), 0);
    let held = numbered().flat_map(|(number, (_, held))| (1..=*held).map(move |next| vec![address(number + next), 0]));
    event(19, &held.collect::<Vec<_>>(), 4);
    encoder.end();
    let mut graph = HeapGraph::new(1 << 20);
    Decoder::new(Limits::default()).feed(&encoder.take(), &mut graph).expect("a stream");
    let mut file = Vec::new();
    graph.write(&DumpInfo::default(), &mut file).expect("a file");
    file
}

/// Combining marks, joiners, conjuncts, wide and narrow characters, bidirectional and control characters.
const TEXTS: [&str; 6] = [
    "plain text, ",
    "e\u{301}\u{302}",
    "👩🏻\u{200d}❤\u{fe0f}\u{200d}",
    "क\u{94d}ष\u{1100}\u{1161}日",
    "\u{202e}\u{200b}\u{feff}",
    "\x1b[31m\x1b]0;a\x07\u{9b}\t\r\n",
];

/// Tabs, forms and lists; a filter; the mouse; a paste; other messages in between.
const KEYS: [&[u8]; 7] = [
    b"123\t4567890?\x1b\xff:dump\r\xff",
    b"/serv\x1b[A\x1b[B\r\x1b\xff\x05\xfedGgjk",
    b"O\x1b[Z\x1b[Zgc\t\t1m30s\x10\r\x1b\xff\x1b\xff",
    b"\x1b[<0;10;10M\x1b[<0;10;10m\x1b[<64;60;20M\x1b[<65;60;20M\x1b[M !!\xfe",
    b"/\x1b[200~pasted\rtext\x1b[201~\x7f\x7f\x15\x1b\xff",
    b"tTdpawWmeynv!SxzZ <>r\x06\x02\x0c\x1a\x03",
    b"\x1b[5~\x1b[6~\x1b[1;5C\x1bOP\x1b[[A\x1b[15~\x28\xfd\xc3\xbc\xe6\x97\xa5\xfc\xfb",
];

/// Returns some parts of the script of a stream.
fn scripts(stream: &[u8]) -> Vec<Vec<u8>> {
    let script = ScriptRecorder::script_of(stream);
    steps(&script).chunks(40).step_by(9).take(20).map(|steps| steps.concat()).collect()
}

/// Returns one payload of each kind in a stream, with its version and for 8-byte pointers.
fn payloads(stream: &[u8]) -> Vec<Vec<u8>> {
    let script = ScriptRecorder::script_of(stream);
    let mut seen = std::collections::HashSet::new();
    let mut payloads: Vec<Vec<u8>> =
        steps(&script).iter().filter(|step| seen.insert(step[1..5].to_vec())).map(|step| [&[step[4], 0], &step[16..]].concat()).collect();
    payloads.truncate(60);
    payloads
}

/// Splits a script into its steps.
fn steps(mut script: &[u8]) -> Vec<&[u8]> {
    let mut steps = Vec::new();
    while script.len() >= 16 {
        let length = 16 + usize::from(u16::from_le_bytes([script[14], script[15]]));
        let (step, rest) = script.split_at(length.min(script.len()));
        steps.push(step);
        script = rest;
    }
    steps
}

/// Returns the prefixes of the first blocks of a stream, concatenated as input of the target `blocks`.
fn blocks(stream: &[u8]) -> Vec<Vec<u8>> {
    let v6 = stream[8..12] == [0; 4];
    let mut seed = vec![if v6 { 3 } else { 2 }];
    let mut seeds = Vec::new();
    let mut at = if v6 { 20 } else { 32 };
    while let Some((kind, body, end)) = if v6 { v6_block(stream, at) } else { v4_block(stream, at) } {
        at = end;
        if let Some(kind) = kind {
            let part = &stream[body.start..body.end.min(body.start + 600)];
            seed.push(kind);
            seed.extend((part.len() as u16).to_le_bytes());
            seed.extend(part);
        }
        if seed.len() > 3000 {
            seeds.push(seed.clone());
            seed.truncate(1);
        }
    }
    seeds.push(seed);
    seeds.truncate(30);
    seeds
}

/// A block: its kind as numbered by the target, its content, and the offset of the next block.
type Block = (Option<u8>, std::ops::Range<usize>, usize);

fn v6_block(stream: &[u8], at: usize) -> Option<Block> {
    let header = u32::from_le_bytes(*stream.get(at..)?.first_chunk()?);
    let body = at + 4..at + 4 + (header & 0xff_ffff) as usize;
    let kind = (header >> 24) as u8;
    let end = body.end;
    (end < stream.len() && kind != 0).then_some((kind.checked_sub(2), body, end))
}

fn v4_block(stream: &[u8], at: usize) -> Option<Block> {
    let word = |at: usize| Some(u32::from_le_bytes(*stream.get(at..)?.first_chunk()?) as usize);
    let name_at = at + 15;
    let name = stream.get(name_at..name_at + word(at + 11)?)?;
    let after = name_at + name.len() + 1;
    if name == b"Trace" {
        return Some((None, after..after, after + 49));
    }
    let kind = V4_BLOCKS.iter().position(|block| block.as_bytes() == name)?;
    let start = (after + 4).next_multiple_of(4);
    let body = start..start + word(after)?;
    let end = body.end + 1;
    (end < stream.len()).then_some((Some(kind as u8), body, end))
}
