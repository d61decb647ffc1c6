// What is missing, and how it is written for this type.
use durum::{PoolOptions, Store, StoreOptions};

#[repr(C)]
struct Counter {
    value: u64,
}

fn main() -> durum::Result<()> {
    let store = Store::open_or_create("counter.store", StoreOptions::new())?;
    let pool = store.open_or_create_pool("numbers", PoolOptions::new())?;
    //~ `Counter` is not described, so it cannot live in a pool
    //~ `durum::describe!(Counter as "name" { field, another });`
    //~ `#[derive(PSafe)]`
    //~ 1 error
    let runs = pool.root::<Counter>()?;
    // SAFETY: the root.
    println!("{}", unsafe { (*runs).value });
    Ok(())
}
