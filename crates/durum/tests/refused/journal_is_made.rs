use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ private fields `tx` and `_pool` that were not provided
    let _j: Journal<P> = Journal {};
}
