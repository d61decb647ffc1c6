//! Reading a log: which entries are whole, where they end, and whether something that was durable is missing.

use super::damage::{Damage, ParseError};
use super::entry::{CHECKED_HEADER_SIZE, EntryHeader, SealContents, next_entry_offset};
use super::{
    CHAIN_MAX, ENTRY_HEADER_SIZE, EntryFlags, EntryKind, LogArea, LogHeader, Order, RangeWord,
    SEQUENCE_SEAL, Salt, current_range,
};

/// A checked entry of the log's current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// What it does.
    pub kind: EntryKind,
    /// When it is replayed.
    pub order: Order,
    /// Its properties.
    pub flags: EntryFlags,
    /// The number compared with the range word.
    pub sequence: u8,
    /// The address that it is about.
    pub target: u64,
    /// What it carries, without padding.
    pub data: &'a [u8],
    /// Which puddle of the chain it lies in, 0 for the first.
    pub area: usize,
    /// Where in that puddle's entry area it begins.
    pub offset: usize,
}

impl Entry<'_> {
    /// The mask of a set-bits or clear-bits entry.
    pub fn mask(&self) -> Option<u64> {
        match self.kind {
            EntryKind::SetBits | EntryKind::ClearBits => {
                Some(u64::from_le_bytes(*self.data.first_chunk()?))
            }
            _ => None,
        }
    }
}

/// A log that was read and is whole as far as bytes can tell.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParsedLog<'a> {
    /// The header of the log's first puddle.
    pub header: LogHeader,
    /// The current range word.
    pub range: RangeWord,
    /// The salt of the current generation.
    pub salt: Salt,
    /// The entries of the current generation in the order in which they were written, seal and chain entries included.
    pub entries: Vec<Entry<'a>>,
    /// The seal, if the log ends with one.
    pub seal: Option<SealContents<'a>>,
    /// Addresses of the puddles that continue the log, in order.
    pub chain: Vec<u64>,
    /// Where the entries end: puddle of the chain and offset in its entry area.
    pub end: (usize, usize),
}

impl ParsedLog<'_> {
    /// Bytes for entries in all of its puddles, as if they were as large as the first.
    fn bytes(&self) -> u64 {
        let puddles = self.chain.len() as u64 + 1;
        self.header.capacity.saturating_mul(puddles)
    }

    /// Looks for entries of this log's current generation in a puddle that carries this log's id but that the chain
    /// did not reach: finding one means that the chain entry was damaged.
    ///
    /// # Errors
    /// [`Damage::LostEntry`] and [`Damage::Fragments`]; the area is counted as the one behind the chain's last.
    pub fn check_unreached(&self, area: &LogArea<'_>) -> Result<(), Damage> {
        if area.header().log_id != self.header.log_id || self.range.generation == 0 {
            return Ok(());
        }
        check_behind(area, 0, self.end.0 + 1, &self.salt)
    }
}

/// Reads the log that begins in `head`. Where it goes on in another puddle, `chain` is asked for the one at that
/// address; it opens it, checks that the client may use it, and gives its log area.
///
/// Reading stops at the first place that holds no whole entry of the current generation. Entries that a crash can have
/// torn are simply not there; an entry that was durable and is not readable is damage.
///
/// # Errors
/// [`ParseError::Damage`] where the log is not what a writer and a crash can have left;
/// [`ParseError::Chain`] where `chain` failed.
pub fn parse<'a, E>(
    head: LogArea<'a>,
    mut chain: impl FnMut(u64) -> Result<LogArea<'a>, E>,
) -> Result<ParsedLog<'a>, ParseError<E>> {
    if head.header().is_continuation {
        return Err(Damage::NotAHead.into());
    }
    let range = current_range(head.slots())?;
    // A word is durable before entries of its generation are written, and the first of them goes to the start of the
    // area. So that entry, where it is whole, proves that there was a newer word. (Slots alone do not always show it:
    // the newest word minus 16 is what its slot held before.)
    let next = Salt::new(head.header().log_id, range.generation + 1);
    if whole_entry(head.entries(), 0, &next).is_some() {
        let current = range.generation;
        return Err(Damage::LostWord { current }.into());
    }
    let salt = Salt::new(head.header().log_id, range.generation);
    let mut log = ParsedLog {
        header: *head.header(),
        range,
        salt,
        entries: Vec::new(),
        seal: None,
        chain: Vec::new(),
        end: (0, 0),
    };
    if range.generation == 0 {
        return Ok(log);
    }
    let mut area = head;
    loop {
        let index = log.chain.len();
        match read_area(&mut log, &area, index)? {
            Stop::End(offset) => {
                check_behind(&area, offset, index, &salt)?;
                log.end = (index, offset);
                return Ok(log);
            }
            Stop::Sealed(offset) => {
                log.end = (index, offset);
                return Ok(log);
            }
            Stop::Chained(address) => {
                if log.chain.contains(&address) || log.chain.len() + 1 >= CHAIN_MAX {
                    return Err(Damage::ChainLoop { address }.into());
                }
                area = chain(address).map_err(|source| ParseError::Chain { address, source })?;
                let header = area.header();
                let same = header.log_id == log.header.log_id && header.owner == log.header.owner;
                if !same || !header.is_continuation {
                    return Err(Damage::ForeignChain {
                        address,
                        found: header.log_id,
                        owner: header.owner,
                    }
                    .into());
                }
                log.chain.push(address);
            }
        }
    }
}

/// Why reading one puddle's entries ended.
enum Stop {
    /// No whole entry at this offset.
    End(usize),
    /// A seal, whose end is at this offset.
    Sealed(usize),
    /// The log goes on at this address.
    Chained(u64),
}

fn read_area<'a>(log: &mut ParsedLog<'a>, of: &LogArea<'a>, area: usize) -> Result<Stop, Damage> {
    let bytes = of.entries();
    let mut offset = 0;
    loop {
        let Some((header, data)) = whole_entry(bytes, offset, &log.salt) else {
            return Ok(Stop::End(offset));
        };
        let entry = check_fields(&header, data, area, offset)?;
        // No fence made it durable: that would have made the reach durable, too.
        if entry.kind == EntryKind::Chain && !of.may_be_chained() {
            return Ok(Stop::End(offset));
        }
        log.entries.push(entry);
        let next = next_entry_offset(offset, data.len(), entry.flags);
        match entry.kind {
            EntryKind::Seal => {
                let malformed = Damage::EntryField {
                    area,
                    offset,
                    field: "range count",
                    found: data.len() as u64,
                };
                let seal = SealContents::parse(data).ok_or(malformed)?;
                // A few bytes of log must not have recovery read gigabytes of home.
                let vouched = seal.bytes();
                if vouched > log.bytes() {
                    return Err(Damage::EntryField {
                        area,
                        offset,
                        field: "bytes in its ranges",
                        found: vouched,
                    });
                }
                // The checksums of all entries before it were right, and so is that of the seal: no tear does this.
                let expected = log.entries.len() - 1;
                if seal.count as usize != expected {
                    return Err(Damage::SealCount {
                        expected,
                        found: seal.count,
                    });
                }
                log.seal = Some(seal);
                return Ok(Stop::Sealed(next));
            }
            EntryKind::Chain => return Ok(Stop::Chained(entry.target)),
            EntryKind::Copy | EntryKind::SetBits | EntryKind::ClearBits => offset = next,
        }
    }
}

/// The entry at `offset` if all its bytes are those of an entry of the salted generation; its fields may still be
/// nonsense.
#[inline]
fn whole_entry<'a>(bytes: &'a [u8], offset: usize, salt: &Salt) -> Option<(EntryHeader, &'a [u8])> {
    let (head, rest) = bytes
        .get(offset..)?
        .split_first_chunk::<ENTRY_HEADER_SIZE>()?;
    let header = EntryHeader::from_bytes(head);
    // Stale entries, the common case, are rejected without touching their data.
    if header.generation_low != salt.generation_low() {
        return None;
    }
    let data = rest.get(..header.size as usize)?;
    let (checked, _) = head.split_first_chunk::<CHECKED_HEADER_SIZE>()?;
    let (words, _) = checked.as_chunks::<8>();
    let [target, fields] = words else { return None };
    let words = [u64::from_le_bytes(*target), u64::from_le_bytes(*fields)];
    (salt.checksum(words, data) == header.checksum).then_some((header, data))
}

fn check_fields<'a>(
    header: &EntryHeader,
    data: &'a [u8],
    area: usize,
    offset: usize,
) -> Result<Entry<'a>, Damage> {
    let damage = |field, found| Damage::EntryField {
        area,
        offset,
        field,
        found,
    };
    let kind = EntryKind::from_u8(header.kind).ok_or_else(|| damage("kind", header.kind.into()))?;
    let flags =
        EntryFlags::from_bits(header.flags).ok_or_else(|| damage("flags", header.flags.into()))?;
    let order = match header.order {
        0 => Order::Forward,
        1 => Order::Reverse,
        order => return Err(damage("order", order.into())),
    };
    let EntryHeader {
        target, sequence, ..
    } = *header;
    if target.checked_add(data.len() as u64).is_none() {
        return Err(damage("target", target));
    }
    match kind {
        EntryKind::Copy => {}
        EntryKind::SetBits | EntryKind::ClearBits => {
            if data.len() != 8 {
                return Err(damage("size", data.len() as u64));
            }
            if !target.is_multiple_of(8) {
                return Err(damage("target", target));
            }
        }
        EntryKind::Seal | EntryKind::Chain => {
            if sequence != SEQUENCE_SEAL {
                return Err(damage("sequence", sequence.into()));
            }
            let chain = kind == EntryKind::Chain;
            if flags.is_volatile() || chain && flags.is_fenced() {
                return Err(damage("flags", flags.bits().into()));
            }
            if chain && !data.is_empty() {
                return Err(damage("size", data.len() as u64));
            }
            if !chain && target != 0 {
                return Err(damage("target", target));
            }
        }
    }
    Ok(Entry {
        kind,
        order,
        flags,
        sequence,
        target,
        data,
        area,
        offset,
    })
}

/// Refuses a log with a durable entry at or behind `stop`, where its entries end.
///
/// Why this is damage and not a tear: an entry is marked fenced only if all before it was durable when it was written.
/// So if it is here, what lay at `stop` was durable once.
fn check_behind(of: &LogArea<'_>, stop: usize, area: usize, salt: &Salt) -> Result<(), Damage> {
    let bytes = of.entries();
    // Bytes that may still be summed up: without a bound, fragments made on purpose cost the square of their number.
    let mut budget = bytes.len().saturating_mul(4);
    let fragments = Damage::Fragments { area, stop };
    let rest = bytes.get(stop..of.written()).unwrap_or_default();
    let words = rest.as_chunks::<8>().0;
    // An entry's third word begins with the low half of the generation.
    for (index, word) in words.iter().enumerate().skip(2) {
        let [a, b, c, d, ..] = *word;
        if u32::from_le_bytes([a, b, c, d]) != salt.generation_low() {
            continue;
        }
        let [size_0, size_1, size_2, size_3, _, _, kind, flags] = words[index - 1];
        let fenced = EntryFlags::from_bits(flags).is_some_and(EntryFlags::is_fenced);
        if !fenced || EntryKind::from_u8(kind).is_none() {
            continue;
        }
        let found = stop + (index - 2) * 8;
        let size = u32::from_le_bytes([size_0, size_1, size_2, size_3]) as usize;
        if bytes.len() - found < ENTRY_HEADER_SIZE.saturating_add(size) {
            continue;
        }
        budget = budget.checked_sub(size).ok_or(fragments)?;
        if whole_entry(bytes, found, salt).is_some() {
            return Err(Damage::LostEntry { area, stop, found });
        }
    }
    Ok(())
}
