//! How much a user may have of what all share.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::rights::is_privileged;

/// What there is a limit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quota {
    /// Bytes of the puddles of pools that are the user's, headers included.
    Bytes,
    /// Bytes of logs and log spaces of the user's clients, also of those that are kept after their end.
    LogBytes,
    /// Puddles of both.
    Puddles,
    /// Clients at a time.
    Clients,
    /// Requests at a time.
    Requests,
    /// Descriptors that were sent to clients and not taken by them.
    Descriptors,
}

impl Quota {
    /// All of them.
    pub const ALL: [Quota; 6] = [
        Quota::Bytes,
        Quota::LogBytes,
        Quota::Puddles,
        Quota::Clients,
        Quota::Requests,
        Quota::Descriptors,
    ];

    /// Its name, in options and errors.
    pub fn name(self) -> &'static str {
        match self {
            Quota::Bytes => "bytes",
            Quota::LogBytes => "log-bytes",
            Quota::Puddles => "puddles",
            Quota::Clients => "clients",
            Quota::Requests => "requests",
            Quota::Descriptors => "descriptors",
        }
    }
}

/// The limits of all users. Root and the service's own user have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Of one user, or of each that has none of its own.
    limits: BTreeMap<(Option<u32>, Quota), u64>,
}

impl Quotas {
    /// Sets the limit of a user, or of each that has none of its own.
    pub fn set(&mut self, uid: Option<u32>, quota: Quota, limit: u64) {
        self.limits.insert((uid, quota), limit);
    }

    /// The limit of a user.
    pub fn limit(&self, uid: u32, quota: Quota) -> Option<u64> {
        let limit = |uid| self.limits.get(&(uid, quota)).copied();
        match is_privileged(uid) {
            true => None,
            false => limit(Some(uid)).or_else(|| limit(None)),
        }
    }

    /// Refuses more than a user may have. `used` is asked only where there is a limit.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub fn check(&self, uid: u32, quota: Quota, more: u64, used: impl Fn() -> u64) -> Result<()> {
        let Some(limit) = self.limit(uid, quota) else {
            return Ok(());
        };
        let used = used();
        match used.checked_add(more) {
            Some(sum) if sum <= limit => Ok(()),
            _ => Err(Error::QuotaExceeded {
                uid: uid.into(),
                quota: quota.name(),
                used,
                more,
                limit,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_own_limit_goes_before_that_of_all() {
        let mut quotas = Quotas::default();
        let check = |quotas: &Quotas, uid, used| quotas.check(uid, Quota::Puddles, 2, || used);
        check(&quotas, 61_001, u64::MAX).unwrap();
        quotas.set(None, Quota::Puddles, 10);
        quotas.set(Some(61_002), Quota::Puddles, 20);
        check(&quotas, 61_001, 8).unwrap();
        let error = check(&quotas, 61_001, 9).unwrap_err().to_string();
        assert!(error.contains("9 of 10 puddles"), "{error}");
        check(&quotas, 61_002, 18).unwrap();
        assert!(check(&quotas, 61_002, 19).is_err());
        assert!(check(&quotas, 61_002, u64::MAX).is_err());
        check(&quotas, 0, u64::MAX).unwrap();
    }
}
