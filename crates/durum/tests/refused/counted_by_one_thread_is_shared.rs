use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<Option<Prc<u64, P>>, P>>("store", 0).unwrap();
    std::thread::scope(|scope| {
        //~ Prc_serves_one_thread__use_Parc
        scope.spawn(|| P::transaction(|j| *root.lock(j) = None));
    });
}
