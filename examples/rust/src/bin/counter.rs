//! Counts its runs, durably.

use durum::typed::*;

durum::pool!(P);

fn main() -> durum::Result<()> {
    let runs = P::open::<PCell<u64, P>>("counter.store", Flags::CREATE)?;
    P::transaction(|j| runs.set(runs.get() + 1, j))?;
    println!("run {}", runs.get());
    Ok(())
}
