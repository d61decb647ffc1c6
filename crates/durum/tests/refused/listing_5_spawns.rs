// The example of section 3.7: a counted pointer cannot go to another thread.
use durum::typed::*;
durum::pool!(P);

fn main() {
    P::transaction(|j| {
        let a = Parc::new(42, j);
        //~ cannot be sent between threads safely
        std::thread::spawn(move || {
            let _b = a;
        });
    })
    .unwrap();
}
