//! A durum store: registry, puddle files, addresses, recovery and checks.
