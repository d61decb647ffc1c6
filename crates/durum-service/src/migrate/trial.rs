//! What only new objects tell is found before there are any that stay: they are made in files without a name, and
//! thrown away.

use durum_format::puddle::PuddleHeader;

use super::check::Checked;
use super::make::Making;
use super::old::Old;
use super::table::Table;
use super::{MigrateOptions, Migration, ensure_room, rebuild};
use crate::error::{Error, Result};
use crate::space::{Elsewhere, Space};
use crate::{files, names};

/// Makes the new pools and has maps in them built anew, of which nothing is left. The report gets what stands in the
/// way.
///
/// # Errors
/// As [`Making::make`] and [`rebuild::rebuild`]; `AddressesExhausted`.
pub(super) fn try_out(
    old: &Old<'_>,
    migration: &mut Migration<'_>,
    options: &MigrateOptions,
    table: &mut Table,
    checked: &mut Checked,
) -> Result<()> {
    let store = old.reader.path();
    ensure_room(store, checked.report.bytes.saturating_add(checked.room))?;
    let headers = headers(old, &checked.sizes)?;
    let making = Making {
        headers: &headers,
        store,
        seen: &checked.seen,
        create: &|header| files::create_nameless(store, header),
    };
    names::ensure_descriptors(store, headers.len())?;
    let mut files = Vec::new();
    making.make(old, migration, options, table, |_, file| files.push(file))?;
    rebuild::rebuild(old, (&headers, files), migration, &mut checked.report)
}

/// Puddles of these sizes, at addresses that nobody has.
fn headers(old: &Old<'_>, sizes: &[Vec<u64>]) -> Result<Vec<PuddleHeader>> {
    let (reader, contents) = (old.reader, old.reader.contents());
    let mut space = Space::new(reader.base(), reader.space_size(), contents.cursor);
    for record in contents.puddles.values() {
        // The registry was validated: no two of them meet.
        let _ = space.insert(record.address, record.size);
    }
    let mut headers = Vec::new();
    for (pool, sizes) in old.pools.iter().zip(sizes) {
        for (at, size) in sizes.iter().enumerate() {
            let placed = space.place(*size, &Elsewhere::NOTHING);
            headers.push(PuddleHeader {
                kind: pool.record.engine.puddle_kind(),
                uuid: names::random_uuid()?,
                owner: pool.uuid,
                address: placed.ok_or_else(|| Error::AddressesExhausted {
                    store: reader.path().to_owned(),
                    size: *size,
                    space: reader.space_size(),
                })?,
                size: *size,
                is_root: at == 0,
            });
        }
    }
    Ok(headers)
}
