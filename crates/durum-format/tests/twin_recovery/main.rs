//! Which copy of a Twin pool recovery takes: the decision as a table, tried with every input, and against a model of
//! what crashes leave.

mod decision;
mod lives;

use durum_format::twin::Copy;

/// Words of the pool, each in a block of its own. The lowest bit of the first one says whether the second one is an
/// object: a transaction that makes it does not put it on the list of suspects.
const WORDS: usize = 2;

/// What a seal says of the words in a mask, which copies hold or not.
type Seal = Option<(u64, usize, [u64; WORDS])>;

/// The list of suspects, which has one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Suspect {
    None,
    Word(usize),
    Everything,
}

/// The media: units that become durable each by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Media {
    state: u64,
    suspect: Suspect,
    /// By the parity of the transaction's number; `None`: nothing that is one, as when it was torn.
    seals: [Seal; 2],
    copies: [[u64; WORDS]; 2],
}

const MAIN: usize = 0;
const BACK: usize = 1;
/// A pool without an object.
const FRESH: Media = Media {
    state: 0,
    suspect: Suspect::None,
    seals: [None; 2],
    copies: [[0; WORDS]; 2],
};

fn holds(media: &Media, copy: Copy, generation: u64) -> Option<usize> {
    let words = &media.copies[if copy == Copy::Main { MAIN } else { BACK }];
    let (of, mask, left) = media.seals[(generation % 2) as usize]?;
    let is_held = (0..WORDS).all(|word| mask >> word & 1 == 0 || words[word] == left[word]);
    (of == generation && is_held).then_some(mask)
}
