//! Every write-back and fence of sections, and other steps that keep an order, by what it is there for. A crash test
//! that leaves one out has to fail.

use durum_persist::Site;

/// Constants, and [`sites`] with all of them.
macro_rules! sites {
    ($($(#[$attribute:meta])* $site:ident = $name:literal;)+) => {
        $($(#[$attribute])* pub(crate) const $site: Site = Site($name);)+

        /// Every write-back and fence of sections, and other steps that keep an order.
        pub fn sites() -> Vec<Site> {
            vec![$($site),+]
        }
    };
}

sites! {
    LINES_WRITE = "section: write back the lines of its stores";
    STACK_WRITE = "section: write back locals and frames";
    STORES_FENCE = "section: fence between stores and the record behind them";
    OWNED_FENCE = "section: fence between what was written before and a word";
    RECORD_WRITE = "section: write back a record";
    RECORD_FENCE = "section: fence after a record";
    IDLE_WRITE = "section: write back that it has ended";
    IDLE_FENCE = "section: fence after it has ended";
    TAKEN_FENCE = "memory: fence between what was taken and its bits";
    BITS_FENCE = "memory: fence after bits that no record tells of";
    TELL_STORED = "section: tell in a record what was stored before it";
    TELL_NOTHING = "section: tell nothing where others may store";
    TELL_TAKEN = "memory: tell in a record what was taken";
    TELL_FREED = "memory: tell in a record what was freed";
    TELL_AGAIN = "memory: record that something is not free which was taken again";
    FILL_BLANK = "memory: zeros where something was taken whose type has pointers";
    WAIT_FOR_SECTIONS = "memory: wait for the sections that were under way when something was freed";
    HEAD_WRITE = "sections: write back the head of their puddle";
    HEAD_FENCE = "sections: fence after the head of their puddle";
    LOCK_WRITE = "lock: write back its kind";
    LOCK_FENCE = "lock: fence after its kind";
}
