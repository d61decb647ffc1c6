use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    //~ PRefCell_serves_one_thread__use_PMutex
    std::thread::spawn(move || P::transaction(|j| *root.borrow_mut(j) += 1));
}
