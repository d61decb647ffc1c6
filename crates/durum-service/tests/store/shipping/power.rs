//! Power cuts at each step of an export and an import.

use std::path::Path;

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{Compression, Embedded, Error, ExportOptions, ImportOptions, Service, export};

use super::{export_beside, import, named};
use crate::moving::{NODES, follow_in, lists};
use crate::support::{create, heap, open, open_all, open_options, put, recorder, scratch};

/// Tries so many crashes, or all that there are, if `DURUM_CRASH_ALL` is set.
fn explore_shipping(
    skip: Option<Site>,
    copies: bool,
    seed: u64,
    points: usize,
) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let other = directory.path().join("other");
    let store = create(&other);
    store.close().unwrap();
    drop(store);
    let recorder = recorder(directory.path(), skip);
    let place = export_beside(&path, "twin", true);
    note("exported", 1);
    let second = directory.path().join("second");
    export(&path, "shadow", &second, &ExportOptions::default()).unwrap();
    let archive = directory.path().join("archive");
    let archived = ExportOptions {
        archive: Some(Compression::Gzip),
        ..ExportOptions::default()
    };
    export(&path, "shadow", &archive, &archived).unwrap();
    note("archived", 1);
    let store = open(&other);
    let options = ImportOptions {
        copies,
        ..ImportOptions::default()
    };
    import(&store, &place, &options).unwrap();
    note("imported", 1);
    let twin = open_all(&store, store.open_pool("twin").unwrap());
    note("opened", 1);
    put(&twin[0], heap(&twin[0]) + 16, &0_u64.to_le_bytes());
    store.close().unwrap();
    drop((store, twin));
    let store = open(&path);
    import(&store, &second, &named("copy")).unwrap();
    note("copied", 1);
    let copy = open_all(&store, store.open_pool("copy").unwrap());
    put(&copy[0], heap(&copy[0]) + 16, &0_u64.to_le_bytes());
    store.close().unwrap();
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let plan = Plan {
        random_images: 2,
        single_units_max: 3,
        exhaustive_max: 6,
        nested_one_in: 20,
        nested_depth: 1,
        nested_points_max: Some(6),
        points_max: match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(points),
        },
        ..Plan::new(Rules::Sectors, seed)
    };
    let opened = |image: &Path, name: &str| {
        let store = Embedded::open(&image.join(name), open_options());
        store.map_err(|error| error.to_string())
    };
    let arrived = |store: &Embedded, names: &[&str]| {
        let mut puddles = Vec::new();
        for name in names {
            let pool = store.open_pool(name).map_err(|error| error.to_string())?;
            let others: Vec<Uuid> = pool.others.iter().map(|place| place.uuid).collect();
            let others = store.open_puddles(pool.uuid, &others);
            puddles.push(pool.root);
            puddles.extend(others.map_err(|error| error.to_string())?);
        }
        follow_in(&puddles, names.len() as u64 * NODES)
    };
    explore_with_recovery(
        &trace,
        &plan,
        |image| {
            for name in ["store", "other"] {
                opened(image, name)?
                    .close()
                    .map_err(|error| error.to_string())?;
            }
            Ok(())
        },
        |image, point| {
            let store = opened(image, "other")?;
            let has = |store: &Embedded, name: &str| {
                store.pools().unwrap().iter().any(|pool| pool.name == name)
            };
            let text = |error: Error| error.to_string();
            match (has(&store, "twin"), point.last_note("imported")) {
                (true, _) => arrived(&store, &["twin", "shadow"])?,
                (false, Some(_)) => return Err("an import that was told is gone".to_owned()),
                // The export is whole as long as nothing of it was imported.
                (false, None) if point.last_note("exported").is_some() => {
                    import(&store, &image.join("export"), &ImportOptions::default())
                        .map_err(text)?;
                    arrived(&store, &["twin", "shadow"])?;
                }
                (false, None) => {}
            }
            // An archive is there when that was told, and whole when it is there.
            let archive = image.join("archive");
            if archive.exists() {
                import(&store, &archive, &named("archived")).map_err(text)?;
                arrived(&store, &["archived"])?;
            } else if point.last_note("archived").is_some() {
                return Err("an archive that was told of is gone".to_owned());
            }
            store.close().map_err(text)?;
            let store = opened(image, "store")?;
            if has(&store, "copy") {
                arrived(&store, &["copy"])?;
            } else if point.last_note("copied").is_some() {
                return Err("a copy that was told is gone".to_owned());
            }
            arrived(&store, &["shadow"])?;
            store.close().map_err(text)
        },
    )
}

#[test]
fn shipping_survives_power_cuts() {
    for (copies, seed) in [(false, 61), (true, 62)] {
        match explore_shipping(None, copies, seed, 25) {
            Ok(report) => assert!(report.images > 30, "{report:?}"),
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    /// Each of these, left out, is noticed.
    #[test]
    fn a_sync_of_shipping_that_is_left_out_is_noticed() {
        let sites = [
            ("exported puddle", false),
            ("imported puddle", true),
            ("names of imported puddles", false),
            ("export's place", false),
            ("name of an export's manifest", false),
            ("export's archive", false),
            ("registry commit", false),
            ("rewritten puddle", false),
        ];
        for (site, copies) in sites {
            let noticed = [71, 72, 73]
                .into_iter()
                .any(|seed| explore_shipping(Some(Site(site)), copies, seed, 60).is_err());
            assert!(noticed, "{site}");
        }
    }
}
