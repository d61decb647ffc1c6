//! A store with a hostile client among others, and what is to become of them.

use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;
use durum_service::{
    CreateOptions, Embedded, EngineKind, Error, Host, PoolGrant, PoolSpec, Service,
};

use crate::recovery::{assert_recovered, interrupt};
use crate::support::{Log, Records, Space, create_options, open, put, root, spec, word};

/// Where the transactions of these tests write.
pub const PLACE: u64 = 0x10000;

/// A client with a pool on each engine, and with a transaction under way on each.
pub struct Hostile {
    pub store: Embedded,
    pub hybrid: PoolGrant,
    pub twin: PoolGrant,
    pub shadow: PoolGrant,
    pub space: Space,
    pub log: Log,
    pub records: Records,
}

/// Its pools.
pub const POOLS: [&str; 3] = ["hybrid", "twin", "shadow"];

impl Hostile {
    pub fn new(store: Embedded) -> Hostile {
        let pool = |name, engine| store.create_pool(name, &PoolSpec::new(engine)).unwrap();
        let hybrid = pool("hybrid", EngineKind::Hybrid);
        let twin = pool("twin", EngineKind::Twin);
        let shadow = pool("shadow", EngineKind::Shadow);
        let mut space = Space::new(&store);
        let mut log = space.log(&store, 0xdead);
        log.undo(root(&hybrid).address + PLACE, &1_u64.to_le_bytes());
        let mut records = Records::new(&store);
        records.store(root(&shadow).address + PLACE, 1);
        Hostile {
            store,
            hybrid,
            twin,
            shadow,
            space,
            log,
            records,
        }
    }
}

/// A store with a client that works, one that is gone and left honest logs, and one that is gone and is hostile.
pub struct Scene {
    pub host: Arc<Host>,
    pub works: Embedded,
    pub gone: Uuid,
    pub hostile: Uuid,
}

pub const WORKED: u64 = 6;

impl Scene {
    pub fn new(path: &Path, attack: impl FnOnce(&mut Hostile)) -> Scene {
        Scene::with(path, &create_options(), attack)
    }

    pub fn with(path: &Path, options: &CreateOptions, attack: impl FnOnce(&mut Hostile)) -> Scene {
        Scene::keeping(path, options, attack).0
    }

    /// With the files that the hostile client has.
    pub fn keeping(
        path: &Path,
        options: &CreateOptions,
        attack: impl FnOnce(&mut Hostile),
    ) -> (Scene, Hostile) {
        let host = Host::create(path, options).unwrap();
        let works = host.client().unwrap();
        let pool = works.create_pool("works", &spec()).unwrap();
        let mut log = Space::new(&works).log(&works, 0xb1);
        log.undo(root(&pool).address + PLACE, &5_u64.to_le_bytes());
        put(root(&pool), PLACE, &WORKED.to_le_bytes());
        let gone = interrupt(host.client().unwrap());
        let mut hostile = Hostile::new(host.client().unwrap());
        attack(&mut hostile);
        let scene = Scene {
            gone: gone.info().client,
            hostile: hostile.store.info().client,
            host,
            works,
        };
        (scene, hostile)
    }

    /// The gone clients are recovered while the other one works.
    pub fn recover(&self) {
        let Scene { host, works, .. } = self;
        host.recover_client(self.hostile).unwrap();
        let report = host.recover_client(self.gone).unwrap();
        assert_eq!((report.rolled_back, report.rolled_forward), (3, 1));
        assert_others(works);
        let pools = works.pools().unwrap();
        let pool = pools.iter().find(|pool| pool.name == "works").unwrap();
        works.close_pool(pool.uuid).unwrap();
        let pool = works.open_pool("works").unwrap();
        assert_eq!(word(root(&pool), PLACE), WORKED);
    }

    /// The whole store stops, and is opened again. Gives the new opener.
    pub fn restart(self, path: &Path) -> Embedded {
        drop((self.works, self.host));
        let store = open(path);
        assert_others(&store);
        assert_eq!(word(root(&store.open_pool("works").unwrap()), PLACE), 5);
        store
    }
}

/// Pools of others are as their transactions left them, and new ones can be made.
pub fn assert_others(store: &Embedded) {
    let pool = store.open_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
    store.close_pool(pool.uuid).unwrap();
    let more = store.create_pool("more", &spec()).unwrap();
    store.close_pool(more.uuid).unwrap();
    store.remove_pool("more").unwrap();
}

/// What becomes of the hostile client's pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Quarantined,
    Refused,
    /// Others are as before, and this one cannot be opened before its file is back.
    Unreadable,
    Opens,
}

pub fn fate(store: &Embedded, pool: &str) -> Fate {
    // A pool is open with its root puddle; the others are opened when they are needed.
    let opened = store.open_pool(pool).and_then(|grant| {
        let others: Vec<_> = grant.others.iter().map(|place| place.uuid).collect();
        store.open_puddles(grant.uuid, &others)
    });
    match opened {
        Ok(_) => Fate::Opens,
        Err(Error::PoolQuarantined { pool: name, .. }) if name == pool => Fate::Quarantined,
        Err(Error::PoolRefused { pool: name, .. }) if name == pool => Fate::Refused,
        Err(error) if error.to_string().contains(&format!("only pool \"{pool}\"")) => {
            Fate::Unreadable
        }
        Err(error) => panic!("{pool}: {error}"),
    }
}
