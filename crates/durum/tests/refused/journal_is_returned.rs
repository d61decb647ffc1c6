use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ `&Journal<P>` cannot leave a transaction
    let _j = P::transaction(|j| j);
}
