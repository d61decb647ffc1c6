//! The bytes of the registry's records. Told in `docs/store.md`.
//!
//! Every value begins with a version byte, so that an unknown one is refused by name.

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;

use super::contents::{PoolRecord, PuddleRecord, QuarantinedLog};
use crate::model::EngineKind;

/// The version of all records that this build writes.
pub(super) const VERSION: u8 = 1;

/// Bytes of a puddle record.
const PUDDLE_BYTES: usize = 38;
const FLAG_ROOT: u8 = 1;

/// Why a record was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

fn refuse<T>(problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(problem.into()))
}

/// Checks the version and returns what follows.
fn versioned(bytes: &[u8]) -> Result<&[u8], Refusal> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some((version, _)) => refuse(format!(
            "record version {version}, this build reads version {VERSION}"
        )),
        None => refuse("an empty record"),
    }
}

/// Takes `N` bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Refusal> {
    match bytes.split_first_chunk::<N>() {
        Some((head, rest)) => {
            *bytes = rest;
            Ok(*head)
        }
        None => refuse("a record that ends too early"),
    }
}

fn text(bytes: &[u8]) -> Result<String, Refusal> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => refuse("a text that is not UTF-8"),
    }
}

/// A key that is one UUID.
pub(super) fn uuid(bytes: &[u8]) -> Result<Uuid, Refusal> {
    match <[u8; 16]>::try_from(bytes) {
        Ok(bytes) => Ok(Uuid(bytes)),
        Err(_) => refuse(format!(
            "a key of {} bytes where 16 are expected",
            bytes.len()
        )),
    }
}

/// A key that is two UUIDs.
pub(super) fn uuid_pair(bytes: &[u8]) -> Result<(Uuid, Uuid), Refusal> {
    match bytes.split_first_chunk::<16>() {
        Some((first, rest)) => Ok((Uuid(*first), uuid(rest)?)),
        None => refuse(format!(
            "a key of {} bytes where 32 are expected",
            bytes.len()
        )),
    }
}

/// Two UUIDs as a key.
pub(super) fn pair_key(first: Uuid, second: Uuid) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(&first.0);
    key[16..].copy_from_slice(&second.0);
    key
}

/// A type id as a key: big-endian, so that keys sort as numbers.
pub(super) fn type_key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

pub(super) fn type_id(bytes: &[u8]) -> Result<u64, Refusal> {
    match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
        Err(_) => refuse(format!(
            "a key of {} bytes where 8 are expected",
            bytes.len()
        )),
    }
}

pub(super) fn encode_pool(record: &PoolRecord) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend((record.engine as u32).to_le_bytes());
    bytes.extend(record.root_puddle.0);
    bytes.extend(record.name.as_bytes());
    bytes
}

pub(super) fn decode_pool(bytes: &[u8]) -> Result<PoolRecord, Refusal> {
    let mut rest = versioned(bytes)?;
    let engine = u32::from_le_bytes(take(&mut rest)?);
    let Some(engine) = EngineKind::from_media(engine) else {
        return refuse(format!("engine {engine}, which this build does not know"));
    };
    let root_puddle = Uuid(take(&mut rest)?);
    Ok(PoolRecord {
        name: text(rest)?,
        engine,
        root_puddle,
    })
}

pub(super) fn encode_puddle(record: &PuddleRecord) -> [u8; PUDDLE_BYTES] {
    let mut bytes = [0; PUDDLE_BYTES];
    bytes[0] = VERSION;
    bytes[1] = record.kind as u8;
    bytes[2] = if record.is_root { FLAG_ROOT } else { 0 };
    // Byte 3 to 5 are reserved.
    bytes[6..22].copy_from_slice(&record.owner.0);
    bytes[22..30].copy_from_slice(&record.address.to_le_bytes());
    bytes[30..38].copy_from_slice(&record.size.to_le_bytes());
    bytes
}

pub(super) fn decode_puddle(bytes: &[u8]) -> Result<PuddleRecord, Refusal> {
    if bytes.len() != PUDDLE_BYTES {
        return refuse(format!(
            "a puddle record of {} bytes where {PUDDLE_BYTES} are expected",
            bytes.len()
        ));
    }
    let mut rest = versioned(bytes)?;
    let [kind, flags, reserved @ ..] = take::<5>(&mut rest)?;
    let kind = match kind {
        1 => PuddleKind::Data,
        2 => PuddleKind::Log,
        3 => PuddleKind::LogSpace,
        4 => PuddleKind::Records,
        5 => PuddleKind::Twin,
        other => {
            return refuse(format!(
                "puddle kind {other}, which this build does not know"
            ));
        }
    };
    if flags & !FLAG_ROOT != 0 || reserved != [0; 3] {
        return refuse("reserved bits of a puddle record that are set");
    }
    Ok(PuddleRecord {
        owner: Uuid(take(&mut rest)?),
        address: u64::from_le_bytes(take(&mut rest)?),
        size: u64::from_le_bytes(take(&mut rest)?),
        kind,
        is_root: flags & FLAG_ROOT != 0,
    })
}

/// A record that says nothing but that it is there.
pub(super) const PRESENT: [u8; 1] = [VERSION];

pub(super) fn decode_present(bytes: &[u8]) -> Result<(), Refusal> {
    match versioned(bytes)? {
        [] => Ok(()),
        _ => refuse("a record with bytes that mean nothing"),
    }
}

pub(super) fn encode_uuid(uuid: Uuid) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(uuid.0);
    bytes
}

pub(super) fn decode_uuid(bytes: &[u8]) -> Result<Uuid, Refusal> {
    uuid(versioned(bytes)?)
}

pub(super) fn encode_text(text: &str) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(text.as_bytes());
    bytes
}

pub(super) fn decode_text(bytes: &[u8]) -> Result<String, Refusal> {
    text(versioned(bytes)?)
}

pub(super) fn encode_log(log: &QuarantinedLog) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(log.client.0);
    bytes.extend(log.log_id.to_le_bytes());
    bytes.extend((log.continuations.len() as u32).to_le_bytes());
    for puddle in &log.continuations {
        bytes.extend(puddle.0);
    }
    bytes.extend(log.reason.as_bytes());
    bytes
}

pub(super) fn decode_log(bytes: &[u8]) -> Result<QuarantinedLog, Refusal> {
    let mut rest = versioned(bytes)?;
    let client = Uuid(take(&mut rest)?);
    let log_id = u64::from_le_bytes(take(&mut rest)?);
    let count = u32::from_le_bytes(take(&mut rest)?);
    let mut continuations = Vec::new();
    for _ in 0..count {
        continuations.push(Uuid(take(&mut rest)?));
    }
    Ok(QuarantinedLog {
        log_id,
        continuations,
        client,
        reason: text(rest)?,
    })
}

pub(super) fn encode_number(number: u64) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(number.to_le_bytes());
    bytes
}

pub(super) fn decode_number(bytes: &[u8]) -> Result<u64, Refusal> {
    let mut rest = versioned(bytes)?;
    let number = u64::from_le_bytes(take(&mut rest)?);
    match rest {
        [] => Ok(number),
        _ => refuse("a number that is too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_round_trip() {
        let uuid = |byte| Uuid([byte; 16]);
        let pool = PoolRecord {
            name: "wörter".to_owned(),
            engine: EngineKind::Shadow,
            root_puddle: uuid(7),
        };
        assert_eq!(decode_pool(&encode_pool(&pool)), Ok(pool));
        let puddle = PuddleRecord {
            owner: uuid(1),
            address: 0x2000_0020_0000,
            size: 6 << 20,
            kind: PuddleKind::Data,
            is_root: true,
        };
        assert_eq!(decode_puddle(&encode_puddle(&puddle)), Ok(puddle));
        let log = QuarantinedLog {
            log_id: 99,
            continuations: vec![uuid(3), uuid(4)],
            client: uuid(5),
            reason: "entry 3".to_owned(),
        };
        assert_eq!(decode_log(&encode_log(&log)), Ok(log));
        assert_eq!(
            uuid_pair(&pair_key(uuid(1), uuid(2))),
            Ok((uuid(1), uuid(2)))
        );
        assert_eq!(decode_number(&encode_number(77)), Ok(77));
        assert_eq!(decode_uuid(&encode_uuid(uuid(9))), Ok(uuid(9)));
        assert_eq!(type_id(&type_key(300)), Ok(300));
    }

    #[test]
    fn every_cut_and_every_unknown_version_is_refused() {
        let puddle = PuddleRecord {
            owner: Uuid([1; 16]),
            address: 0,
            size: 0,
            kind: PuddleKind::Log,
            is_root: false,
        };
        let whole = encode_puddle(&puddle);
        for cut in 0..whole.len() {
            assert!(decode_puddle(&whole[..cut]).is_err());
        }
        for (at, value) in [(0, 2), (1, 0), (1, 6), (2, 2), (3, 1), (5, 1)] {
            let mut bytes = whole;
            bytes[at] = value;
            assert!(decode_puddle(&bytes).is_err(), "byte {at}");
        }
        assert!(decode_pool(&[VERSION, 9, 0, 0, 0]).is_err());
        let log = QuarantinedLog {
            log_id: 1,
            continuations: vec![Uuid([3; 16])],
            client: Uuid([5; 16]),
            reason: String::new(),
        };
        let whole = encode_log(&log);
        for cut in 0..whole.len() {
            assert!(decode_log(&whole[..cut]).is_err());
        }
        assert!(decode_present(&[]).is_err());
        assert!(decode_present(&[VERSION, 0]).is_err());
    }
}
