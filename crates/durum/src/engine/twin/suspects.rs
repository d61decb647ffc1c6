//! The blocks of a pool in which its copies may differ on the media, as this process knows the list
//! (docs/format/twin.md).
//!
//! A block stays on the list when its transaction has ended, though its copies are the same again: the next one that
//! changes something there finds it named, and has nothing to write. What a transaction has not touched may go at any
//! time, because its copies are the same, durably; so an entry that goes and one that comes are one store.

use std::ops::Range;

use durum_format::twin::{BLOCK_SIZE, GROUP_SIZE, SUSPECT_WORDS, Suspect};

use crate::options::Suspected;

/// The place of [`Suspect::EVERYTHING`], which has to find one when all others are taken.
const EVERYTHING: usize = 0;
const WORDS_PER_LINE: usize = 8;
/// A group that no transaction has looked for in so many turns goes: recovery need not read it. A block that one of two
/// thousand is drawn for in each of them stays.
const AGE_MAX: u64 = 16 << 10;
/// Once in so many turns one looks.
const AGE_STEP: u64 = 4 << 10;
/// The turn of a place that is free.
const FREE: u64 = u64::MAX;
/// Lines of the list.
pub(super) const LINES: usize = SUSPECT_WORDS / WORDS_PER_LINE;

/// What a word of the list says.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    group: u32,
    /// None: the place is free.
    blocks: u16,
    /// The next entry with the same hash; 0: there is none.
    next: u8,
    /// Those of them that are here for new objects only, which nobody is about to change once more.
    new: u16,
}

/// The list, and what of it is not on the media yet.
#[derive(Debug)]
pub(super) struct Suspects {
    limits: Suspected,
    /// By place on the media.
    entries: [Entry; SUSPECT_WORDS],
    /// By hash, the first entry; 0: there is none.
    heads: [u8; SUSPECT_WORDS],
    /// By place, the turn in which its entry was looked for last: in that one it must not go.
    turns: [u64; SUSPECT_WORDS],
    /// Goes round the entries to find a free one.
    free: usize,
    taken: usize,
    /// Of all entries.
    blocks: u32,
    turn: u64,
    is_everything: bool,
    /// Lines of the list whose words the media lack, a bit for each.
    unwritten: u32,
    /// Some of `entries` are new.
    has_new: bool,
    /// Blocks came to the list since the last fence. That others have left it need not be durable.
    is_unfenced: bool,
}

const _: () = assert!(LINES == 32 && SUSPECT_WORDS == 256);

fn hash(group: u32) -> usize {
    (group.wrapping_mul(0x9e37_79b1) >> 24) as usize
}

impl Suspects {
    /// Nothing is on the list. What the media have there, the pool's last writer has left.
    pub(super) fn new(limits: Suspected) -> Self {
        Suspects {
            limits: Suspected {
                groups: limits.groups.min(SUSPECT_WORDS - 1),
                ..limits
            },
            entries: [Entry::default(); SUSPECT_WORDS],
            heads: [0; SUSPECT_WORDS],
            turns: [FREE; SUSPECT_WORDS],
            free: 0,
            taken: 0,
            blocks: 0,
            turn: 1,
            is_everything: false,
            unwritten: u32::MAX,
            has_new: false,
            is_unfenced: false,
        }
    }

    /// Another transaction has the pool, whose copies are the same, durably.
    pub(super) fn begin_turn(&mut self) {
        if self.is_everything {
            *self = Suspects {
                turn: self.turn,
                ..Suspects::new(self.limits)
            };
        }
        self.turn += 1;
        if std::mem::take(&mut self.has_new) {
            self.drop_blocks(|list, place| list.entries[place].new);
        }
        if self.turn.is_multiple_of(AGE_STEP) {
            let is_old =
                |list: &Self, place: usize| list.turns[place].saturating_add(AGE_MAX) < list.turn;
            self.drop_blocks(|list, place| if is_old(list, place) { u16::MAX } else { 0 });
        }
        self.trim();
    }

    /// Drops blocks that the turn has not looked for. Nobody need wait until the media know.
    fn drop_blocks(&mut self, which: impl Fn(&Self, usize) -> u16) {
        for place in 0..SUSPECT_WORDS {
            let entry = self.entries[place];
            let goes = entry.blocks & which(self, place);
            if goes == 0 {
                continue;
            }
            if goes == entry.blocks {
                self.remove(place);
            } else {
                self.entries[place].blocks &= !goes;
                self.entries[place].new = 0;
                self.blocks -= goes.count_ones();
            }
            self.change(place);
        }
    }

    /// Drops what is too much, if the turn has not looked for it. Nobody need wait until the media know.
    fn trim(&mut self) {
        while self.blocks > self.limits.blocks
            && let Some(place) = self.evict()
        {
            self.change(place);
        }
    }

    /// The turn has made new objects in this range.
    pub(super) fn add_new(&mut self, address: usize, len: usize) {
        self.has_new = true;
        self.add_range(address, len, true);
    }

    /// The turn is about to change something in this range.
    pub(super) fn add(&mut self, address: usize, len: usize) {
        self.add_range(address, len, false);
    }

    fn add_range(&mut self, address: usize, len: usize, is_new: bool) {
        let (mut start, end) = (address as u64, address as u64 + len as u64);
        while start < end {
            let group = start / GROUP_SIZE;
            let part = start..end.min((group + 1) * GROUP_SIZE);
            let first = (part.start % GROUP_SIZE / BLOCK_SIZE) as u32;
            let last = ((part.end - 1) % GROUP_SIZE / BLOCK_SIZE) as u32;
            let blocks = u16::MAX >> (u16::BITS - 1 - last + first) << first;
            self.add_blocks(group as u32, blocks, is_new);
            start = part.end;
        }
    }

    fn add_blocks(&mut self, group: u32, blocks: u16, is_new: bool) {
        if self.is_everything {
            return;
        }
        let Some(at) = self.find(group).or_else(|| self.enter(group)) else {
            self.is_everything = true;
            self.is_unfenced = true;
            self.change(EVERYTHING);
            return;
        };
        self.turns[at] = self.turn;
        let entry = &mut self.entries[at];
        let missing = blocks & !entry.blocks;
        match is_new {
            true => entry.new |= missing,
            false => entry.new &= !blocks,
        }
        if missing == 0 {
            return;
        }
        entry.blocks |= missing;
        self.blocks += missing.count_ones();
        self.is_unfenced = true;
        self.change(at);
        self.trim();
    }

    /// The addresses around one that the turn has looked for whose blocks are listed, in its group: while the turn
    /// lasts they stay.
    pub(super) fn around(&self, address: usize) -> Range<usize> {
        if self.is_everything {
            return 0..usize::MAX;
        }
        let Some(place) = self.find((address as u64 / GROUP_SIZE) as u32) else {
            return 0..0;
        };
        let blocks = self.entries[place].blocks;
        let at = (address as u64 % GROUP_SIZE / BLOCK_SIZE) as u32;
        let above = (blocks >> at).trailing_ones() as usize;
        let below = (blocks << (u16::BITS - 1 - at)).leading_ones() as usize;
        let start = address - address % BLOCK_SIZE as usize;
        let block = BLOCK_SIZE as usize;
        start + block - below * block..start + above * block
    }

    /// The place of a group.
    fn find(&self, group: u32) -> Option<usize> {
        let mut at = usize::from(self.heads[hash(group)]);
        while at != 0 {
            let entry = &self.entries[at];
            if entry.group == group {
                return Some(at);
            }
            at = usize::from(entry.next);
        }
        None
    }

    /// Takes a place for a group, if there is one.
    fn enter(&mut self, group: u32) -> Option<usize> {
        let is_full = self.blocks >= self.limits.blocks || self.taken == self.limits.groups;
        let evicted = if is_full { self.evict() } else { None };
        let at = match evicted {
            Some(at) => at,
            None => self.free_place()?,
        };
        let head = &mut self.heads[hash(group)];
        self.entries[at] = Entry {
            group,
            next: *head,
            ..Entry::default()
        };
        *head = at as u8;
        self.taken += 1;
        Some(at)
    }

    fn free_place(&mut self) -> Option<usize> {
        if self.taken >= self.limits.groups {
            return None;
        }
        while self.entries[self.free].blocks != 0 || self.free == EVERYTHING {
            self.free = (self.free + 1) % SUSPECT_WORDS;
        }
        Some(self.free)
    }

    /// Frees the place of the group that nobody has looked for for longest, if the turn has not.
    fn evict(&mut self) -> Option<usize> {
        let oldest = self.turns.iter().copied().fold(FREE, u64::min);
        if oldest >= self.turn {
            return None;
        }
        let place = self.turns.iter().position(|turn| *turn == oldest)?;
        self.remove(place);
        Some(place)
    }

    fn remove(&mut self, place: usize) {
        let Entry {
            group,
            blocks,
            next,
            ..
        } = std::mem::take(&mut self.entries[place]);
        self.turns[place] = FREE;
        self.blocks -= blocks.count_ones();
        self.taken -= 1;
        let head = &mut self.heads[hash(group)];
        if usize::from(*head) == place {
            *head = next;
            return;
        }
        let mut before = usize::from(*head);
        while usize::from(self.entries[before].next) != place {
            before = usize::from(self.entries[before].next);
        }
        self.entries[before].next = next;
    }

    fn change(&mut self, place: usize) {
        self.unwritten |= 1 << (place / WORDS_PER_LINE);
    }

    /// Whether the media lack something of the list.
    #[inline]
    pub(super) fn is_written(&self) -> bool {
        self.unwritten == 0
    }

    /// Takes a line that the media lack, which the caller writes, and its words.
    pub(super) fn take_unwritten(&mut self) -> Option<(usize, [u64; WORDS_PER_LINE])> {
        if self.unwritten == 0 {
            return None;
        }
        let line = self.unwritten.trailing_zeros() as usize;
        self.unwritten &= self.unwritten - 1;
        Some((line, self.line(line)))
    }

    /// The words of a line.
    pub(super) fn line(&self, line: usize) -> [u64; WORDS_PER_LINE] {
        std::array::from_fn(|at| self.word(line * WORDS_PER_LINE + at))
    }

    fn word(&self, place: usize) -> u64 {
        let Entry { group, blocks, .. } = self.entries[place];
        match place {
            EVERYTHING if self.is_everything => Suspect::EVERYTHING.to_word(),
            _ if blocks == 0 => 0,
            _ => Suspect::new(group, blocks).to_word(),
        }
    }

    /// Whether there are blocks on the list that no fence has made durable.
    #[inline]
    pub(super) fn is_unfenced(&self) -> bool {
        self.is_unfenced
    }

    /// A fence has.
    #[inline]
    pub(super) fn fenced(&mut self) {
        self.is_unfenced = false;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use durum_format::twin::{SUSPECTS_SIZE, parse_suspects};

    use super::*;

    const BLOCK: usize = BLOCK_SIZE as usize;
    const GROUP: usize = GROUP_SIZE as usize;
    const BASE: usize = 0x2000_0000_0000;
    const BLOCKS_KEPT: usize = 128;
    const LIMITS: Suspected = Suspected {
        groups: 255,
        blocks: BLOCKS_KEPT as u32,
    };

    /// The list, and the media that it is written to.
    struct Written {
        suspects: Suspects,
        list: [u8; SUSPECTS_SIZE],
        /// Words that were written.
        lines: usize,
    }

    impl Written {
        fn new() -> Self {
            let mut written = Written {
                suspects: Suspects::new(LIMITS),
                list: [0xff; SUSPECTS_SIZE],
                lines: 0,
            };
            written.write();
            written.lines = 0;
            written
        }

        fn write(&mut self) {
            while let Some((line, words)) = self.suspects.take_unwritten() {
                for (at, word) in words.iter().enumerate() {
                    let start = 64 * line + 8 * at;
                    self.list[start..start + 8].copy_from_slice(&word.to_le_bytes());
                }
                self.lines += 1;
            }
        }

        fn add(&mut self, address: usize, len: usize) {
            self.suspects.add(address, len);
            self.write();
        }

        /// The blocks that the media name; `None`: all.
        fn blocks(&self) -> Option<BTreeSet<usize>> {
            match parse_suspects(&self.list).expect("a sound list") {
                durum_format::twin::Suspects::Everywhere => None,
                durum_format::twin::Suspects::In(ranges) => {
                    let blocks = ranges
                        .iter()
                        .flat_map(|range| range.start / BLOCK_SIZE..range.end / BLOCK_SIZE);
                    Some(blocks.map(|block| block as usize).collect())
                }
            }
        }
    }

    fn blocks_of(address: usize, len: usize) -> impl Iterator<Item = usize> {
        address / BLOCK..(address + len).div_ceil(BLOCK)
    }

    #[test]
    fn what_a_turn_touches_is_named_and_a_block_costs_a_word_once() {
        let mut written = Written::new();
        assert_eq!(written.blocks(), Some(BTreeSet::new()));
        for (address, len, lines) in [
            (BASE + 100, 8, 1),
            (BASE + 200, 8, 0),
            (BASE + BLOCK - 4, 8, 1),
            (BASE + GROUP - 1, 2, 2),
            (BASE + 3 * BLOCK, 2 * GROUP, 2),
            (BASE + 7 * BLOCK, BLOCK, 0),
        ] {
            let before = written.lines;
            written.suspects.begin_turn();
            written.add(address, len);
            let named = written.blocks().unwrap();
            assert!(blocks_of(address, len).all(|block| named.contains(&block)));
            let found = written.lines - before;
            assert!(found <= lines && (found > 0) == (lines > 0), "{found}");
        }
        assert!(!written.blocks().unwrap().contains(&(BASE / BLOCK + 48)));
    }

    #[test]
    fn blocks_of_earlier_turns_make_room_and_those_of_this_one_stay() {
        let mut written = Written::new();
        let mut state = 1u64;
        for turn in 0..2000 {
            written.suspects.begin_turn();
            let mut touched = BTreeSet::new();
            for _ in 0..turn % 120 {
                state = state.wrapping_mul(6_364_136_223_846_793_005) | 1;
                let address = BASE + (state >> 33) as usize % (1000 * GROUP);
                written.add(address, 8);
                touched.insert(address / BLOCK);
                // Each store finds its block named, and all others of the turn.
                let named = written.blocks().unwrap();
                assert!(touched.is_subset(&named), "turn {turn}");
            }
            let named = written.blocks().unwrap().len();
            if touched.is_empty() {
                continue;
            }
            // Blocks that lie in the groups of this turn stay, too.
            assert!(named <= BLOCKS_KEPT + touched.len(), "{named}");
        }
    }

    #[test]
    fn what_is_used_again_and_again_stays() {
        let mut written = Written::new();
        for turn in 1..10_000 {
            written.suspects.begin_turn();
            written.add(BASE, 8);
            written.add(BASE + turn * GROUP, 8);
        }
        // The first block once, and each other one with what it takes the place of.
        assert!(written.lines < 2 * 10_000 + 300, "{}", written.lines);
        assert!(written.blocks().unwrap().contains(&(BASE / BLOCK)));
    }

    #[test]
    fn a_turn_that_touches_more_than_there_is_room_for_names_everything_and_the_next_one_begins_anew()
     {
        let mut written = Written::new();
        written.suspects.begin_turn();
        for group in 0..255 {
            written.add(BASE + group * GROUP, 8);
            assert_eq!(written.blocks().unwrap().len(), group + 1);
        }
        written.add(BASE + 255 * GROUP, 8);
        assert_eq!(written.blocks(), None);
        let before = written.lines;
        written.add(BASE + 256 * GROUP, 8);
        assert_eq!(written.lines, before, "there is nothing more to say");
        written.suspects.begin_turn();
        written.add(BASE + 3 * BLOCK, 8);
        let one = BTreeSet::from([BASE / BLOCK + 3]);
        assert_eq!(written.blocks(), Some(one));
    }

    #[test]
    fn new_objects_leave_the_list_with_their_turn_and_nobody_waits_for_that() {
        let mut written = Written::new();
        written.suspects.begin_turn();
        written.add(BASE, 8);
        written.suspects.add_new(BASE + 8, 200 * BLOCK);
        written.write();
        assert_eq!(written.blocks().unwrap().len(), 201);
        assert!(written.suspects.is_unfenced());
        written.suspects.fenced();
        written.suspects.begin_turn();
        assert!(!written.suspects.is_written() && !written.suspects.is_unfenced());
        written.add(BASE, 8);
        assert!(!written.suspects.is_unfenced());
        assert_eq!(written.blocks(), Some(BTreeSet::from([BASE / BLOCK])));
        // As many as are kept, where nothing is new.
        written.add(BASE, 200 * BLOCK);
        assert_eq!(written.blocks().unwrap().len(), 200);
        written.suspects.begin_turn();
        written.add(BASE, 8);
        assert!(written.blocks().unwrap().len() <= BLOCKS_KEPT);
    }

    #[test]
    fn the_listed_blocks_around_an_address_are_told() {
        let mut written = Written::new();
        written.suspects.begin_turn();
        let around = |written: &mut Written, block: usize, blocks: Range<usize>| {
            written.add(BASE + block * BLOCK + 70, 8);
            let found = written.suspects.around(BASE + block * BLOCK + 70);
            assert_eq!(
                found,
                BASE + blocks.start * BLOCK..BASE + blocks.end * BLOCK
            );
        };
        around(&mut written, 3, 3..4);
        around(&mut written, 5, 5..6);
        around(&mut written, 4, 3..6);
        around(&mut written, 0, 0..1);
        around(&mut written, 15, 15..16);
        around(&mut written, 16, 16..17);
        written.add(BASE, GROUP);
        around(&mut written, 9, 0..16);
        written.add(BASE, 300 * GROUP);
        let everywhere = written.suspects.around(BASE + 299 * GROUP);
        assert_eq!(everywhere, 0..usize::MAX);
    }

    #[test]
    fn what_nobody_has_used_for_long_goes() {
        let mut written = Written::new();
        written.suspects.begin_turn();
        written.add(BASE, 8);
        written.add(BASE + 5 * GROUP, 8);
        written.suspects.fenced();
        for turn in 0..AGE_MAX + 2 * AGE_STEP {
            written.suspects.begin_turn();
            written.add(BASE, 8);
            let count = written.blocks().unwrap().len();
            assert!(count == 1 || turn < AGE_MAX + AGE_STEP, "{turn}");
            assert!(count == 2 || turn >= AGE_MAX - 2, "{turn}");
        }
        assert!(written.lines <= 4 && !written.suspects.is_unfenced());
    }

    #[test]
    fn a_range_of_any_size_is_named_whole() {
        for (first, len) in [
            (0, 1),
            (BLOCK - 1, 2),
            (5, 200 * GROUP),
            (GROUP - 1, GROUP + 2),
        ] {
            let mut written = Written::new();
            written.suspects.begin_turn();
            written.add(BASE + first, len);
            let wanted: BTreeSet<usize> = blocks_of(BASE + first, len).collect();
            assert_eq!(written.blocks(), Some(wanted));
        }
        let mut written = Written::new();
        written.add(BASE, 300 * GROUP);
        assert_eq!(written.blocks(), None);
    }
}
