use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);
durum::pool!(R);

fn mix(to: Pptr<u64, P, Q>, j: &Journal<R>) -> Pbox<Pptr<u64, P, Q>, R> {
    //~ in the build
    //~ an object of one pool would hold a pointer into another
    Pbox::new(to, j)
}

fn main() {
    let _ = mix as fn(_, &_) -> _;
}
