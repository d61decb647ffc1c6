use durum::typed::*;
durum::pool!(P);

type Link = Option<Pbox<Node, P>>;

#[derive(PSafe, Root, Parts)]
#[repr(C)]
struct Node {
    value: u64,
    next: Link,
}

fn write(mut node: Later<Node>) {
    //~ trait `DerefMut` is required to modify through a dereference, but it is not implemented for `durum::typed::Later<'_, Node>`
    node.value = 1;
}

fn main() {
    let _ = write;
}
