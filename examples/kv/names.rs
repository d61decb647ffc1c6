// Counts how often each name was given.
use durum_kv::{Db, Options};

fn main() -> durum_kv::Result<()> {
    let name = std::env::args().nth(1).unwrap_or("nobody".into());
    let db = Db::open("names", Options::new().create_if_missing(true))?;
    let mut transaction = db.transaction()?;
    let before = transaction.get(name.as_bytes())?.unwrap_or_default();
    let count = String::from_utf8_lossy(&before).parse::<u64>().unwrap_or(0) + 1;
    transaction.put(name.as_bytes(), count.to_string().as_bytes());
    transaction.commit()?;
    println!("{name}: {count}"); // durable by now
    Ok(())
}
