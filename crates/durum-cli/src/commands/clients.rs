//! `durum clients`, `kick` and `revoke`: who uses a store that is served, and how somebody is made to leave.

use std::io::Write;
use std::time::Duration;

use durum_protocol::message::ClientView;
use durum_remote::{Remote, users};
use durum_service::{OpenOptions, Service};
use serde_json::{Value, json};

use crate::args::{Clients, Kick, Revoke};
use crate::failure::Failure;
use crate::output;
use crate::place::Place;

pub(crate) fn run(options: &Clients, out: &mut dyn Write) -> Result<(), Failure> {
    let store = Place::of(&options.store).service("tell who uses it")?;
    let clients = others(&store)?;
    store.close()?;
    if options.json {
        let clients: Vec<Value> = clients.iter().map(to_json).collect();
        return Ok(output::json(out, &json!({ "clients": clients }))?);
    }
    if clients.is_empty() {
        writeln!(out, "no clients")?;
        return Ok(());
    }
    let mut rows = output::heading("CLIENT|PROCESS|USER|PROGRAM|HOLDS|WAITS FOR");
    for client in &clients {
        rows.push(vec![
            client.client.to_string(),
            client.pid.to_string(),
            client.uid.map_or_else(|| "?".into(), users::user),
            program(client.pid).unwrap_or_else(|| "?".into()),
            match client.holds.is_empty() {
                true => "-".into(),
                false => client.holds.join(", "),
            },
            match (&client.waits_for, client.is_connected) {
                (Some(what), _) => format!(
                    "{what}, {}",
                    output::time(Duration::from_millis(client.waits_ms))
                ),
                (None, true) => "-".into(),
                (None, false) => "not connected".into(),
            },
        ]);
    }
    Ok(output::table(out, &rows, &[1])?)
}

pub(crate) fn kick(options: &Kick, out: &mut dyn Write) -> Result<(), Failure> {
    let store = Place::of(&options.store).service("have clients")?;
    let kicked = find(&store, &options.client).and_then(|client| {
        store.kick(client.client, Duration::from_secs(options.grace))?;
        Ok(client)
    });
    let closed = store.close();
    let client = kicked?;
    closed?;
    writeln!(
        out,
        "client {} of process {} has left",
        client.client, client.pid
    )?;
    Ok(())
}

pub(crate) fn revoke(options: &Revoke, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.store);
    let name = place.named_pool(options.pool.as_deref())?;
    let store = place.open(OpenOptions::default())?;
    let revoked = store.revoke_pool(name);
    let closed = store.close();
    revoked?;
    closed?;
    writeln!(
        out,
        "pool \"{name}\" has new files: descriptors of the old ones lead to nothing"
    )?;
    Ok(())
}

/// All but this program.
fn others(store: &Remote) -> Result<Vec<ClientView>, Failure> {
    let mut clients = store.clients()?;
    clients.retain(|client| client.client != store.info().client);
    Ok(clients)
}

/// The client that is named by its uuid, or by how that begins.
fn find(store: &Remote, name: &str) -> Result<ClientView, Failure> {
    let mut found = others(store)?;
    found.retain(|client| client.client.to_string().starts_with(name));
    match (found.pop(), found.pop()) {
        (Some(client), None) => Ok(client),
        (first, _) => Err(Failure::Refused(format!(
            "{} client begins with {name:?}; `durum clients` lists them",
            if first.is_some() {
                "more than one"
            } else {
                "no"
            }
        ))),
    }
}

fn program(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

fn to_json(client: &ClientView) -> Value {
    json!({
        "client": client.client.to_string(),
        "pid": client.pid,
        "uid": client.uid,
        "program": program(client.pid),
        "connected": client.is_connected,
        "holds": client.holds,
        "waits_for": client.waits_for,
        "waits_ms": client.waits_ms,
    })
}
