use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    std::thread::scope(|scope| {
        //~ PRefCell_serves_one_thread__use_PMutex
        scope.spawn(|| P::transaction(|j| *root.borrow_mut(j) += 1));
    });
}
