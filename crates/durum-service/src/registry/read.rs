//! Reading the registry on a private copy in memory.
//!
//! redb repairs a database after an unclean end when it opens it, and damaged bytes may surprise it: both
//! happen to the copy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{ReadableDatabase, ReadableTable};

use super::backend::PrivateBackend;
use super::contents::Contents;
use super::record::{self, Refusal};
use super::{
    CLIENTS, GRANTS, LOG_SPACES, MARKS, META, META_CURSOR, META_SEQUENCE, META_STORE, POOLS,
    PUDDLES, QUARANTINE, TYPES, Table, builder, damaged,
};
use crate::error::Result;
use crate::reading;

/// Reads and validates the registry file on a private copy. Writes nothing.
pub(crate) fn read(path: &Path) -> Result<Contents> {
    let file = super::open_file(path, false)?;
    let bytes = reading::whole(&file, HEAD_BYTES, |head, length| {
        if length == 0 {
            // redb would take an empty file for one to be made.
            return Err(damaged(path, "the file is empty".to_owned()));
        }
        match length <= length_max(head) {
            true => Ok(length),
            false => Err(damaged(
                path,
                format!("it has {length} bytes, far more than its header says"),
            )),
        }
    })?;
    // redb answers most damage with an error, but its assertions may find some of it first.
    match catch_unwind(AssertUnwindSafe(|| read_copy(path, bytes))) {
        Ok(contents) => contents,
        Err(_) => Err(damaged(
            path,
            "the database contradicts itself (an assertion of its reader failed)".to_owned(),
        )),
    }
}

/// The bytes from the start of the file that tell how large it is.
const HEAD_BYTES: u64 = 32;

/// How long the file may be by its header. After a crash while it grew it is longer than that says: redb doubles it, or takes as
/// much as one commit needs.
fn length_max(head: &[u8]) -> u64 {
    const COMMIT_BYTES_MAX: u64 = 64 << 20;
    let field = |at: usize| {
        let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u64::from(bytes.map_or(0, u32::from_le_bytes))
    };
    let [page, region_head, region_data, full, trailing] = [12, 16, 20, 24, 28].map(field);
    let regions = full.saturating_mul(region_head + region_data);
    let pages = regions.saturating_add(1 + region_head + trailing);
    let length = pages.saturating_mul(page);
    length.saturating_mul(2).saturating_add(COMMIT_BYTES_MAX)
}

fn read_copy(path: &Path, bytes: Vec<u8>) -> Result<Contents> {
    // The bytes are in memory: no error is the system's.
    let refuse = |error: redb::Error| damaged(path, error.to_string());
    let mut database = builder()
        .create_with_backend(PrivateBackend::new(bytes))
        .map_err(|error| refuse(error.into()))?;
    // Every page's checksum: a database that was closed in order is otherwise taken at its word.
    if !database
        .check_integrity()
        .map_err(|error| refuse(error.into()))?
    {
        return Err(damaged(
            path,
            "a checksum of the database is wrong".to_owned(),
        ));
    }
    let transaction = database
        .begin_read()
        .map_err(|error| refuse(error.into()))?;
    let mut contents = Contents::default();
    let mut store = None;
    let mut cursor = None;
    let mut sequence = None;
    let read = |table: Table, take: &mut TakeRow<'_>| -> Result<()> {
        let open = transaction
            .open_table(table)
            .map_err(|error| refuse(error.into()))?;
        for row in open.iter().map_err(|error| refuse(error.into()))? {
            let (key, value) = row.map_err(|error| refuse(error.into()))?;
            take(key.value(), value.value())
                .map_err(|Refusal(problem)| damaged(path, format!("table {table}: {problem}")))?;
        }
        Ok(())
    };
    read(META, &mut |key, value| {
        match key {
            META_STORE => store = Some(record::decode_uuid(value)?),
            META_CURSOR => cursor = Some(record::decode_number(value)?),
            META_SEQUENCE => sequence = Some(record::decode_number(value)?),
            other => {
                return Err(Refusal(format!(
                    "the entry {:?}, which this build does not know",
                    String::from_utf8_lossy(other)
                )));
            }
        }
        Ok(())
    })?;
    read(POOLS, &mut |key, value| {
        contents
            .pools
            .insert(record::uuid(key)?, record::decode_pool(value)?);
        Ok(())
    })?;
    read(PUDDLES, &mut |key, value| {
        contents
            .puddles
            .insert(record::uuid(key)?, record::decode_puddle(value)?);
        Ok(())
    })?;
    read(CLIENTS, &mut |key, value| {
        record::decode_present(value)?;
        contents.clients.insert(record::uuid(key)?);
        Ok(())
    })?;
    read(GRANTS, &mut |key, value| {
        record::decode_present(value)?;
        contents.grants.insert(record::uuid_pair(key)?);
        Ok(())
    })?;
    read(LOG_SPACES, &mut |key, value| {
        contents
            .log_spaces
            .insert(record::uuid(key)?, record::decode_uuid(value)?);
        Ok(())
    })?;
    read(TYPES, &mut |key, value| {
        contents
            .types
            .insert(record::type_id(key)?, record::decode_text(value)?);
        Ok(())
    })?;
    read(QUARANTINE, &mut |key, value| {
        contents
            .quarantine
            .insert(record::uuid(key)?, record::decode_log(value)?);
        Ok(())
    })?;
    read(MARKS, &mut |key, value| {
        record::decode_present(value)?;
        contents.marks.insert(record::uuid_pair(key)?);
        Ok(())
    })?;
    let missing = |name: &str| damaged(path, format!("table meta: no entry {name:?}"));
    contents.store = store.ok_or_else(|| missing("store"))?;
    contents.cursor = cursor.ok_or_else(|| missing("cursor"))?;
    contents.sequence = sequence.ok_or_else(|| missing("sequence"))?;
    Ok(contents)
}

/// Enters one row of a table.
type TakeRow<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Refusal> + 'a;
