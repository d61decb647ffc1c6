use durum::typed::*;
durum::pool!(P);

// Threads could read it at the same time, and the cell serves one.
fn main() {
    let root = P::open::<PMutex<PRefCell<u64, P>, P>>("store", Flags::READ_ONLY).unwrap();
    //~ PRefCell_serves_one_thread__use_PMutex
    root.read(root.reading().unwrap());
}
