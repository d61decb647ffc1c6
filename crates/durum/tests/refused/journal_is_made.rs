use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ private fields `running` and `_pool` that were not provided
    let _j: Journal<P> = Journal {};
}
