// It would change the pool with no transaction that knows of it.
use durum::typed::*;
durum::pool!(P);

//~ conflicting implementations of trait `Node_must_not_implement_Drop` for type `Node`
#[derive(PSafe)]
#[repr(C)]
struct Node {
    next: PRefCell<Option<Pbox<Node, P>>, P>,
}

impl Drop for Node {
    fn drop(&mut self) {}
}

fn main() {
    let _ = P::open_no_root("store", 0);
    let _ = |j: &Journal<P>| Node { next: PRefCell::new(None, j) };
}
