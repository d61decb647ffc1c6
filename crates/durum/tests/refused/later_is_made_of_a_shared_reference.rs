use durum::typed::*;
durum::pool!(P);

type Link = Option<Pbox<Node, P>>;

#[derive(PSafe, Root, Parts)]
#[repr(C)]
struct Node {
    value: u64,
    next: Link,
}

fn change(node: &Pbox<Node, P>) {
    //~ but trait `From<&mut durum::typed::Pbox<_, _>>` is implemented for it
    *Later::<Pbox<Node, P>>::from(node).object().parts().value.change() = 1;
}

fn main() {
    let _ = change;
}
