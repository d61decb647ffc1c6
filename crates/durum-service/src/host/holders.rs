//! Who has a pool open: one who writes it, or any number who read it. What keeps others from it meanwhile.

use durum_format::Uuid;

use super::Open;
use crate::error::{Error, Result};

/// What a client wants a pool for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To read it.
    Read,
    /// To read it, also in quarantine, as the crash left it.
    Look,
    /// That nobody writes it, whether the client reads it already or not.
    Hold,
    /// To write it. Who alone reads it may go on to that: nobody comes in between.
    Write,
    Remove,
    /// To give it new files.
    Renew,
    /// To decide about its quarantine.
    Settle,
}

impl Wish {
    /// What cannot be done while the client itself has the pool open.
    pub(super) fn operation(self) -> &'static str {
        match self {
            Wish::Read | Wish::Look | Wish::Write => "opened again",
            Wish::Hold => "searched for garbage",
            Wish::Remove => "removed",
            Wish::Renew => "taken from others",
            Wish::Settle => "accepted or recovered",
        }
    }

    /// Whether somebody may go on to read the pool, who is the client itself or another one.
    fn suffers_reader(self, is_itself: bool) -> bool {
        match self {
            Wish::Read | Wish::Look => !is_itself,
            Wish::Hold => true,
            Wish::Write => is_itself,
            Wish::Remove | Wish::Renew | Wish::Settle => false,
        }
    }
}

impl Open {
    /// Who has a pool open, to write it or to read it; several only where they read.
    pub(super) fn holders(&self, pool: Uuid) -> impl Iterator<Item = Uuid> + '_ {
        let writes = move |client: &Uuid| self.contents.grants.contains(&(*client, pool));
        let writers = self.at_work.iter().copied().filter(writes);
        let readers = self.readers.iter().filter(move |(_, of)| *of == pool);
        writers.chain(readers.map(|(client, _)| *client))
    }

    /// The client is gone, or has ended.
    pub(super) fn forget_client(&mut self, client: Uuid) {
        self.at_work.remove(&client);
        self.readers.retain(|(of, _)| *of != client);
        self.in_use.remove(&client);
        self.taken_over.retain(|_, by| *by != client);
    }

    /// Refuses what others, or the client itself, have a pool open for.
    pub(super) fn ensure_free(&self, client: Uuid, pool: Uuid, wish: Wish) -> Result<()> {
        self.ensure_not_renewed(pool)?;
        let is_in_the_way = |holder: &Uuid| {
            let writes = self.contents.grants.contains(&(*holder, pool));
            writes || !wish.suffers_reader(*holder == client)
        };
        let in_the_way: Vec<Uuid> = self.holders(pool).filter(is_in_the_way).collect();
        if in_the_way.is_empty() {
            return Ok(());
        }
        let name = self.contents.name_of(pool);
        Err(match in_the_way.contains(&client) {
            true => Error::PoolOpen {
                name,
                operation: wish.operation(),
            },
            false => Error::PoolBusy { name },
        })
    }
}
