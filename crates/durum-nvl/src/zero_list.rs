//! The zero list: allocations that no strong pointer in the heap leads to. Volatile pointers may, so who is on it is
//! freed only by whoever knows better: the opener, the closer, a collection.

use durum::Result;

use crate::layout::{LINK, LISTED, field};
use crate::words::Words;

/// Puts an allocation on the list.
pub(crate) fn push(words: &mut Words<'_>, start: usize) -> Result<()> {
    let next = words.read(field!(words.heap.root, HeapRoot, zero));
    words.write(field!(start, Header, next), next)?;
    words.write(field!(start, Header, previous), 0)?;
    let state = field!(start, Header, state);
    words.write(state, words.read(state) | LISTED)?;
    begin_with(words, start, next as usize)
}

/// Has the list begin with an allocation whose header says already that it does, before `next`.
pub(crate) fn begin_with(words: &mut Words<'_>, start: usize, next: usize) -> Result<()> {
    let link = (start + LINK) as u64;
    if next != 0 {
        words.write(field!(next - LINK, Header, previous), link)?;
    }
    words.write(field!(words.heap.root, HeapRoot, zero), link)?;
    words.counts.listed += 1;
    Ok(())
}

/// Takes it off.
pub(crate) fn remove(words: &mut Words<'_>, start: usize) -> Result<()> {
    let next = words.read(field!(start, Header, next));
    let previous = words.read(field!(start, Header, previous));
    let before = match previous {
        0 => field!(words.heap.root, HeapRoot, zero),
        previous => field!(previous as usize - LINK, Header, next),
    };
    words.write(before, next)?;
    if next != 0 {
        words.write(field!(next as usize - LINK, Header, previous), previous)?;
    }
    words.write(field!(start, Header, next), 0)?;
    words.write(field!(start, Header, previous), 0)?;
    let state = field!(start, Header, state);
    words.write(state, words.read(state) & !LISTED)?;
    words.counts.listed = words.counts.listed.saturating_sub(1);
    Ok(())
}
