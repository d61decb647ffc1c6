use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);

fn follow(to: &Pptr<u64, P, Q>, j: &Journal<P>) -> u64 {
    //~ arguments to this method are incorrect
    //~ expected `&Exports<u64, Q>`, found `&Journal<P>`
    *to.follow(j, j).unwrap()
}

fn main() {
    let _ = follow;
}
