use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<PCell<u64, P>, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let guard = root.lock(j);
        let cell: &PCell<u64, P> = &guard;
        std::thread::scope(|scope| {
            //~ PCell<u64, P>` stays on its thread, in its transaction
            scope.spawn(move || cell.get());
        });
    })
    .unwrap();
}
