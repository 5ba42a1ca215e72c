//! The lines that Hostler and a worker exchange: over Node's IPC channel or, for an app behind npm, over the control
//! socket. Parses messages, but does not know what follows from them.

use std::os::unix::net as std_unix;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::lines::{LineReader, Overlong};
use super::message::FromWorker;
use super::message_sender::MessageSender;
use super::news::{NewsSender, WorkerNews};

const LINE_LIMIT: usize = 1024 * 1024;
/// An app needs one connection. The others are room for stray connections.
const CONNECTIONS: usize = 8;
/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads messages over Node's IPC channel. The channel stays open as long as the worker: if it closed, the worker would
/// take Hostler for dead.
pub(super) async fn read_ipc(stream: std_unix::UnixStream, news_sender: NewsSender) {
    if stream.set_nonblocking(true).is_ok()
        && let Ok(stream) = UnixStream::from_std(stream)
    {
        read_messages(stream, news_sender).await;
    }
}

/// Reads messages over the control socket, from processes that inherited no channel.
pub(super) async fn read_control(listener: std_unix::UnixListener, news_sender: NewsSender) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let mut conversations = JoinSet::new();
    loop {
        while conversations.len() >= CONNECTIONS {
            conversations.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => _ = conversations.spawn(read_messages(stream, news_sender.clone())),
            // No descriptor is free, for example. The end of the other conversations would end the worker.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// The end of the connection says nothing about the worker: an app may close its channel and live.
async fn read_messages(stream: UnixStream, news_sender: NewsSender) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = LineReader::new(reader, LINE_LIMIT, Overlong::Skip);
    let (mut message_sender, mut outgoing) = MessageSender::pair();
    loop {
        tokio::select! {
            line = lines.next() => match line.map(|line| FromWorker::parse(&line)) {
                None => break,
                // The connection stays open: other processes may have the same end of it.
                Some(Some(FromWorker::Disconnects)) => outgoing.close(),
                Some(Some(message)) => {
                    // After one process has disconnected, another one speaks, such as the next one of a script.
                    if !message_sender.is_open() {
                        (message_sender, outgoing) = MessageSender::pair();
                    }
                    news_sender.send(WorkerNews::Said { message, message_sender: message_sender.clone() }).await;
                }
                Some(None) => {}
            },
            Some(message) = outgoing.recv() => {
                if writer.write_all(&message.line()).await.is_err() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::super::message::ToWorker;
    use super::*;

    #[tokio::test]
    async fn garbage_and_the_apps_own_messages_do_not_end_the_conversation() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (news_sender, mut news_receiver) = NewsSender::pair(1);
        tokio::spawn(read_messages(ours, news_sender));
        let mut noise = b"{\"hello\":1}\nnot json\n\xff\xff\n".to_vec();
        noise.extend(vec![b'x'; LINE_LIMIT + 5]);
        noise.extend_from_slice(b"\n\"ready\"\n");
        theirs.write_all(&noise).await.unwrap();
        let Some((1, WorkerNews::Said { message: FromWorker::Ready, message_sender })) =
            news_receiver.recv().await
        else {
            panic!("not understood")
        };

        assert!(message_sender.tell(ToWorker::Shutdown));
        let mut answer = [0; 11];
        theirs.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"\"shutdown\"\n");

        drop(theirs);
        assert!(news_receiver.recv().await.is_none(), "the conversation has ended");
    }

    #[tokio::test]
    async fn after_a_process_has_disconnected_another_one_with_the_same_end_gets_messages() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (news_sender, mut news_receiver) = NewsSender::pair(1);
        tokio::spawn(read_messages(ours, news_sender));
        let mut senders = Vec::new();
        for lines in ["\"ready\"\n", "{\"cmd\":\"NODE_HOSTLER\",\"act\":\"disconnects\"}\n\"ready\"\n"] {
            theirs.write_all(lines.as_bytes()).await.unwrap();
            let Some((1, WorkerNews::Said { message_sender, .. })) = news_receiver.recv().await else {
                panic!("not understood")
            };
            senders.push(message_sender);
        }
        assert!(!senders[0].tell(ToWorker::Shutdown), "it reads no more");
        assert!(senders[1].tell(ToWorker::Shutdown));
        let mut answer = [0; 11];
        theirs.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"\"shutdown\"\n");
    }
}
