// Counts its runs, durably.
use durum::{PoolOptions, Store, StoreOptions};

#[repr(C)]
struct Counter {
    value: u64,
}
durum::describe!(Counter as "counter" { value });

fn main() -> durum::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("counter.store".into());
    let store = Store::open_or_create(path, StoreOptions::new())?;
    let pool = store.open_or_create_pool("numbers", PoolOptions::new())?;
    let runs = pool.root::<Counter>()?;
    let run = pool.transaction(|tx| {
        // SAFETY: the root lives as long as its pool is open, and this program has one thread.
        unsafe {
            tx.add(runs)?; // from here on, all of it or nothing
            (*runs).value += 1;
            Ok::<_, durum::Error>((*runs).value)
        }
    })?;
    println!("run {run}"); // durable by now
    Ok(())
}
