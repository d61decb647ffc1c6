use durum::typed::*;
durum::pool!(Q);

fn main() {
    let root = Q::open::<Exports<u64, Q, Local>>("store", Flags::CREATE).unwrap();
    //~ Prc_serves_one_thread__use_Parc
    std::thread::scope(|scope| {
        scope.spawn(|| root.len());
    });
}
