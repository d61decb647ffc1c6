//! durum's sides: the program of examples/rust.

use std::fs;
use std::path::{Path, PathBuf};

use durum::{Engine, ImportOptions, PoolOptions, Store, StoreOptions};
use durum_bench_core::error::{Error, Result};

use crate::expected::{Answer, Expected};
use crate::sensors;
use crate::side::{Side, Times, check, of_node, timed};

pub(crate) struct Durum {
    pub(crate) name: &'static str,
    pub(crate) engine: Engine,
    /// The results stay where they are, and the store gets copies.
    pub(crate) copies: bool,
}

impl Durum {
    fn said<E: ToString>(&self) -> impl FnOnce(E) -> Error {
        let side = self.name.to_owned();
        move |error| Error::Side {
            side,
            source: error.to_string().into(),
        }
    }
}

impl Side for Durum {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&self, directory: &Path, expected: &Expected) -> Result<()> {
        let (home, copy) = (directory.join("home"), directory.join("copy"));
        let options = PoolOptions::new().engine(self.engine);
        sensors::begin(&home, options, expected.variables, &copy).map_err(self.said())?;
        remove(&home)?;
        for node in 1..=expected.nodes {
            let store = of_node(directory, "node", node);
            let store = sensors::join(&store, &copy).map_err(self.said())?;
            sensors::work(&store, node, expected.rounds, |_| {}).map_err(self.said())?;
            store.close().map_err(self.said())?;
        }
        Ok(())
    }

    fn aggregate(&self, directory: &Path, expected: &Expected) -> Result<Times> {
        // An import takes over what it finds: each node exports its result again.
        let mut results = Vec::new();
        for node in 1..=expected.nodes {
            let result = of_node(directory, "result", node);
            let store = Store::open(of_node(directory, "node", node), StoreOptions::new());
            let store = store.map_err(self.said())?;
            sensors::export(&store, &result).map_err(self.said())?;
            store.close().map_err(self.said())?;
            results.push(result);
        }
        let results: Vec<&Path> = results.iter().map(PathBuf::as_path).collect();
        let home = directory.join("home");
        let store = Store::create(&home, StoreOptions::new()).map_err(self.said())?;
        let options = PoolOptions::new().engine(self.engine);
        // What every opening pays is not the results'.
        let made = store.create_pool(sensors::NETWORK, options);
        drop(made.map_err(self.said())?);

        let import_options = ImportOptions {
            copies: self.copies,
            ..ImportOptions::default()
        };
        let (import, states) = timed(|| sensors::import(&store, &results, &import_options));
        let states = states.map_err(self.said())?;
        let open = || store.open_pool(sensors::NETWORK, PoolOptions::new());
        let (opening, pool) = timed(open);
        let pool = pool.map_err(self.said())?;
        let (rest, sum) = timed(|| {
            sensors::link(&pool, &states)?;
            sensors::sum(&pool)
        });
        let sum = sum.map_err(self.said())?;

        let mut found = Answer::default();
        sensors::read(&pool, |node, id, value, changes| {
            found.add(node, id, value, changes)
        })
        .map_err(self.said())?;
        check(self.name, expected.answer, found)?;
        check(self.name, expected.answer.sum, sum)?;
        // The second time nothing is compared nor rewritten.
        drop(pool);
        let (again, pool) = timed(open);
        drop(pool.map_err(self.said())?);
        let mapping = again.min(opening);
        store.close().map_err(self.said())?;
        remove(&home)?;
        // Those of which the store has copies are still there.
        for result in results.iter().filter(|result| result.exists()) {
            remove(result)?;
        }
        Ok(Times {
            import,
            rewriting: opening - mapping,
            rest: rest + mapping,
        })
    }
}

fn remove(directory: &Path) -> Result<()> {
    fs::remove_dir_all(directory).map_err(Error::file(directory))
}
