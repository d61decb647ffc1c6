// Counts its runs, durably.
use durum::typed::*;

durum::pool!(P);

fn main() -> durum::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("typed.store".into());
    let runs = P::open::<PCell<u64, P>>(path, Flags::CREATE)?;
    P::transaction(|j| runs.set(runs.get() + 1, j))?;
    println!("run {}", runs.get());
    Ok(())
}
