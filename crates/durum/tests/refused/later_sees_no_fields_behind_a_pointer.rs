use durum::typed::*;
durum::pool!(P);

type Link = Option<Pbox<Node, P>>;

#[derive(PSafe, Root, Parts)]
#[repr(C)]
struct Node {
    value: u64,
    next: Link,
}

fn through(node: Later<Pbox<Node, P>>) {
    //~ doesn't satisfy `durum::typed::Pbox<Node, P>: durum::typed::Parts`
    *node.parts().value.change() = 1;
}

/// Many may have the object.
fn shared(node: Later<Prc<Node, P>>) {
    //~ no method named `object` found for struct `durum::typed::Later<'_, Counted<Node, P, Local>>`
    *node.object().parts().value.change() = 1;
}

fn main() {
    let _ = (through, shared);
}
