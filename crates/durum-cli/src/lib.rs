//! The durum command.
