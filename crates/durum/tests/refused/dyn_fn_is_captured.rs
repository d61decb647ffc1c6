// It may be harmless, which nobody sees here: `AssertUnwindSafe` says so.
use durum::typed::*;
durum::pool!(P);

fn run(change: &dyn Fn(u64) -> u64, cell: &PCell<u64, P>) {
    //~ a transaction cannot capture `{closure
    P::transaction(|j| cell.set(change(cell.get()), j)).unwrap();
}

fn main() {
    let _ = run;
}
