//! A connection: the greeting, and then requests, one after the other.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_persist::file::MediaFile;
use durum_protocol::frame::{Kind, REQUEST_MAX};
use durum_protocol::message::TYPES;
use durum_protocol::{Answer, Failure, Hello, Request, message};
use durum_remote::answers::{self, Reply, done, pool_reply, refused, send};
use durum_remote::greeting::{self, Heard};
use durum_remote::peer::Peer;
use durum_remote::socket::{Received, Socket};
use durum_service::{
    Caller, Embedded, Error, GarbageOptions, ImportOptions, Life, PoolGrant, PoolSpec,
    RecoveryReport, Result, Service as _,
};

use crate::audit::{self, Deed};
use crate::clients::Line;
use crate::metrics;
use crate::options::{BELL_TIME, GREETING_TIME, SENDING_TIME};
use crate::quotas::Taken;
use crate::service::Service;
use crate::shipment::Shipment;

/// A client's connection, after it has said that it holds its lock.
pub(crate) struct Session {
    service: Arc<Service>,
    client: Embedded,
    peer: Peer,
    line: Arc<Line>,
    turn: Arc<Mutex<()>>,
    caller: Caller,
    /// Of the descriptors that the client has not taken yet, as far as is known.
    sent: Vec<Taken>,
    shipment: Shipment,
    has_ended: bool,
}

impl Session {
    /// Hears who comes.
    ///
    /// # Errors
    /// Of the connection, which is to be closed.
    pub(crate) fn begin(service: &Arc<Service>, socket: Socket) -> io::Result<Session> {
        socket.wait_at_most(Some(SENDING_TIME), Some(GREETING_TIME))?;
        let peer = Peer::of(&socket)?;
        let comer = match greeting::hear(&socket)? {
            Heard::Client(comer) => comer,
            Heard::NoClient => {
                let why = "it does not greet as a client does";
                return Err(service.turned_away(&peer, "greeting", why));
            }
            Heard::OtherVersion(from, to) => {
                let why = format!("it speaks versions {from} to {to}");
                return Err(service.turned_away(&peer, "version", &why));
            }
        };
        let hello = &comer.hello;
        let is_admitted = service.admits(&peer);
        let welcomed = match is_admitted {
            true => welcome(service, &peer, hello),
            false => Err(refused(format!(
                "user {} may not use this store: the service admits only users that are named to it (--user)",
                peer.uid
            ))),
        };
        let (client, liveness) = match welcomed {
            Ok(welcomed) => welcomed,
            Err(error) => {
                let reason = if is_admitted { "unknown" } else { "user" };
                let away = service.turned_away(&peer, reason, &error.to_string());
                comer.turn_away(&socket, error)?;
                return Err(away);
            }
        };
        let mut newcomer = Newcomer {
            service,
            client: Some(client.id()).filter(|_| hello.client.is_none()),
        };
        let (bell, their_bell) = Socket::pair()?;
        // One who does not read what the bell says holds nobody up.
        bell.wait_at_most(Some(BELL_TIME), None)?;
        let ready = comer.welcome(&socket, client.info(), liveness.as_ref(), their_bell)?;
        let line = Arc::new(Line {
            calls: socket,
            bell,
            features: comer.features(),
            asks: Mutex::default(),
        });
        let entered = service.clients.enter(
            client.id(),
            &peer,
            line.clone(),
            hello.client.is_none(),
            service.clients_max,
            &service.quotas,
        );
        match entered {
            Ok(turn) => {
                newcomer.client = None;
                service.let_in(client.id(), &peer, hello.client.is_none());
                line.calls.wait_at_most(Some(SENDING_TIME), None)?;
                ready.answer(&line.calls, Ok(()))?;
                Ok(Session {
                    service: service.clone(),
                    client,
                    caller: caller_of(&peer),
                    peer,
                    line,
                    turn,
                    sent: Vec::new(),
                    shipment: Shipment::default(),
                    has_ended: false,
                })
            }
            Err(error) => {
                let away = service.turned_away(&peer, "entry", &error.to_string());
                ready.answer(&line.calls, Err(error))?;
                Err(away)
            }
        }
    }

    /// Answers until the client closes, or its connection ends.
    ///
    /// # Errors
    /// Of the connection.
    pub(crate) fn answer(mut self) -> io::Result<()> {
        while !self.has_ended {
            let Some(received) = self.line.calls.receive(REQUEST_MAX, 0)? else {
                break;
            };
            self.answer_one(&received)?;
        }
        Ok(())
    }

    fn answer_one(&mut self, received: &Received) -> io::Result<()> {
        if received.frame.kind != Kind::Request {
            return Err(io::Error::other("it sends what is no request"));
        }
        let began = Instant::now();
        let request: Request = message::decode(&received.bytes).map_err(io::Error::other)?;
        let (kind, deed) = (metrics::kind(&request), Deed::of(&request));
        let turn = self.turn.clone();
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self
            .service
            .clients
            .is_current(self.client.id(), &self.line)
        {
            return Err(io::Error::other(
                "another connection of the client has begun, or it is gone",
            ));
        }
        self.line.asks(Some(name_of(&request)));
        let reply = self.within_limits(&request).and_then(|taken| {
            let reply = self.reply(request, received.frame.again);
            drop(taken);
            reply
        });
        self.line.asks(None);
        drop(turn);
        let reply = reply.unwrap_or_else(|error| {
            let answer = Answer::Failed(Failure::from(error));
            answers::alone(answer.known_to(self.line.features))
        });
        if let Some(deed) = deed {
            deed.tell(self.client.id(), &self.peer, &reply.0);
        }
        let sent = send(&self.line.calls, received.frame, &reply)?;
        let metrics = &self.service.metrics;
        metrics.transferred(received.bytes.len(), sent);
        let has_failed = matches!(reply.0, Answer::Failed(_));
        metrics.answered(kind, began.elapsed(), has_failed);
        Ok(())
    }

    /// Counts a request, while it is answered, and the descriptors that its answer brings, until the client has taken
    /// them: they would be the service's in the eyes of the system, which has a limit for them all together.
    fn within_limits(&mut self, request: &Request) -> Result<Option<Taken>> {
        let files = match request {
            // Whoever has too much may give back, and end.
            Request::Ping
            | Request::Ready
            | Request::ClosePool { .. }
            | Request::RemovePool { .. }
            | Request::RemovePuddle { .. }
            | Request::Clients
            | Request::AskToLeave { .. }
            | Request::Close => return Ok(None),
            Request::CreatePool { .. }
            | Request::OpenPool { .. }
            | Request::ReadPool { .. }
            | Request::LookAtPool { .. }
            | Request::CreatePuddle { .. }
            | Request::ReopenPuddle { .. }
            | Request::ShowPool { .. }
            | Request::ShowingFile { .. } => 1,
            Request::TakeOver { client } => self.client.files_left_by(*client)? as u64,
            Request::OpenPuddles { puddles, .. }
            | Request::OpenLogs { logs: puddles }
            | Request::GivePuddles { puddles } => puddles.len() as u64,
            _ => 0,
        };
        let Service {
            quotas,
            requests,
            descriptors,
            ..
        } = &*self.service;
        let uid = self.caller.uid();
        let taken = requests.take(quotas, uid, 1)?;
        if files > 0 {
            if !self.line.calls.has_unread() {
                self.sent.clear();
            }
            self.sent.push(descriptors.take(quotas, uid, files)?);
        }
        Ok(Some(taken))
    }

    fn reply(&mut self, request: Request, again: bool) -> Result<Reply> {
        let client = &self.client;
        let wants_pool = matches!(
            request,
            Request::CreatePool { .. }
                | Request::OpenPool { .. }
                | Request::ReadPool { .. }
                | Request::LookAtPool { .. }
        );
        if wants_pool && !again && self.service.is_draining.load(Ordering::Relaxed) {
            let text = "the service ends as soon as all programs have closed the store: come again when it is back";
            return Err(refused(text.to_owned()));
        }
        let alone = |answer| Ok(answers::alone(answer));
        match request {
            Request::Recovery => alone(Answer::Recovery(client.recovery()?)),
            Request::Pools => alone(Answer::Pools(client.pools()?)),
            Request::CreatePool {
                pool,
                root,
                name,
                engine,
                root_size,
            } => {
                if again {
                    if let Some(made) = client.pool_again(|uuid, _| uuid == pool)? {
                        return Ok(pool_reply(made));
                    }
                    client.clear_attempt(root)?;
                }
                let made = client.create_pool_as(
                    pool,
                    root,
                    &name,
                    &PoolSpec {
                        engine,
                        root_puddle_size: root_size,
                    },
                );
                Ok(pool_reply(made?))
            }
            Request::OpenPool { name } => {
                if again && let Some(open) = client.pool_again(|_, record| record == name)? {
                    return Ok(pool_reply(open));
                }
                let opened = self.when_free(|client| client.open_pool(&name))?;
                self.understood(opened).map(pool_reply)
            }
            Request::PoolAt { address } => alone(Answer::PoolAt(client.pool_at(address)?)),
            Request::RemovePool { pool, name } => {
                let found = client.pools()?.into_iter().find(|found| found.name == name);
                done(match found {
                    Some(found) if found.uuid == pool => {
                        self.when_free(|client| client.remove_pool(&name))
                    }
                    _ if again => Ok(()),
                    _ => Err(Error::PoolMissing {
                        store: client.info().path,
                        name,
                    }),
                })
            }
            Request::Types => alone(Answer::Types(client.types()?)),
            Request::RefusedPools => alone(Answer::RefusedPools(client.refused_pools()?)),
            Request::GiveUp { name } => match client.give_up(&name) {
                Err(Error::NothingKept { .. }) if again => {
                    alone(Answer::Recovery(RecoveryReport::default()))
                }
                report => alone(Answer::Recovery(report?)),
            },
            Request::AcceptQuarantined { name } => done(
                match self.when_free(|client| client.accept_quarantined(&name)) {
                    Err(Error::NothingKept { .. }) if again => Ok(()),
                    accepted => accepted,
                },
            ),
            Request::RetryQuarantined { name } => {
                match self.when_free(|client| client.retry_quarantined(&name)) {
                    Err(Error::NothingKept { .. }) if again => {
                        alone(Answer::Recovery(RecoveryReport::default()))
                    }
                    report => alone(Answer::Recovery(report?)),
                }
            }
            Request::FindGarbage { pool } => {
                let options = GarbageOptions {
                    pool,
                    ..GarbageOptions::default()
                };
                alone(Answer::Garbage(client.find_garbage(&options)?))
            }
            Request::ReadPool { name } => self.read(again, &name, Embedded::read_pool),
            Request::LookAtPool { name } => self.read(again, &name, Embedded::look_at_pool),
            Request::Registry => alone(Answer::Registry(client.registry()?)),
            Request::LostFiles => alone(Answer::LostFiles(client.lost_files()?)),
            Request::StrayFiles => alone(Answer::StrayFiles(client.stray_files()?)),
            Request::Logs => alone(Answer::Registry(client.logs()?)),
            Request::OpenLogs { logs } => {
                let files = client.open_logs(&logs)?;
                let paths = files.iter().map(|file| file.path().to_owned());
                Ok((Answer::Files(paths.collect()), files))
            }
            Request::Occupied => alone(Answer::Occupied(client.occupied()?)),
            Request::Avoid(used) => done(client.avoid(&used)),
            Request::MakeWay => done(client.make_way()),
            Request::FinishMoving => alone(Answer::Rewritten(client.finish_moving()?)),
            Request::Manifest { begins, part } => done(self.shipment.manifest(begins, &part)),
            Request::BeginImport {
                name,
                into,
                untyped_hold_no_pointers,
            } => {
                let options = ImportOptions {
                    name,
                    into,
                    untyped_hold_no_pointers,
                    ..ImportOptions::default()
                };
                done(self.shipment.begin(client, &options))
            }
            Request::GivePuddles { puddles } => {
                let files = self.shipment.give(&puddles)?;
                let paths = files.iter().map(|file| file.path().to_owned());
                Ok((Answer::Files(paths.collect()), files))
            }
            Request::FinishImport => alone(Answer::Imported(self.shipment.finish()?)),
            Request::ShowPool { name, wait_ms } => {
                let (clients, wait) = (&self.service.clients, Duration::from_millis(wait_ms));
                let showings = &self.service.showings;
                let (answer, file) = showings.show(clients, client, &name, wait)?;
                Ok((answer, vec![file]))
            }
            Request::ShowingFile { showing } => {
                let file = self.service.showings.file(client.id(), showing)?;
                Ok((Answer::Files(vec![file.path().to_owned()]), vec![file]))
            }
            Request::EndShowing { showing, shown } => {
                done(self.service.showings.end(client.id(), showing, shown))
            }
            Request::Interrupted => alone(Answer::Interrupted(client.interrupted()?)),
            Request::AbandonSections { name } => {
                match self.when_free(|client| client.abandon_sections(&name)) {
                    Err(Error::NothingKept { .. }) if again => alone(Answer::Abandoned(Vec::new())),
                    others => alone(Answer::Abandoned(others?)),
                }
            }
            Request::TakeOver { client: of } => {
                self.when_free(|client| answers::to_take_over(client, of, again))
            }
            Request::SetMode { name, mode } => done(client.set_mode(&name, mode)),
            Request::SetOwner { name, uid, gid } => done(client.set_owner(&name, uid, gid)),
            Request::Clients => alone(Answer::Clients(self.service.clients.list(&self.caller))),
            Request::AskToLeave { client, wait_ms } => {
                let (clients, wait) = (&self.service.clients, Duration::from_millis(wait_ms));
                alone(Answer::HasLeft(clients.ask_to_leave(
                    client,
                    self.client.id(),
                    &self.caller,
                    wait,
                )?))
            }
            Request::RevokePool { name } => {
                done(self.when_free(|client| client.revoke_pool(&name)))
            }
            own @ (Request::Ping
            | Request::Ready
            | Request::OpenPuddles { .. }
            | Request::ClosePool { .. }
            | Request::CreatePuddle { .. }
            | Request::ReopenPuddle { .. }
            | Request::RemovePuddle { .. }
            | Request::RegisterLogSpace { .. }
            | Request::RegisterType { .. }
            | Request::Meanings { .. }
            | Request::ChangeTypes { .. }
            | Request::TypeText { .. }
            | Request::SectionsDone { .. }) => answers::to_own(client, &own, again),
            Request::Close => {
                client.close()?;
                self.has_ended = true;
                self.service.clients.has_ended(client.id());
                audit::ended(client.id(), &self.peer);
                alone(Answer::Done)
            }
        }
    }

    /// Opens a pool to be read.
    fn read(
        &self,
        again: bool,
        name: &str,
        open: impl Fn(&Embedded, &str) -> Result<PoolGrant>,
    ) -> Result<Reply> {
        if again && let Some(open) = self.client.read_again(name)? {
            return Ok(pool_reply(open));
        }
        let opened = self.when_free(|client| open(client, name))?;
        self.understood(opened).map(pool_reply)
    }

    /// A pool that the client reads as it is meant: an older one knows nothing of types that have changed.
    fn understood(&self, pool: PoolGrant) -> Result<PoolGrant> {
        if self.line.features & TYPES == 0 && !self.client.meanings(pool.uuid)?.is_empty() {
            self.client.close_pool(pool.uuid)?;
            let name = &pool.name;
            return Err(answers::refused(format!(
                "pool \"{name}\": a newer version of its program has changed its types, of which this one's durum knows nothing; use the newer one"
            )));
        }
        Ok(pool)
    }

    /// Tries again where the pool was that of a client that is gone, or code has completed what that one has left.
    fn when_free<T>(&self, attempt: impl Fn(&Embedded) -> Result<T>) -> Result<T> {
        let (clients, completions) = (&self.service.clients, &self.service.completions);
        // Else it would be recovered after that only, and who wants another pool of it would wait as well.
        let is_there = || clients.is_there(self.client.id());
        let mut is_last = false;
        loop {
            let (before, ended) = (clients.recovered(), completions.ended());
            match attempt(&self.client) {
                // Where it is interrupted, whoever has left that may be being recovered yet: code comes after that.
                Err(Error::PoolBusy { name: pool } | Error::PoolInterrupted { pool, .. })
                    if clients.settle(&pool, before) => {}
                // Code that completes sections has it, or will have.
                Err(Error::PoolBusy { name: pool } | Error::PoolInterrupted { pool, .. })
                    if completions.settle(&pool, ended, is_there) => {}
                // Who had it may have given it up between the attempt and the look at who has it.
                Err(Error::PoolBusy { .. }) if !is_last => is_last = true,
                done => return done,
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.has_ended {
            self.service.clients.left(self.client.id(), &self.line);
        }
    }
}

/// A client that is not let in yet: nothing of it stays if it never is.
struct Newcomer<'s> {
    service: &'s Service,
    client: Option<Uuid>,
}

impl Drop for Newcomer<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            self.service.host.dismiss(client);
        }
    }
}

/// Who the client is: a new one, or one that comes again.
fn welcome(service: &Service, peer: &Peer, hello: &Hello) -> Result<(Embedded, Option<MediaFile>)> {
    let caller = caller_of(peer);
    let Some(known) = hello.client else {
        let (client, file) = service.host.client_elsewhere(caller)?;
        return Ok((client, Some(file)));
    };
    if !service.clients.is_known(known, peer.pid) {
        return Err(Error::ClientUnknown {
            client: known.to_string(),
        });
    }
    let client = service.host.client_again(known, caller)?;
    let liveness = match service.host.life_of(known)? {
        Life::Certain(_) => None,
        Life::Doubtful(_) | Life::Gone => Some(service.host.liveness_file(known)?),
    };
    Ok((client, liveness))
}

fn caller_of(peer: &Peer) -> Caller {
    Caller::new(peer.uid, peer.gid, peer.groups.clone())
}

/// A request in words, for a list of who waits for what.
fn name_of(request: &Request) -> String {
    match request {
        Request::CreatePool { name, .. } => format!("making pool \"{name}\""),
        Request::OpenPool { name } => format!("opening pool \"{name}\""),
        Request::RemovePool { name, .. } => format!("removing pool \"{name}\""),
        Request::RevokePool { name } => format!("revoking pool \"{name}\""),
        Request::GiveUp { name }
        | Request::AcceptQuarantined { name }
        | Request::RetryQuarantined { name } => format!("settling pool \"{name}\""),
        Request::CreatePuddle { .. } => "a new puddle".to_owned(),
        Request::OpenPuddles { .. } | Request::ReopenPuddle { .. } => "files of puddles".to_owned(),
        Request::FindGarbage { .. } => "a search for garbage".to_owned(),
        Request::BeginImport { .. } | Request::GivePuddles { .. } | Request::FinishImport => {
            "pools that are imported".to_owned()
        }
        Request::MakeWay | Request::FinishMoving => "the store to be moved".to_owned(),
        Request::ShowPool { name, .. } => format!("pool \"{name}\" to be shown"),
        Request::TakeOver { client } | Request::SectionsDone { client } => {
            format!("sections of client {client}")
        }
        Request::AskToLeave { client, .. } => format!("the end of client {client}"),
        _ => "an answer".to_owned(),
    }
}
