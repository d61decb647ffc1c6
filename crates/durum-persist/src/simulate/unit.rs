//! The versions of one unit of media: a line in words, or a sector.

use super::Rules;

/// How the media is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Bytes in a unit.
    pub(super) unit: usize,
    /// Bytes in a piece: what is old or new as a whole.
    pub(super) piece: usize,
}

impl Rules {
    pub(super) fn shape(self) -> Shape {
        match self {
            Rules::Lines => Shape { unit: 64, piece: 8 },
            Rules::Sectors => Shape {
                unit: 512,
                piece: 512,
            },
        }
    }
}

/// A unit that has versions newer than the durable one.
pub(super) struct Unit {
    shape: Shape,
    durable: Vec<u8>,
    /// In the order in which they came to be.
    versions: Vec<Version>,
    /// The pieces of the versions, one after the other.
    bytes: Vec<u8>,
    /// Versions up to this number were there when a sync failed; no later sync covers them.
    lost: u64,
}

#[derive(Clone, Copy)]
struct Version {
    /// Position in the run, growing.
    number: u64,
    piece: usize,
    by_file_write: bool,
}

impl Unit {
    pub(super) fn new(shape: Shape, durable: Vec<u8>) -> Unit {
        Unit {
            shape,
            durable,
            versions: Vec::new(),
            bytes: Vec::new(),
            lost: 0,
        }
    }

    /// Whether nothing is newer than the durable version.
    pub(super) fn is_clean(&self) -> bool {
        self.versions.is_empty()
    }

    /// Adds a version of a piece. A store that changes nothing makes none; a file write always does, since it makes
    /// the piece one that a sync covers.
    pub(super) fn push(&mut self, number: u64, piece: usize, bytes: &[u8], by_file_write: bool) {
        if by_file_write || self.latest(piece) != bytes {
            self.versions.push(Version {
                number,
                piece,
                by_file_write,
            });
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn latest(&self, piece: usize) -> &[u8] {
        let mut versions = self.versions.iter();
        match versions.rposition(|version| version.piece == piece) {
            Some(index) => self.version_bytes(index),
            None => self.durable_piece(piece),
        }
    }

    fn durable_piece(&self, piece: usize) -> &[u8] {
        &self.durable[piece * self.shape.piece..][..self.shape.piece]
    }

    fn version_bytes(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.shape.piece..][..self.shape.piece]
    }

    /// The versions up to `number` are durable: a fence has completed a write-back.
    pub(super) fn complete(
        &mut self,
        number: u64,
        replaced: impl FnMut(usize, &[u8], &[u8]),
    ) -> bool {
        self.fold(|version| version.number <= number, replaced)
    }

    /// A sync of the file has succeeded. Under [`Rules::Lines`] it covers file writes, not stores.
    pub(super) fn sync(&mut self, rules: Rules, replaced: impl FnMut(usize, &[u8], &[u8])) -> bool {
        let mut covered = [0; 8];
        for version in &self.versions {
            if version.number > self.lost && (version.by_file_write || rules == Rules::Sectors) {
                covered[version.piece] = version.number;
            }
        }
        self.fold(|version| version.number <= covered[version.piece], replaced)
    }

    /// A sync of the file has failed: the kernel may have dropped what was dirty, and calls it clean.
    pub(super) fn sync_failed(&mut self) {
        let last = self.versions.last();
        self.lost = last.map_or(self.lost, |version| version.number);
    }

    /// Makes durable what `is_durable` says; `replaced` gets piece, old and new bytes. True if anything was.
    fn fold(
        &mut self,
        is_durable: impl Fn(&Version) -> bool,
        mut replaced: impl FnMut(usize, &[u8], &[u8]),
    ) -> bool {
        let piece_len = self.shape.piece;
        let mut kept = 0;
        for index in 0..self.versions.len() {
            let version = self.versions[index];
            let bytes = index * piece_len..(index + 1) * piece_len;
            if is_durable(&version) {
                let durable = &mut self.durable[version.piece * piece_len..][..piece_len];
                replaced(version.piece, durable, &self.bytes[bytes.clone()]);
                durable.copy_from_slice(&self.bytes[bytes]);
            } else {
                self.versions[kept] = version;
                self.bytes.copy_within(bytes, kept * piece_len);
                kept += 1;
            }
        }
        let folded = kept < self.versions.len();
        self.versions.truncate(kept);
        self.bytes.truncate(kept * piece_len);
        folded
    }

    pub(super) fn pieces(&self) -> usize {
        self.shape.unit / self.shape.piece
    }

    /// Number of versions of a piece beside the durable one.
    pub(super) fn newer(&self, piece: usize) -> usize {
        let versions = self.versions.iter();
        versions.filter(|version| version.piece == piece).count()
    }

    /// Appends the unit to `target` as it looks with version `pick(newer versions)` of each piece, where 0 is the
    /// durable one; `differs` gets piece, durable and chosen bytes where another one was picked.
    pub(super) fn show(
        &self,
        target: &mut Vec<u8>,
        mut pick: impl FnMut(usize) -> usize,
        mut differs: impl FnMut(usize, &[u8], &[u8]),
    ) {
        for piece in 0..self.pieces() {
            let newer = self.newer(piece);
            let picked = if newer == 0 { 0 } else { pick(newer) };
            let durable = self.durable_piece(piece);
            let mut of_piece =
                (0..self.versions.len()).filter(|index| self.versions[*index].piece == piece);
            let bytes = match picked
                .checked_sub(1)
                .and_then(|skipped| of_piece.nth(skipped))
            {
                Some(index) => self.version_bytes(index),
                None => durable,
            };
            if bytes != durable {
                differs(piece, durable, bytes);
            }
            target.extend_from_slice(bytes);
        }
    }
}
