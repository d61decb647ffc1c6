use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ cannot be sent between threads safely
    let _ = P::transaction(|j| async move {
        let _ = Pbox::<u64, P>::new(1, j);
    });
}
