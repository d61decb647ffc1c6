use durum::typed::*;
durum::pool!(P);

type Link = Option<Pbox<Node, P>>;

#[derive(PSafe, Root, Parts)]
#[repr(C)]
struct Node {
    value: u64,
    next: Link,
}

fn read(mut node: Later<Node>) {
    let next = node.reborrow().parts().next.change();
    //~ cannot borrow `node` as immutable because it is also borrowed as mutable
    let old: &Link = &node.next;
    *next = None;
    println!("{}", old.is_some());
}

fn main() {
    let _ = read;
}
