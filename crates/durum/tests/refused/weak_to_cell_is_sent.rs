use durum::typed::*;
durum::pool!(P);

fn send(weak: VWeak<PRefCell<u64, P>, P>) {
    //~ PRefCell_serves_one_thread__use_PMutex
    std::thread::spawn(move || drop(weak));
}

fn main() {
    let _ = send;
}
