use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<u64, P>>("store", 0).unwrap();
    P::transaction(|j| {
        std::thread::scope(|scope| {
            //~ `Journal<P>` is its transaction's own
            //~ let each thread begin one of its own
            scope.spawn(|| *root.lock(j) += 1);
        });
    })
    .unwrap();
}
