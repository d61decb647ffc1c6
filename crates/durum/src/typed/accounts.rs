//! Accounts of persistent memory that a transaction may change through `&mut`.
//!
//! Handles can be moved in and out of such memory unseen. So when it is first written to, the handles in it are counted as the transaction's own, and
//! when the transaction ends, those that are in it then are given back: what remains are handles in volatile hands. Accounts never overlap:
//! one inside another says nothing new.

use std::collections::BTreeMap;

/// Memory whose handles are the transaction's own for now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Counts the handles in the values between two addresses.
    pub(crate) owners: unsafe fn(usize, usize) -> i64,
}

impl Account {
    fn owners(&self) -> i64 {
        // SAFETY: the account was opened for values of this type, which are there until the account is closed.
        unsafe { (self.owners)(self.start, self.end) }
    }

    fn holds(&self, other: &Account) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// So many are looked through one by one.
const FEW: usize = 12;

/// The accounts of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    few: Vec<Account>,
    /// All of them by start, when there are more than a few.
    many: BTreeMap<usize, Account>,
}

impl Accounts {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    /// Opens an account. By how much the balance changes.
    ///
    /// # Safety
    /// From `account.start` to `account.end` lie values of which `account.owners` counts the handles, until the account is closed.
    pub(crate) unsafe fn open(&mut self, account: Account) -> i64 {
        let is_inside = match self.many.is_empty() {
            true => self.few.iter().any(|open| open.holds(&account)),
            false => self
                .many
                .range(..=account.start)
                .next_back()
                .is_some_and(|(_, open)| open.holds(&account)),
        };
        if is_inside {
            return 0;
        }
        let change = self.close(account.start, account.end);
        if self.many.is_empty() && self.few.len() < FEW {
            self.few.push(account);
        } else {
            let few = self.few.drain(..).map(|open| (open.start, open));
            self.many.extend(few);
            self.many.insert(account.start, account);
        }
        change + account.owners()
    }

    /// Closes the accounts in `[start, end)`. By how much the balance changes.
    pub(crate) fn close(&mut self, start: usize, end: usize) -> i64 {
        let mut change = 0;
        self.few.retain(|open| {
            let goes = start <= open.start && open.end <= end;
            if goes {
                change -= open.owners();
            }
            !goes
        });
        while let Some((&at, open)) = self.many.range(start..end).next() {
            change -= open.owners();
            self.many.remove(&at);
        }
        change
    }

    /// Closes all. By how much the balance changes.
    pub(crate) fn close_all(&mut self) -> i64 {
        let open = self.few.iter().chain(self.many.values());
        let change = open.map(|open| -open.owners()).sum();
        self.few.clear();
        self.many.clear();
        change
    }
}
