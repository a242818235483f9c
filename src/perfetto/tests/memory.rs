//! The requirements on the shared memory (M): pages, chunks and the packets in them.

use proptest::prelude::*;

use super::super::Message;
use super::super::chunk::{CHUNK_HEADER, ChunkHeader, ChunkWriter, WriterId, flag};
use super::super::field;
use super::super::page::{ChunkState, Layout, PageSize, PageWord};
use super::super::producer::{Command, Commit, Initialize};
use super::super::read::{Value, fields};

#[test]
fn m3_page_sizes_are_4_8_16_or_32_kb() {
    let sizes: Vec<usize> = (0..=1 << 17).filter_map(PageSize::new).map(PageSize::bytes).collect();
    assert_eq!(sizes, [4096, 8192, 16384, 32768]);
    let setup = |kilobytes| {
        let mut bytes = Vec::new();
        Message::new(&mut bytes).message(3, |setup| setup.uint(1, kilobytes));
        Command::decode(&bytes).unwrap()
    };
    assert_eq!(setup(16), Command::SetupTracing { page: PageSize::new(16384) });
    for wrong in [0, 3, 12, 64, u64::from(u32::MAX)] {
        assert_eq!(setup(wrong), Command::SetupTracing { page: None }, "{wrong} KB");
    }
}

#[test]
fn m4_page_word_holds_layout_and_chunk_states() {
    let sizes = |page| Layout::ALL.map(|layout| (layout.chunks(), layout.chunk_size(page)));
    assert_eq!(sizes(PageSize::DEFAULT), [(14, 292), (7, 584), (4, 1020), (2, 2044), (1, 4088)]);
    let [by_14, .., whole] = Layout::ALL;
    assert_eq!(PageWord::divided(whole).with(0, ChunkState::BeingWritten), PageWord(0x1000_0001));
    assert_eq!(PageWord::divided(by_14).with(13, ChunkState::Complete), PageWord(0x5c00_0000));
    assert_eq!(PageWord(0x5c00_0000).state(13), ChunkState::Complete);
    assert!(PageWord(0).is_free() && PageWord(0).layout().is_none());
    // Reserved layouts are not used.
    for reserved in [0x6000_0000, 0x7000_0000] {
        assert_eq!((PageWord(reserved).layout(), PageWord(reserved).free_chunk(), PageWord(reserved).is_free()), (None, None, false));
    }
    assert_eq!(Layout::for_bytes(300, PageSize::DEFAULT).chunks(), 7);
    assert_eq!(Layout::for_bytes(1 << 20, PageSize::DEFAULT).chunks(), 1);
}

proptest! {
    /// M5, M6: a chunk is taken only if it is free; its neighbors are unchanged.
    #[test]
    fn m5_m6_only_free_chunks_are_taken(word: u32, chunk in 0_u32..14) {
        let word = PageWord(word);
        if let Some(free) = word.free_chunk() {
            prop_assert_eq!(word.state(free), ChunkState::Free);
            prop_assert!(free < word.layout().unwrap().chunks());
        }
        let changed = word.with(chunk, ChunkState::BeingRead);
        prop_assert_eq!(changed.state(chunk), ChunkState::BeingRead);
        prop_assert_eq!(changed.layout(), word.layout());
        for other in (0..14).filter(|other| *other != chunk) {
            prop_assert_eq!(changed.state(other), word.state(other));
        }
    }

    /// M10: packets are reassembled unchanged, however they are split.
    #[test]
    fn m10_packets_span_chunks(sizes in prop::collection::vec(0_usize..5000, 0..40), rooms in prop::collection::vec(24_usize..4089, 1..6)) {
        let sent: Vec<Vec<u8>> = sizes.iter().map(|size| (0..*size).map(|at| (at + size) as u8).collect()).collect();
        let mut writer = ChunkWriter::new(WriterId::new(1).unwrap());
        sent.chunks(3).for_each(|packets| writer.push(batch(packets)));
        let mut images = Vec::new();
        for room in rooms.iter().cycle() {
            let Some(image) = writer.chunk(*room) else { break };
            prop_assert!(image.len() <= *room);
            images.push(image);
        }
        prop_assert!(writer.is_empty());
        prop_assert_eq!(reassembled(&images), sent);
    }

    /// M14: every bit pattern is a valid chunk header.
    #[test]
    fn m14_any_bytes_are_a_valid_chunk_header(bytes: [u8; CHUNK_HEADER]) {
        prop_assert_eq!(ChunkHeader::decode(bytes).encode(), bytes);
    }
}

/// Encodes packets as fields of a `Trace`.
fn batch(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut trace = Vec::new();
    packets.iter().for_each(|packet| Message::new(&mut trace).bytes(field::packet::PACKET, packet));
    trace
}

/// Reassembles the packets of a writer's chunks as a service does.
fn reassembled(images: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut packets, mut open) = (Vec::new(), Vec::new());
    for (number, image) in images.iter().enumerate() {
        let (header, mut rest) = image.split_first_chunk().unwrap();
        let ChunkHeader { chunk, fragments, flags, .. } = ChunkHeader::decode(*header);
        assert_eq!(chunk as usize, number);
        assert_eq!(flags & flag::CONTINUES != 0, !open.is_empty());
        for fragment in 1..=fragments {
            let mut reader = crate::wire::Reader::new(rest);
            let size = reader.varu64().unwrap() as usize;
            open.extend_from_slice(reader.take(size).unwrap());
            rest = reader.rest();
            if fragment < fragments || flags & flag::IS_CONTINUED == 0 {
                packets.push(std::mem::take(&mut open));
            }
        }
        assert!(rest.is_empty());
    }
    packets
}

#[test]
fn m7_chunk_numbers_of_a_writer_increase_and_wrap() {
    assert_eq!([WriterId::new(0), WriterId::new(0x8000)], [None, None]);
    let mut writer = ChunkWriter::from(WriterId::new(0x7fff).unwrap(), u32::MAX);
    writer.push(batch(&[vec![1; 30]]));
    let headers: Vec<_> = std::iter::from_fn(|| writer.chunk(24)).map(|image| ChunkHeader::decode(*image.first_chunk().unwrap())).collect();
    assert_eq!(headers.iter().map(|header| header.chunk).collect::<Vec<_>>(), [u32::MAX, 0]);
    assert!(headers.iter().all(|header| header.writer == 0x7fff && header.fragments == 1));
    assert_eq!([headers[0].flags, headers[1].flags], [flag::IS_CONTINUED, flag::CONTINUES]);
}

#[test]
fn m7_a_chunk_has_no_more_than_1023_packets() {
    let mut writer = ChunkWriter::new(WriterId::new(1).unwrap());
    (0..1030).for_each(|_| writer.push(batch(&[vec![5]])));
    assert!((CHUNK_HEADER + 1030 * 2..CHUNK_HEADER + 1030 * 4).contains(&writer.required_size()));
    let image = writer.chunk(32_760).unwrap();
    let header = ChunkHeader::decode(*image.first_chunk().unwrap());
    assert_eq!((header.fragments, header.flags, image.len()), (1023, 0, CHUNK_HEADER + 2 * 1023));
    assert_eq!(reassembled(&[image, writer.chunk(32_760).unwrap()]).len(), 1030);
}

#[test]
fn batches_without_packets_are_ignored() {
    let mut writer = ChunkWriter::new(WriterId::new(1).unwrap());
    for bytes in [&[][..], &[0x0a], &[0x0a, 2, 1], &[0x12, 0], &[0xff; 11]] {
        writer.push(bytes.to_vec());
        assert!(writer.is_empty(), "{bytes:x?}");
    }
    writer.push([batch(&[vec![7; 9]]), vec![0xff]].concat());
    writer.push(vec![]);
    writer.push(batch(&[vec![8]]));
    assert_eq!(reassembled(&[writer.chunk(100).unwrap()]), [vec![7; 9], vec![8]]);
    assert!(writer.is_empty() && writer.chunk(100).is_none());
    assert_eq!(writer.required_size(), ChunkWriter::new(WriterId::new(1).unwrap()).required_size());
}

#[test]
fn m11_a_commit_names_its_chunks() {
    let mut commit = Commit::default();
    commit.move_chunk(3, 2, 9);
    commit.send_chunk(b"image", 9);
    commit.acknowledge(8);
    let bytes = commit.into_bytes();
    let inner = |value: &Value<'_>| {
        fields(value.bytes().unwrap()).map(|field| field.unwrap().1).map(|value| format!("{value:?}")).collect::<Vec<_>>()
    };
    let read: Vec<_> = fields(&bytes).map(Result::unwrap).collect();
    assert_eq!(read.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 1, 3]);
    assert_eq!(inner(&read[0].1), ["Number(3)", "Number(2)", "Number(9)"]);
    assert_eq!(inner(&read[1].1), ["Number(9)", "Bytes([105, 109, 97, 103, 101])"]);
    assert_eq!(read[2].1, Value::Number(8));
}

#[test]
fn m13_scraping_is_left_to_the_service() {
    // Requires field 4 of the request, which dn-top does not send.
    let hello = Initialize { name: "a".to_owned(), version: "b".to_owned(), page: PageSize::MAX, memory: 1 }.encode();
    assert!(fields(&hello).all(|field| field.unwrap().0 != 4));
}
