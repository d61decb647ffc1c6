//! How far a puddle of logs or records was ever used, as its writer says it. What it is good for is told in
//! `docs/format/log.md`.

use durum_format::puddle::heap_offset;
use durum_format::reach::Reach;
use durum_persist::{Site, line};

use crate::alloc::Puddle;
use crate::error::Result;
use crate::media::Barrier;

/// Writes the reach to its place, `offset` bytes from the start of the heap, which only the caller changes now. Durable
/// with the caller's next fence, which has to be that of the first entries that need it.
pub(crate) fn write(
    puddle: &Puddle,
    offset: u64,
    reach: Reach,
    barrier: &mut Barrier,
    site: Site,
) -> Result<()> {
    let offset = (heap_offset(puddle.size as u64) + offset) as usize;
    // SAFETY: an aligned word of the mapped puddle, which nobody else writes, as the caller promises.
    unsafe { line::store_u64(puddle.at(offset).as_ptr().cast(), reach.to_u64()) };
    barrier.write_back(puddle, puddle.address + offset, 8, site)
}
