//! Types change in a pool of a service, as in one of a path.

use std::path::{Path, PathBuf};

use durum::Error;
use durum::typed::{Flags, PoolType};
use durum_protocol::{Answer, Request};

use crate::strangers::Raw;
use crate::support::Served;

mod one {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Job {
        pub tries: PCell<u64, P>,
        pub later: Reserved<8>,
    }
}

mod two {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Job {
        #[durum(was = "tries")]
        pub attempts: PCell<u64, P>,
        #[durum(in_reserved)]
        pub deadline: PCell<u64, P>,
    }
}

fn versions(pool: &Path) {
    let job = one::P::open::<one::Job>(pool, Flags::CREATE).unwrap();
    one::P::transaction(|j| job.tries.set(7, j)).unwrap();
    job.close().unwrap();
    // Readers of the next version record nothing.
    let job = two::P::open::<two::Job>(pool, Flags::READ_ONLY).unwrap();
    assert_eq!(job.attempts.get(), 7);
    job.close().unwrap();
    let job = one::P::open::<one::Job>(pool, Flags::OPEN).unwrap();
    job.close().unwrap();
    for deadline in [0, 9] {
        let job = two::P::open::<two::Job>(pool, Flags::OPEN).unwrap();
        assert_eq!((job.attempts.get(), job.deadline.get()), (7, deadline));
        two::P::transaction(|j| job.deadline.set(9, j)).unwrap();
        job.close().unwrap();
    }
    for flags in [Flags::OPEN, Flags::READ_ONLY] {
        let old = one::P::open::<one::Job>(pool, flags).map(drop);
        assert!(matches!(old, Err(Error::OldRootType { .. })), "{old:?}");
    }
}

#[test]
fn a_pool_goes_on_with_a_newer_version_and_no_older_durum_opens_it() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = Served::start();
    let address = PathBuf::from(format!("{}:jobs", served.address()));
    versions(&directory.path().join("store"));
    versions(&address);
    // One whose durum knows nothing of that.
    let (older, _lock) = Raw::enter(&served.socket());
    let name = || "jobs".to_owned();
    for open in [
        Request::OpenPool { name: name() },
        Request::ReadPool { name: name() },
    ] {
        match older.ask(&open) {
            Answer::Failed(failure) => {
                let told = format!("{failure:?}");
                assert!(told.contains("has changed its types"), "{told}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Nobody holds it.
    let job = two::P::open::<two::Job>(&address, Flags::OPEN).unwrap();
    job.close().unwrap();
}
