// The example of section 3.7: a counted pointer cannot go to another thread.
use durum::typed::*;
durum::pool!(P);

fn main() {
    P::transaction(|j| {
        let a = Parc::new(42, j);
        //~ `Counted<i32, P, Shared>` stays on its thread, in its transaction
        //~ send what `demote()` gives (`VWeak`), and `promote(j)` it in a transaction of that thread
        std::thread::spawn(move || {
            let _b = a;
        });
    })
    .unwrap();
}
