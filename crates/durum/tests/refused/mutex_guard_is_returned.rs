use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<u64, P>>("store", 0).unwrap();
    //~ `PMutexGuard<'_, u64>` cannot leave a transaction
    let _ = P::transaction(|j| root.lock(j));
}
