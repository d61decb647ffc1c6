//! What is left off because of the limits, and how far it is counted all the same.

/// Places of rows that are counted for one look beside those that are shown.
const COUNTED_MAX: u64 = 1 << 20;
/// How many places an element of a chain counts for: each is a read for itself.
pub(super) const ELEMENT: u64 = 8;

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Pointers in a row.
    pub depth: usize,
    /// Objects that pointers lead to.
    pub objects: usize,
    /// Elements of a collection or array.
    pub elements: usize,
}

/// What is not shown because of the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Pointers that are not followed because of [`Limits::depth`].
    pub depth: u64,
    /// Those because of [`Limits::objects`].
    pub objects: u64,
    /// Lists, maps and texts of which [`Limits::elements`] leaves something off.
    pub elements: u64,
    /// A limit of elements with which all of these are shown as a whole, as far as it was counted.
    pub elements_enough: u64,
    /// Whether it was not counted to the end.
    pub is_more: bool,
    /// Whether there are more values than one look has.
    pub is_too_much: bool,
    /// Places that were counted.
    counted: u64,
}

impl Cuts {
    /// A list, map or text is cut, of which so many elements would be all.
    pub(super) fn cut(&mut self, enough: u64, is_more: bool) {
        self.elements += 1;
        self.elements_enough = self.elements_enough.max(enough);
        self.is_more |= is_more;
    }

    /// Whether so many more places may be counted that are not shown.
    pub(super) fn may_count(&mut self, places: u64) -> bool {
        self.counted = self.counted.saturating_add(places);
        self.counted <= COUNTED_MAX
    }

    /// A pointer at this depth is not followed.
    pub(super) fn pointer(&mut self, depth: usize, limits: &Limits) {
        match depth < limits.depth {
            true => self.objects += 1,
            false => self.depth += 1,
        }
    }
}
