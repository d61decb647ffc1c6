//! libpmemobj: copies of a pool cannot be open together, so one after the other is opened, and what is in it allocated
//! anew in a larger one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use durum_bench_core::error::{Error, Result};
use durum_bench_peers::sensors::{self as peer, Network, SensorResult};
use durum_bench_peers::{PeerError, version};

use crate::expected::{Answer, Expected};
use crate::sensors::CHANGES;
use crate::side::{Side, Times, check, of_node, timed};

const NAME: &str = "pmdk";
/// Bytes of a node's pool: the least that there is.
const RESULT_SIZE: usize = 8 << 20;
/// Bytes of the large one: some times what the largest network has.
const NETWORK_SIZE: usize = 256 << 20;

pub(crate) struct Pmdk;

fn said(error: PeerError) -> Error {
    Error::side(NAME)(error)
}

impl Side for Pmdk {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Option<String> {
        Some(version())
    }

    fn prepare(&self, directory: &Path, expected: &Expected) -> Result<()> {
        let copy = directory.join("copy");
        peer::begin(&copy, RESULT_SIZE, expected.variables).map_err(said)?;
        for node in 1..=expected.nodes {
            let result = of_node(directory, "result", node);
            fs::copy(&copy, &result).map_err(Error::file(&result))?;
            peer::work(&result, node, expected.rounds, CHANGES).map_err(said)?;
        }
        Ok(())
    }

    fn aggregate(&self, directory: &Path, expected: &Expected) -> Result<Times> {
        let mut network = Network::open(&directory.join("network"), NETWORK_SIZE).map_err(said)?;
        let (mut import, mut rewriting) = (Duration::ZERO, Duration::ZERO);
        // Each comes before those that are there.
        for node in (1..=expected.nodes).rev() {
            let path = of_node(directory, "result", node);
            let (opening, result) = timed(|| SensorResult::open(&path));
            let result = result.map_err(said)?;
            let (copying, copied) = timed(|| network.take_in(&result));
            copied.map_err(said)?;
            let (closing, ()) = timed(|| drop(result));
            import += opening + closing;
            rewriting += copying;
        }
        let (rest, sum) = timed(|| network.sum());

        let walk = network.walk();
        let found = Answer {
            variables: walk.count,
            sum,
            digest: walk.sum,
        };
        check(NAME, (expected.answer, 1), (found, walk.sorted))?;
        Ok(Times {
            import,
            rewriting,
            rest,
        })
    }
}
