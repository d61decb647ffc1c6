//! A thousand programs come at once: each opens a pool of its own and commits once.

use std::time::Instant;

use durum::{Store, StoreOptions};
use durum_bench_core::error::Result;
use durum_bench_core::service::Durumd;

use crate::parts::Actor;
use crate::table::{Limit, Line};
use crate::{Bench, check, said};

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    if !bench.wants("1000 clients") {
        return Ok(());
    }
    let count = bench.count(1000, 20);
    for place in 0..bench.places.len() {
        let (directory, name) = &bench.places[place];
        let directory = directory.path().join("clients");
        let mut service = Durumd::start(&directory)?;
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(Actor::start("client", &service.address())?);
        }
        for client in &mut clients {
            check("1000 clients", "here".to_owned(), client.hear()?)?;
        }
        let began = Instant::now();
        for client in &mut clients {
            client.tell()?;
        }
        for client in &mut clients {
            check("1000 clients", "1".to_owned(), client.hear()?)?;
        }
        let took = began.elapsed();
        let mut kib = Vec::new();
        for client in &mut clients {
            client.tell()?;
            kib.push(client.hear()?.parse::<u64>().unwrap_or(u64::MAX));
        }
        kib.sort_unstable();
        let of_service = service_kib(service.id());
        let store = Store::open(service.address(), StoreOptions::new()).map_err(said)?;
        check("1000 clients", count, store.pools().map_err(said)?.len())?;
        store.close().map_err(said)?;
        let most = if *name == "memory" { 3.0 } else { 10.0 };
        let row = format!("{count} clients come and open a pool each and commit once");
        let line = Line::new(row, took.as_secs_f64(), "s").at(name);
        bench.table.push(line.limit(Limit::Value(most)));
        let mib = |kib: u64| kib as f64 / 1024.0;
        let line = Line::new("memory of one: median", mib(kib[count / 2]), "MiB").at(name);
        bench.table.push(line.limit(Limit::Value(8.0)));
        let line = Line::new("memory of one: most", mib(kib[count - 1]), "MiB").at(name);
        bench.table.push(line.limit(Limit::Value(8.0)));
        let each = mib(of_service) / count as f64;
        let line = Line::new("memory of the service for each", each, "MiB").at(name);
        bench.table.push(line.limit(Limit::Value(8.0)));
        for client in clients {
            client.end()?;
        }
        let left = std::fs::read_dir(directory.join("clients")).map_or(0, Iterator::count);
        check("1000 clients", 0, left)?;
        service.end()?;
        std::fs::remove_dir_all(&directory).map_err(said)?;
    }
    Ok(())
}

/// KiB of memory of the service.
fn service_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(u64::MAX)
}
