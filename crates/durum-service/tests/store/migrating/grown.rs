//! Pools that have grown by turns: the puddles of one lie between those of the other, and pointers of both lead into
//! all of them.

use super::*;

const NAMES: [&str; 2] = [POOL, "other"];
/// Of both pools together.
const PUDDLES: usize = 6;

const ROOT: &str = "struct \"Root\"(48,8){0:\"hubs\":[*1;6];}\n";
const HUB: &str = "struct \"Hub\"(160,8){0:\"value\":u64;8:\"to\":[*1;6];56:\"inside\":[*2;6];104:\"kept\":[*3;6];152:\"at\":struct \"Point\"(8,4){0:\"x\":u32;4:\"y\":u32;};}\n";

/// A hub gets a field before others, a point one that moves `x`, a thing one behind.
const HUBS: &str = r#"{
  "durum-map": 1,
  "types": {
    "Hub": {"fields": [
      {"name": "weight", "type": "u32", "default": 7}, "value", "to", "inside", "kept", "at"]},
    "Point": {"fields": [{"name": "z", "type": "u64", "default": 3}, "x", "y"]},
    "Thing": {"fields": ["n", {"name": "more", "type": "u64", "default": 9}]}
  }
}"#;

/// The root, a hub, a thing.
fn hub_types() -> [Descriptor; 3] {
    let root = Descriptor::parse(&[ROOT, HUB, POINT, THING].concat()).unwrap();
    let target = |line| root.target(line).unwrap();
    [root.clone(), target(1), target(3)]
}

/// Makes both, of which each has each other puddle, with a hub and a thing in each. Hubs and roots lead to all hubs,
/// and hubs into all hubs and to all things. The hubs' addresses.
fn make_by_turns(store: &Embedded) -> Vec<u64> {
    let [root, hub, thing] = hub_types();
    store.register_type(root.id(), root.text()).unwrap();
    let engine = EngineKind::Shadow;
    let pools = NAMES.map(|name| store.create_pool(name, &PoolSpec::new(engine)).unwrap());
    let uuids = pools.each_ref().map(|pool| pool.uuid);
    let mut puddles: Vec<PuddleGrant> = pools.into_iter().map(|pool| pool.root).collect();
    for at in puddles.len()..PUDDLES {
        let owner = PuddleOwner::Pool(uuids[at % 2]);
        let puddle = store.create_puddle(owner, engine.puddle_kind(), 2 << 20);
        puddles.push(puddle.unwrap());
    }
    assert!(puddles.is_sorted_by_key(|puddle| puddle.address));
    let things = puddles.iter().zip(0..).map(|(puddle, number)| {
        let thing_of = words(&[PUDDLES as u64, 0, number]);
        place_object(puddle, 9, thing.id(), &thing_of)
    });
    let things: Vec<u64> = things.collect();
    // Where they are is known before what they hold.
    let hubs = puddles
        .iter()
        .map(|puddle| place_object(puddle, 10, hub.id(), &[0; 160]));
    let hubs: Vec<u64> = hubs.collect();
    let inside: Vec<u64> = hubs.iter().map(|hub| hub + 152).collect();
    for (puddle, number) in puddles.iter().zip(0..) {
        let point = number | (number + 1000) << 32;
        let holds = [&[number][..], &hubs, &inside, &things, &[point]].concat();
        place_object(puddle, 10, hub.id(), &words(&holds));
    }
    for puddle in &puddles[..2] {
        place_object(puddle, 0, root.id(), &words(&hubs));
    }
    for uuid in uuids {
        store.close_pool(uuid).unwrap();
    }
    hubs
}

fn with(name: &str) -> MigrateOptions {
    MigrateOptions {
        with: vec![name.to_owned()],
        ..MigrateOptions::default()
    }
}

#[test]
fn pointers_into_all_puddles_of_pools_that_grew_by_turns_follow() {
    for [first, second] in [NAMES, [NAMES[1], NAMES[0]]] {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        make_by_turns(&store);
        let report = store.migrate_pool(first, &mut migration(HUBS), &with(second));
        let report = report.unwrap();
        assert_eq!((report.objects, report.puddles), (14, 2));

        let opened = NAMES.map(|name| Reader(open_all(&store, store.open_pool(name).unwrap())));
        let at = |address: u64| opened[0].at(address).or_else(|_| opened[1].at(address));
        let roots = opened.each_ref().map(Reader::root);
        let hub = |number: u64| at(roots[0] + 8 * number);
        for number in 0..PUDDLES as u64 {
            let of = &opened[number as usize % 2];
            let this = hub(number).unwrap();
            assert_eq!(at(roots[1] + 8 * number), Ok(this));
            // weight, value, to, inside, kept, Point { z, x, y }
            assert_eq!(of.at(this).map(|word| word & 0xffff_ffff), Ok(7));
            assert_eq!(of.at(this + 8), Ok(number));
            assert_eq!(of.at(this + 160), Ok(3));
            let point = number | (number + 1000) << 32;
            assert_eq!(of.at(this + 168), Ok(point));
            for other in 0..PUDDLES as u64 {
                let there = hub(other).unwrap();
                assert_eq!(of.at(this + 16 + 8 * other), Ok(there));
                assert_eq!(of.at(this + 64 + 8 * other), Ok(there + 160));
                let kept = of.at(this + 112 + 8 * other).unwrap();
                let thing = [0, 8, 16, 24].map(|offset| at(kept + offset).unwrap());
                assert_eq!(thing, [PUDDLES as u64, 0, other, 9]);
            }
        }
        store.close().unwrap();
        drop((opened, store));
        is_clean(&path);
    }
}

#[test]
fn a_third_pool_that_leads_into_any_of_their_puddles_is_told_by_name() {
    let directory = scratch();
    let store = create(&directory.path().join("store"));
    let hubs = make_by_turns(&store);
    let [root, ..] = hub_types();
    for (number, hub) in hubs.into_iter().enumerate() {
        let third = store
            .create_pool("third", &PoolSpec::new(EngineKind::Shadow))
            .unwrap();
        place_object(&third.root, 0, root.id(), &words(&[0, hub, 0, 0, 0, 0]));
        store.close_pool(third.uuid).unwrap();
        for [first, second] in [NAMES, [NAMES[1], NAMES[0]]] {
            let refused = store.migrate_pool(first, &mut migration(HUBS), &with(second));
            let refused = refused.map(|_| format!("nobody minds the pointer into puddle {number}"));
            let refused = refused.unwrap_err().to_string();
            let part = "pool \"third\", Root: a pointer of it leads into the pool";
            assert!(refused.contains(part), "{refused}");
        }
        store.remove_pool("third").unwrap();
    }
}
