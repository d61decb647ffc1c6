//! The C interface of durum.
