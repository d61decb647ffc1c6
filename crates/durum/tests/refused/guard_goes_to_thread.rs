use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<u64, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let guard = root.lock(j);
        std::thread::scope(|scope| {
            //~ `PMutexGuard<'_, u64>` is its transaction's own
            //~ let each thread begin one of its own, with `transaction(|j| ..)`, and lock there what it needs
            scope.spawn(|| *guard);
        });
    })
    .unwrap();
}
