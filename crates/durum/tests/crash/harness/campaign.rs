//! Recording a run and exploring its crashes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{engine, twin_mode};
use durum::{Domain, Engine, PageTracking, Pool, PoolOptions, Store, StoreOptions};
use durum_persist::Site;
use durum_persist::record::{Recorder, RecorderOptions, Trace};
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};

use super::arena::Arena;
use super::judge::{Judge, POOL, recover};
use super::lane::{Lane, Places, Step};
use super::random;
use super::state::{Owners, Root, State, byte_type};

/// A run to be recorded.
pub struct Campaign {
    /// The test's name.
    pub name: &'static str,
    pub domain: Domain,
    pub engine: Engine,
    pub plan: Plan,
    pub owners: Owners,
    /// Number of lanes.
    pub lanes: usize,
    /// Bytes of the large object; 0 for none.
    pub large_size: usize,
    pub root_puddle_size: u64,
    pub log_max: u64,
    /// Private memory before pages are given back; 0: after each commit.
    pub private_max: u64,
    /// How sections find what has changed.
    pub page_tracking: PageTracking,
    /// Groups and blocks that a Twin pool keeps named, where that is not as usual.
    pub suspects: Option<(usize, u32)>,
    /// A write-back, fence or sync that the run shall forget.
    pub skip: Option<Site>,
    /// Whether the end of the store is recorded, too.
    pub record_close: bool,
    pub used_one_in: u64,
}

/// An open pool and the lanes of a run.
pub struct World {
    pub lanes: Vec<Lane>,
    pub pool: Pool,
    pub store: Store,
}

impl World {
    /// The only lane, or the first.
    pub fn lane(&mut self) -> &mut Lane {
        &mut self.lanes[0]
    }
}

/// A run that was recorded.
pub struct Recording {
    pub trace: Trace,
    pub judge: Judge,
    pub plan: Plan,
    pub name: &'static str,
    // Dropped last: images open where the store was.
    _arena: Arena,
}

impl Campaign {
    /// A run on mapped memory, whose lines are torn at words.
    pub fn lines(name: &'static str) -> Campaign {
        Campaign::on(name, Domain::Dax, Rules::Lines)
    }

    /// A run on an ordinary file system, whose sectors are old or new at any time.
    pub fn sectors(name: &'static str) -> Campaign {
        Campaign::on(name, Domain::File, Rules::Sectors)
    }

    fn on(name: &'static str, domain: Domain, rules: Rules) -> Campaign {
        let mut plan = Plan::new(rules, random::seed(0x6475_7275_6d01));
        plan.keep_failed = std::env::var_os("DURUM_CRASH_KEEP").is_some();
        plan.points_max = Some(60);
        plan.random_images = 3;
        plan.single_units_max = 6;
        plan.nested_one_in = 100;
        plan.nested_points_max = Some(6);
        Campaign {
            name,
            domain,
            engine: engine(),
            plan,
            owners: Owners::one(),
            lanes: 1,
            large_size: 0,
            root_puddle_size: 2 << 20,
            log_max: 64 << 20,
            private_max: u64::MAX,
            page_tracking: PageTracking::Auto,
            suspects: None,
            skip: None,
            record_close: false,
            used_one_in: 8,
        }
    }

    /// Changes the plan.
    pub fn plan(mut self, change: impl FnOnce(&mut Plan)) -> Campaign {
        change(&mut self.plan);
        self
    }

    /// Makes a store, runs `work` on it under a recorder, and closes it.
    pub fn record(self, work: impl FnOnce(&mut World)) -> Recording {
        self.record_after(|_| (), work)
    }

    /// As [`Campaign::record`], with something before the recording. It may use the first lane only; the others
    /// find what it left.
    pub fn record_after(
        self,
        before: impl FnOnce(&mut World),
        work: impl FnOnce(&mut World),
    ) -> Recording {
        let arena = Arena::take();
        let dir = tempfile::tempdir_in("/dev/shm").expect("a scratch directory");
        let path = dir.path().join("store");
        let mut world = self.prepare(&arena, &path);
        before(&mut world);
        // The thread gets its log before the recording: how logs are made is the subject of tests with several threads.
        let root = world.lane().places.at(0, 1).cast_const();
        let warm = world.pool.transaction(|tx| unsafe { tx.add(root) });
        warm.expect("the thread has a log");
        let state = world.lane().state.clone();
        for lane in &mut world.lanes {
            lane.start_from(&state);
        }
        let options = RecorderOptions {
            skip: self.skip,
            ..RecorderOptions::default()
        };
        let recorder = Recorder::start(&path, options);
        work(&mut world);
        let World { lanes, pool, store } = world;
        let steps: Vec<Vec<Step>> = lanes.into_iter().map(|lane| lane.steps).collect();
        let trace = if self.record_close {
            drop(pool);
            close(store);
            recorder.stop()
        } else {
            let trace = recorder.stop();
            drop(pool);
            close(store);
            trace
        };
        let other_objects = 1 + u64::from(self.large_size > 0);
        let mut judge = Judge::new(self.domain, self.owners, state, steps, other_objects);
        judge.used_one_in = self.used_one_in;
        Recording {
            trace,
            judge,
            plan: self.plan,
            name: self.name,
            _arena: arena,
        }
    }

    fn prepare(&self, arena: &Arena, path: &PathBuf) -> World {
        let options = StoreOptions::new()
            .domain(self.domain)
            .base(arena.base)
            .log_max(self.log_max)
            .private_max(self.private_max)
            // No thread comes between: the run says when the queue is written, and commits write home.
            .buffered_window(Duration::from_secs(3600))
            .checkpoint_thread(false);
        let store = Store::create(path, options).expect("a store is made");
        let pool_options = PoolOptions::new()
            .twin_mode(twin_mode())
            .engine(self.engine)
            .page_tracking(self.page_tracking)
            .root_puddle_size(self.root_puddle_size);
        let pool_options = match self.suspects {
            Some((groups, blocks)) => pool_options.suspects(groups, blocks),
            None => pool_options,
        };
        let pool = store
            .create_pool(POOL, pool_options)
            .expect("a pool is made");
        let root = pool.root::<Root>().expect("the root is made");
        let mut large = std::ptr::null_mut();
        if self.large_size > 0 {
            large = pool
                .transaction(|tx| unsafe {
                    let large = tx.alloc_bytes(&pool, byte_type(), self.large_size, 8)?;
                    large.write_bytes(0, self.large_size);
                    tx.set(&raw mut (*root).large, large)?;
                    tx.set(&raw mut (*root).large_size, self.large_size as u64)?;
                    Ok::<_, durum::Error>(large)
                })
                .expect("the large object is made");
        }
        let places = Places {
            root: root.expose_provenance(),
            large: large.expose_provenance(),
            large_size: self.large_size,
        };
        let state = State::new(self.large_size);
        let lanes = (0..self.lanes)
            .map(|number| Lane::new(pool.clone(), places, state.clone(), number))
            .collect();
        World { lanes, pool, store }
    }
}

/// Waits for threads of the test that are just ending and still hold the store: while it is open, an image of it makes
/// way for it and is found at other addresses.
fn close(store: Store) {
    // One whose disk fails says so, and is closed.
    let closed = store.close();
    assert!(
        !matches!(closed, Err(durum::Error::StillOpen { .. })),
        "{closed:?}"
    );
}

impl Recording {
    /// Tries some of the crashes of the plan; all that there are, if `DURUM_CRASH_ALL` is set.
    pub fn explore(&mut self) -> Result<Report, Failure> {
        let domain = self.judge.domain;
        let judge = &mut self.judge;
        self.plan.points_max = match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            // All engines have their turn in `make test`, which is to be over soon. Recovery of Twin compares two
            // copies of each image.
            None => self.plan.points_max.map(|points| match engine() {
                Engine::Twin => points.div_ceil(20),
                _ => points.div_ceil(18),
            }),
        };
        explore_with_recovery(
            &self.trace,
            &self.plan,
            |image| recover(image, domain),
            |image, point| judge.judge(image, point),
        )
    }

    /// Tries the crashes of the plan, all of which have to be survived.
    pub fn survives(mut self) -> Report {
        let began = Instant::now();
        match self.explore() {
            Ok(report) => {
                println!(
                    "{}: seed {}, {} events, {} points, {} images, {} recoveries crashed in {} images, {:.1?}",
                    self.name,
                    self.plan.seed,
                    self.trace.events().len(),
                    report.points,
                    report.images,
                    report.recoveries,
                    report.nested_images,
                    began.elapsed(),
                );
                report
            }
            Err(failure) => panic!(
                "{}: {failure}\n  (DURUM_CRASH_KEEP=1 keeps the image; identifiers are drawn anew in each run, so its number may shift)",
                self.name
            ),
        }
    }
}
