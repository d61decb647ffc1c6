use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<u64, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let guard = root.lock(j);
        std::thread::scope(|scope| {
            //~ cannot be
            scope.spawn(|| *guard);
        });
    })
    .unwrap();
}
