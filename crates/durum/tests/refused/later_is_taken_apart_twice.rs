use durum::typed::*;
durum::pool!(P);

type Link = Option<Pbox<Node, P>>;

#[derive(PSafe, Root, Parts)]
#[repr(C)]
struct Node {
    value: u64,
    next: Link,
}

fn twice(node: Later<Node>) {
    let (first, second) = (node.parts(), node.parts());
    //~ use of moved value: `node`
    std::mem::swap(first.value.change(), second.value.change());
}

fn main() {
    let _ = twice;
}
