use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PCell<u64, P>>("store", 0).unwrap();
    //~ PCell_serves_one_thread__use_PMutex
    std::thread::spawn(move || root.get());
}
