use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let mut guard = root.borrow_mut(j);
        let later = guard.later();
        std::thread::scope(|scope| {
            //~ Later<'_, u64>` is its transaction's own
            //~ let each thread begin one of its own
            scope.spawn(move || *later.change() = 1);
        });
    })
    .unwrap();
}
