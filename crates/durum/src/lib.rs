//! Durable data structures: pools, failure-atomic transactions and native pointers.
