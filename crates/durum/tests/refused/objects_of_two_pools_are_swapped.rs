use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);

fn swap(p: &mut Option<Pbox<u64, P>>, q: &mut Option<Pbox<u64, Q>>) {
    //~ mismatched types
    std::mem::swap(p, q);
}

fn main() {
    let _ = swap;
}
