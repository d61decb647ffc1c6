//! What a service answers to a request that concerns only the client itself: its puddles, and pools that it has. Who
//! serves many clients answers the others besides.

use std::io;
use std::os::fd::BorrowedFd;

use durum_format::Uuid;
use durum_format::types::Meanings;
use durum_persist::file::MediaFile;
use durum_protocol::frame::Frame;
use durum_protocol::message::{self, OpenPool};
use durum_protocol::{Answer, Grant, Request};
use durum_service::{
    Embedded, Error, ErrorKind, PUDDLES_AT_ONCE, PoolGrant, PuddleGrant, Result, Service as _,
    TakenOver,
};

use crate::socket::Socket;

/// What is sent: an answer, and the files beside it.
pub type Reply = (Answer, Vec<MediaFile>);

/// An answer that no file comes with.
pub fn alone(answer: Answer) -> Reply {
    (answer, Vec::new())
}

/// The answer to what is to be done only.
///
/// # Errors
/// The failure.
pub fn done(result: Result<()>) -> Result<Reply> {
    result.map(|()| alone(Answer::Done))
}

/// The answer to a request of this kind; others are refused. One that comes `again`, because its answer was lost, is
/// done once.
///
/// # Errors
/// As the method of [`Service`](durum_service::Service) of the same name.
pub fn to_own(client: &Embedded, request: &Request, again: bool) -> Result<Reply> {
    match request {
        Request::Ping | Request::Ready => Ok(alone(Answer::Done)),
        Request::OpenPuddles { pool, puddles } => open_puddles(client, *pool, puddles),
        Request::ClosePool { pool } => done(match client.close_pool(*pool) {
            Err(Error::PoolNotOpen { .. }) if again => Ok(()),
            closed => closed,
        }),
        Request::CreatePuddle { .. } => create_puddle(client, request, again),
        Request::ReopenPuddle { puddle } => {
            let reopened = client.reopen_puddle(*puddle);
            reopened.map(|file| (Answer::File, vec![file]))
        }
        Request::RemovePuddle { puddle } => done(match client.remove_puddle(*puddle) {
            Err(Error::PuddleUnknown { .. }) if again => Ok(()),
            removed => removed,
        }),
        Request::RegisterLogSpace { puddle } => done(client.register_log_space(*puddle)),
        Request::RegisterType { id, text } => done(client.register_type(*id, text)),
        Request::Meanings { pool } => client.meanings(*pool).map(meanings),
        Request::ChangeTypes { pool, old, new } => {
            client.change_types(*pool, *old, *new).map(meanings)
        }
        Request::TypeText { id } => client
            .type_text(*id)
            .map(|text| alone(Answer::TypeText(text))),
        Request::SectionsDone { client: of } => done(match client.sections_done(*of) {
            Err(Error::PuddleRefused { .. }) if again => Ok(()),
            ended => ended,
        }),
        _ => Err(refused("it is not asked for that here")),
    }
}

fn open_puddles(client: &Embedded, pool: Uuid, puddles: &[Uuid]) -> Result<Reply> {
    let opened = client.open_puddles(pool, puddles)?;
    let answer = Answer::Puddles(opened.iter().map(grant).collect());
    let files = opened.into_iter().map(|puddle| puddle.file);
    Ok((answer, files.collect()))
}

fn create_puddle(client: &Embedded, request: &Request, again: bool) -> Result<Reply> {
    let Request::CreatePuddle {
        puddle,
        owner,
        kind,
        size,
    } = *request
    else {
        return Err(refused("that makes no puddle"));
    };
    if again {
        if let Some(made) = client.puddle_again(puddle)? {
            return Ok(puddle_reply(made));
        }
        client.clear_attempt(puddle)?;
    }
    let made = client.create_puddle_as(puddle, owner.into(), kind, size);
    made.map(puddle_reply)
}

/// The answer to [`Request::TakeOver`] of a client.
///
/// # Errors
/// As [`Service::take_over`](durum_service::Service::take_over).
pub fn to_take_over(client: &Embedded, of: Uuid, again: bool) -> Result<Reply> {
    if again && let Some(taken) = client.taken_again(of)? {
        return Ok(taken_reply(taken));
    }
    let count = client.files_left_by(of)?;
    if count > PUDDLES_AT_ONCE {
        return Err(refused(format!(
            "client {of} has left {count} files, and a service gives {PUDDLES_AT_ONCE} at once: end the service, and \
             have a program complete its sections that opens the directory"
        )));
    }
    client.take_over(of).map(taken_reply)
}

fn meanings(found: Meanings) -> Reply {
    alone(Answer::Meanings(found))
}

/// A refusal, whose reason a person understands.
pub fn refused(text: impl Into<String>) -> Error {
    Error::Told {
        kind: ErrorKind::User,
        text: text.into(),
    }
}

fn grant(puddle: &PuddleGrant) -> Grant {
    Grant {
        uuid: puddle.uuid,
        address: puddle.address,
        size: puddle.size,
        kind: puddle.kind,
        is_root: puddle.is_root,
    }
}

fn open_pool(pool: PoolGrant) -> (OpenPool, MediaFile) {
    let open = OpenPool {
        uuid: pool.uuid,
        name: pool.name,
        engine: pool.engine,
        root: grant(&pool.root),
        others: pool.others,
    };
    (open, pool.root.file)
}

/// A pool, with the file of its root.
pub fn pool_reply(pool: PoolGrant) -> Reply {
    let (pool, root) = open_pool(pool);
    (Answer::Pool(pool), vec![root])
}

fn taken_reply(taken: TakenOver) -> Reply {
    let (pools, mut files): (Vec<_>, Vec<_>) = taken.pools.into_iter().map(open_pool).unzip();
    let puddles = taken.puddles.iter().map(grant).collect();
    files.extend(taken.puddles.into_iter().map(|puddle| puddle.file));
    (Answer::TakenOver { pools, puddles }, files)
}

fn puddle_reply(puddle: PuddleGrant) -> Reply {
    (Answer::Puddle(grant(&puddle)), vec![puddle.file])
}

/// Sends an answer; how many bytes it has.
///
/// # Errors
/// Of the connection.
pub fn send(socket: &Socket, frame: Frame, (answer, files): &Reply) -> io::Result<usize> {
    let files: Vec<BorrowedFd<'_>> = files.iter().map(MediaFile::as_fd).collect();
    let message = message::encode(answer);
    socket.send(frame.answer(), &message, &files)?;
    Ok(message.len())
}
