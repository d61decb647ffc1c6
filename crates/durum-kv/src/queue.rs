//! Changes that wait for whoever writes next.

use std::sync::Mutex;

use durum::Durability;

use crate::batch::WriteBatch;
use crate::error::Result;

/// Changes of a thread that another one is to make.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) batch: WriteBatch,
    pub(crate) durability: Durability,
    pub(crate) outcome: Mutex<Option<Result<()>>>,
}

impl Request {
    pub(crate) fn new(batch: WriteBatch, durability: Durability) -> Self {
        Self {
            batch,
            durability,
            outcome: Mutex::new(None),
        }
    }
}
