use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);

fn put<T: PSafe>(value: T, j: &Journal<Q>) {
    //~ in the build
    //~ an object of one pool would hold a pointer into another
    //~ use types of one pool
    drop(Pbox::<T, Q>::new(value, j));
}

fn main() {
    let _ = put::<Pbox<u64, P>> as fn(_, &_);
}
