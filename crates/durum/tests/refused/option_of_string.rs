use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ an `Option` in a pool cannot hold
    //~ For a collection use an empty one, which allocates nothing
    //~ for others `Option<Pbox<_>>`, or an enum of your own
    let _ = P::open::<PRefCell<Option<PString<P>>, P>>("store", 0);
}
