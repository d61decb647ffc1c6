//! The network of sensors (`c/sensors.h`).

use std::ffi::{c_char, c_int};
use std::path::Path;

use crate::ffi::{Walk, opaque};
use crate::{PeerError, c_path, check, handle, last_error};

/// The declarations of `c/sensors.h`, in its order.
mod ffi {
    use super::{Walk, c_char, c_int, opaque};

    opaque!(RawNetwork RawResult);

    unsafe extern "C" {
        pub fn peer_sensors_begin(path: *const c_char, pool_size: usize, variables: u64) -> c_int;
        pub fn peer_sensors_work(
            path: *const c_char,
            node: u64,
            rounds: u64,
            changes: u64,
        ) -> c_int;

        pub fn peer_network_open(path: *const c_char, pool_size: usize) -> *mut RawNetwork;
        pub fn peer_network_close(network: *mut RawNetwork);

        pub fn peer_result_open(path: *const c_char) -> *mut RawResult;
        pub fn peer_result_close(result: *mut RawResult);
        pub fn peer_network_take_in(network: *mut RawNetwork, result: *const RawResult) -> c_int;
        pub fn peer_network_sum(network: *const RawNetwork) -> u64;
        pub fn peer_network_walk(network: *const RawNetwork) -> Walk;
    }
}

handle!(
    /// The pool in which everything comes together.
    Network,
    RawNetwork,
    peer_network_close
);
handle!(
    /// A node's pool. One at a time: copies of a pool have one identity.
    SensorResult,
    RawResult,
    peer_result_close
);

/// Makes a pool with the structure that nodes get copies of: so many variables.
pub fn begin(path: &Path, pool_size: usize, variables: u64) -> Result<(), PeerError> {
    let path = c_path(path)?;
    // SAFETY: the path is a C string.
    check(unsafe { ffi::peer_sensors_begin(path.as_ptr(), pool_size, variables) })
}

/// A node's work on its copy, in one transaction for each round.
pub fn work(path: &Path, node: u64, rounds: u64, changes: u64) -> Result<(), PeerError> {
    let path = c_path(path)?;
    // SAFETY: the path is a C string.
    check(unsafe { ffi::peer_sensors_work(path.as_ptr(), node, rounds, changes) })
}

impl SensorResult {
    /// Opens what a node has made.
    pub fn open(path: &Path) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        SensorResult::from_raw(unsafe { ffi::peer_result_open(path.as_ptr()) })
    }
}

impl Network {
    /// Creates a pool file with an empty network.
    pub fn open(path: &Path, pool_size: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Network::from_raw(unsafe { ffi::peer_network_open(path.as_ptr(), pool_size) })
    }

    /// Copies what a node has made, in one transaction.
    pub fn take_in(&mut self, result: &SensorResult) -> Result<(), PeerError> {
        // SAFETY: both handles are open.
        check(unsafe { ffi::peer_network_take_in(self.raw, result.raw) })
    }

    /// The sum of the values of all variables.
    pub fn sum(&self) -> u64 {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_network_sum(self.raw) }
    }

    /// Walks over all variables; `sum` is a digest of them.
    pub fn walk(&self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_network_walk(self.raw) }
    }
}
