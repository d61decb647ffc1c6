//! Behaviour of a store, one file for each subject. One binary, because linking many takes longer than the tests.

mod bounds;
mod check;
mod clients;
mod clone;
mod costs;
mod crash;
mod damage;
mod disk_full;
mod forged;
mod garbage;
mod hostile;
mod lock;
mod looking;
mod moving;
mod quarantine;
mod reading;
mod recovery;
mod rights;
mod scale;
mod scene;
mod service;
mod support;
mod takeover;
mod together;
mod unregistered;
mod waiting;
