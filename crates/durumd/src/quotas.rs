//! The limits of users that the command line names, and the counts of what is under way, which no registry has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use durum_remote::users;
use durum_runner::limits::number_of;
use durum_service::{Quota, Quotas, Result};

/// A limit, as the command line says it: `[USER:]QUOTA=N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    uid: Option<u32>,
    quota: Quota,
    most: u64,
}

/// Clients of a user, where nothing else is said.
const CLIENTS: u64 = 1024;

impl Limit {
    /// Reads one. A number may end with K, M, G or T, powers of 1024.
    pub(crate) fn parse(text: &str) -> std::result::Result<Limit, String> {
        let (name, number) = text.rsplit_once('=').ok_or("write it as QUOTA=N")?;
        let (uid, name) = match name.split_once(':') {
            Some((name, quota)) => (Some(uid_of(name)?), quota),
            None => (None, name),
        };
        let names = || Quota::ALL.map(Quota::name).join(", ");
        let quota = Quota::ALL.into_iter().find(|quota| quota.name() == name);
        let quota =
            quota.ok_or_else(|| format!("there is no quota {name:?}; there are {}", names()))?;
        let most = number_of(number).ok_or_else(|| {
            format!("{number:?} is no number of {name}; write it like 100, 64M or 2G")
        })?;
        Ok(Limit { uid, quota, most })
    }

    /// All limits together; a later one counts where two are of the same.
    pub(crate) fn all(limits: &[Limit]) -> Quotas {
        let mut quotas = Quotas::default();
        quotas.set(None, Quota::Clients, CLIENTS);
        for limit in limits {
            quotas.set(limit.uid, limit.quota, limit.most);
        }
        quotas
    }
}

/// The number of a user that the command line names.
pub(crate) fn uid_of(name: &str) -> std::result::Result<u32, String> {
    users::uid_of(name).ok_or_else(|| format!("no user {name:?}; name one by its number"))
}

/// How many of something each user has under way.
#[derive(Debug)]
pub(crate) struct Tally {
    quota: Quota,
    counts: Mutex<HashMap<u32, u64>>,
}

/// A part of a tally, until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    tally: Arc<Tally>,
    uid: u32,
    count: u64,
}

impl Tally {
    pub(crate) fn new(quota: Quota) -> Arc<Tally> {
        Arc::new(Tally {
            quota,
            counts: Mutex::default(),
        })
    }

    /// Counts some more for a user.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub(crate) fn take(self: &Arc<Self>, quotas: &Quotas, uid: u32, count: u64) -> Result<Taken> {
        let mut counts = self.counts();
        let used = counts.get(&uid).copied().unwrap_or(0);
        quotas.check(uid, self.quota, count, || used)?;
        counts.insert(uid, used + count);
        Ok(Taken {
            tally: self.clone(),
            uid,
            count,
        })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut counts = self.tally.counts();
        if let Some(count) = counts.get_mut(&self.uid) {
            *count -= self.count;
            if *count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_people_write_them() {
        let limit = |uid, quota, most| Limit { uid, quota, most };
        for (text, expected) in [
            ("bytes=64M", limit(None, Quota::Bytes, 64 << 20)),
            ("0:log-bytes=2G", limit(Some(0), Quota::LogBytes, 2 << 30)),
            ("root:clients=3", limit(Some(0), Quota::Clients, 3)),
            ("descriptors=0", limit(None, Quota::Descriptors, 0)),
        ] {
            assert_eq!(Limit::parse(text).unwrap(), expected);
        }
        for text in [
            "bytes",
            "bytes=",
            "bytes=M",
            "bytes=-1",
            "bytes=1m",
            "bytes=99999999999T",
            "coins=3",
            "nobody at all:bytes=1",
        ] {
            Limit::parse(text).unwrap_err();
        }
    }

    #[test]
    fn what_is_under_way_is_counted_by_user_until_it_ends() {
        let quotas = Limit::all(&[
            Limit::parse("requests=2").unwrap(),
            Limit::parse("61002:requests=5").unwrap(),
        ]);
        let tally = Tally::new(Quota::Requests);
        let first = tally.take(&quotas, 61_001, 1).unwrap();
        let second = tally.take(&quotas, 61_001, 1).unwrap();
        let error = tally.take(&quotas, 61_001, 1).unwrap_err().to_string();
        assert!(error.contains("has 2 of 2 requests"), "{error}");
        let other = tally.take(&quotas, 61_002, 5).unwrap();
        assert!(tally.take(&quotas, 61_002, 1).is_err());
        drop(first);
        drop(tally.take(&quotas, 61_001, 1).unwrap());
        drop((second, other));
        assert!(tally.counts().is_empty());
    }
}
