//! What the service and its clients parse of each other, used by `fuzz_targets` and by
//! `crates/durum-protocol/tests/corpus.rs`. A function fails by panicking.
//!
//! An input is a row of packets, each with its length, 16 bits, before it; and, beside that, a message alone.

use std::fmt::Debug;

use durum_protocol::frame::{ANSWER_MAX, Frame, PACKET_MAX, Parts, REQUEST_MAX};
use durum_protocol::watching::{self, Told};
use durum_protocol::{Answer, Failure, Hello, Note, Request, message};
use durum_service::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A function to fuzz.
pub type Target = fn(&[u8]);

/// All of them, by the names of their corpora.
pub const TARGETS: [(&str, Target); 2] = [
    ("protocol_service", protocol_service),
    ("protocol_client", protocol_client),
];

/// What the service reads of a client: a greeting, requests.
pub fn protocol_service(data: &[u8]) {
    let read = |bytes: &[u8]| {
        message_of::<Hello>(bytes);
        message_of::<Request>(bytes);
        // As a program that observes itself does.
        let _ = watching::question(bytes);
        message_of::<watching::Question>(bytes);
    };
    read(data);
    for message in messages(data, REQUEST_MAX) {
        read(&message);
    }
}

/// What a client reads of the service: answers, and notes on the bell.
pub fn protocol_client(data: &[u8]) {
    let read = |bytes: &[u8]| {
        message_of::<Note>(bytes);
        if let Ok(Told::Numbers(numbers)) = watching::told(bytes) {
            // There is a value wherever one is shown.
            for number in &numbers.all {
                let wanted = if number.is_by_pool {
                    numbers.pools.len()
                } else {
                    1
                };
                assert_eq!(number.values.len(), wanted);
            }
        }
        message_of::<Told>(bytes);
        if let Some(Answer::Failed(failure)) = message_of::<Answer>(bytes) {
            // It is shown, and may be handed on.
            let error = Error::from(failure);
            let _ = error.to_string();
            let _ = Failure::from(error);
        }
    };
    read(data);
    for message in messages(data, ANSWER_MAX) {
        read(&message);
    }
}

/// A message that is accepted is read again as it was.
fn message_of<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    match message::decode::<T>(bytes) {
        Ok(read) => {
            let again = message::decode::<T>(&message::encode(&read));
            assert_eq!(again.as_ref(), Ok(&read));
            Some(read)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// The messages of a connection, up to the packet that ends it.
pub fn messages(mut data: &[u8], max: usize) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut parts = Parts::new(max);
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (packet, rest) = rest.split_at(length);
        data = rest;
        match parts.add(packet) {
            Ok(None) => {}
            Ok(Some((frame, message))) => {
                assert!(message.len() <= max && message.len() == frame.length as usize);
                cut_again(frame, &message);
                messages.push(message);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    messages
}

/// Packets that are made of a message are the message again.
fn cut_again(frame: Frame, message: &[u8]) {
    let mut parts = Parts::new(message.len());
    let mut whole = None;
    for packet in frame.packets(message, 0) {
        assert!(whole.is_none() && packet.len() <= PACKET_MAX);
        whole = parts.add(&packet).expect("a packet of ours is refused");
    }
    assert_eq!(whole.expect("the last packet ends the message").1, message);
}
