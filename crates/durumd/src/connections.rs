//! How many connections there are, of all users and of each: who connects in a flood keeps out nobody but his own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use durum_service::{Quota, Quotas};

/// How many connections of a user may wait to greet, beside those of its clients.
const GREETING_MAX: usize = 256;

/// The connections, whether they have greeted or not.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    clients: usize,
    quotas: Quotas,
    by_user: Mutex<HashMap<u32, usize>>,
}

impl Connections {
    /// For so many clients, and as many of a user as its quota says.
    pub(crate) fn new(clients: usize, quotas: Quotas) -> Arc<Connections> {
        Arc::new(Connections {
            // Of a few users who flood it, each with all that it may have.
            most: clients.saturating_mul(2).saturating_add(GREETING_MAX),
            clients,
            quotas,
            by_user: Mutex::default(),
        })
    }

    /// One more of a user, until what is given is dropped; `None` where there are too many.
    pub(crate) fn enter(self: &Arc<Self>, uid: u32) -> Option<Connected> {
        let limit = self.quotas.limit(uid, Quota::Clients);
        let clients = limit.map_or(self.clients, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let mut by_user = self.by_user();
        let all: usize = by_user.values().sum();
        let of_user = by_user.entry(uid).or_default();
        if all >= self.most || *of_user >= clients.saturating_add(GREETING_MAX) {
            return None;
        }
        *of_user += 1;
        Some(Connected {
            connections: self.clone(),
            uid,
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_user().values().sum()
    }

    fn by_user(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.by_user.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct Connected {
    connections: Arc<Connections>,
    uid: u32,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut by_user = self.connections.by_user();
        if let Some(of_user) = by_user.get_mut(&self.uid) {
            *of_user -= 1;
            if *of_user == 0 {
                by_user.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(clients: u64) -> Quotas {
        let mut quotas = Quotas::default();
        quotas.set(None, Quota::Clients, clients);
        quotas
    }

    #[test]
    fn a_user_who_floods_keeps_out_nobody_else() {
        let connections = Connections::new(1024, limited(8));
        let flood: Vec<_> = std::iter::from_fn(|| connections.enter(1)).collect();
        assert_eq!(flood.len(), 8 + GREETING_MAX);
        let other = connections.enter(2).unwrap();
        assert_eq!(connections.count(), flood.len() + 1);
        drop(flood);
        drop(connections.enter(1).unwrap());
        drop(other);
        assert_eq!(connections.count(), 0);
        assert!(connections.by_user().is_empty());
    }
}
