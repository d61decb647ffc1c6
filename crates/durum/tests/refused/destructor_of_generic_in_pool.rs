use durum::typed::*;
durum::pool!(P);

//~ conflicting implementations of trait `Pair_must_not_implement_Drop` for type `Pair<_>`
#[derive(PSafe)]
#[repr(C)]
struct Pair<T: PSafe> {
    both: [T; 2],
}

impl<T: PSafe> Drop for Pair<T> {
    fn drop(&mut self) {}
}

fn main() {
    let _ = P::open_no_root("store", 0);
    let _ = Pair { both: [1, 2] }.both.len();
}
