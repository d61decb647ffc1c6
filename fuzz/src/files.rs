//! Files of text with a checksum: the catalog, the registry, the manifest of an export, the store file.

use durum_format::catalog::Catalog;
use durum_format::crc::{Crc, crc32c};
use durum_format::export as manifests;
use durum_format::registry::{self, Parsed, Room};
use durum_format::store::StoreHeader;

use super::same_or_error;

/// The catalog.
pub fn catalog(data: &[u8]) {
    let mut wrapped =
        format!("durum catalog 1 {} {:#010x}\n", data.len(), crc32c(data)).into_bytes();
    wrapped.extend_from_slice(data);
    for bytes in [data, &wrapped] {
        same_or_error(Catalog::parse(bytes), |catalog| {
            let encoded = catalog.encode().expect("what is accepted can be written");
            assert_eq!(Catalog::parse(&encoded), Ok(catalog));
        });
    }
}

/// The registry. An input is a file without the zeros at its end; and once more a snapshot's text and the texts of
/// changes, with a zero byte before each, whose lines and checksums are put right.
pub fn registry(data: &[u8]) {
    const LENGTH_MAX: u64 = 1 << 20;
    let whole = |mut bytes: Vec<u8>| {
        if let Ok(room) = Room::of(&bytes)
            && room.end <= LENGTH_MAX
            && bytes.len() as u64 <= room.end
        {
            bytes.resize(room.end as usize, 0);
        }
        bytes
    };
    let mut texts = data.split(|&byte| byte == 0);
    let body = texts.next().unwrap_or_default();
    let mut made = format!("durum registry 1 {} {:#010x}\n", body.len(), crc32c(body)).into_bytes();
    made.extend_from_slice(body);
    if let Ok(Parsed { state, .. }) = registry::parse(&whole(made.clone())) {
        for (sequence, text) in (state.sequence.wrapping_add(1)..).zip(texts) {
            let head = format!("change {sequence} {} ", text.len());
            let mut crc = Crc::new();
            for part in [&state.store.uuid.0, head.as_bytes(), text] {
                crc.update(part);
            }
            made.extend(format!("{head}{:#010x}\n", crc.value()).bytes());
            made.extend_from_slice(text);
        }
    }
    for bytes in [data.to_vec(), whole(data.to_vec()), whole(made)] {
        let salvaged = registry::salvage(None, &[&bytes]);
        same_or_error(registry::parse(&bytes), |parsed| {
            assert_eq!(parsed.room.end, bytes.len() as u64);
            assert_eq!(salvaged.as_ref(), Some(&parsed.state));
            let folded = registry::encode_snapshot(&parsed.state);
            let folded = whole(folded.expect("what is accepted can be written"));
            let again = registry::parse(&folded).expect("what was written is accepted");
            assert_eq!(again.state, parsed.state);
            assert!(!again.is_torn && again.end == again.room.snapshot_end);
        });
    }
}

/// The manifest of an export: a whole file, and once more the text behind its first line, with a line that is right.
pub fn export(data: &[u8]) {
    let mut made = format!("durum export 1 {} {:#010x}\n", data.len(), crc32c(data)).into_bytes();
    made.extend_from_slice(data);
    for bytes in [data, &made] {
        same_or_error(manifests::parse(bytes), |manifest| {
            let encoded = manifest.encode().expect("what is accepted can be written");
            assert_eq!(encoded, bytes);
        });
    }
}

/// The store file.
pub fn store(data: &[u8]) {
    let mut fixed = data.to_vec();
    if let Some(at) = data
        .windows(11)
        .rposition(|window| window == b"checksum = ")
    {
        fixed.truncate(at);
        let line = format!("checksum = {:#010x}\n", crc32c(&fixed));
        fixed.extend_from_slice(line.as_bytes());
    }
    for bytes in [data, &fixed] {
        same_or_error(StoreHeader::parse(bytes), |store| {
            let encoded = store.encode().expect("what is accepted can be written");
            assert_eq!(encoded.as_bytes(), bytes);
        });
    }
}
