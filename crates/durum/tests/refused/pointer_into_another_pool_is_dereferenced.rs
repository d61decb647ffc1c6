use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);

fn follow(to: &Pptr<u64, P, Q>) -> u64 {
    //~ Pptr<u64, P, Q>` cannot be dereferenced
    **to
}

fn main() {
    let _ = follow;
}
