//! Connections of HTTP/1.1 that wait for their next request.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;
use futures_util::FutureExt as _;
use pingora_core::protocols::Stream;
use tokio::io::AsyncReadExt as _;
use tokio::task::unconstrained;

/// How long one may wait; upstreams commonly close theirs after a minute.
pub(super) const IDLE: Duration = Duration::from_secs(50);

/// How often those are let go that have waited too long, or were closed from the other side.
const SWEEP: Duration = Duration::from_secs(1);

/// What connections have in common that serve each other's requests: scheme and host, and where
/// that is.
pub(super) type Origin = (Arc<str>, SocketAddr);

/// pingora's pool watches every connection with a task of its own, which is started and stopped
/// for every request. Here one task looks after all of them, now and then.
#[derive(Clone)]
pub(super) struct Pool(Arc<Mutex<Shelves>>);

struct Shelves {
    /// Those that came last are at the end, and are taken first.
    of: HashMap<Origin, VecDeque<Waiting>, RandomState>,
    count: usize,
    most: usize,
    is_swept: bool,
}

struct Waiting {
    stream: Stream,
    since: Instant,
}

impl Waiting {
    /// Whether nothing has come from the other side, neither bytes nor an end.
    fn is_quiet(&mut self) -> bool {
        let mut unasked = [0; 1];
        let reading = unconstrained(self.stream.read(&mut unasked));
        reading.now_or_never().is_none()
    }
}

impl Pool {
    pub(super) fn of_at_most(most: usize) -> Pool {
        Pool(Arc::new(Mutex::new(Shelves {
            of: HashMap::default(),
            count: 0,
            most,
            is_swept: false,
        })))
    }

    /// One that can be used again, if there is any.
    pub(super) fn take(&self, origin: &Origin) -> Option<Stream> {
        loop {
            let mut waiting = self.locked().pop(origin)?;
            if waiting.is_quiet() {
                return Some(waiting.stream);
            }
        }
    }

    pub(super) fn put(&self, origin: Origin, stream: Stream) {
        let mut shelves = self.locked();
        let oldest = shelves.push(origin, stream);
        let unswept = !std::mem::replace(&mut shelves.is_swept, true);
        drop(shelves);
        // Closing is a call to the system, which nobody else need wait for.
        drop(oldest);
        if unswept {
            tokio::spawn(self.clone().sweep());
        }
    }

    /// Until none is left.
    async fn sweep(self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let mut shelves = self.locked();
            let gone = shelves.remove_useless(Instant::now());
            let is_over = shelves.of.is_empty();
            shelves.is_swept = !is_over;
            drop(shelves);
            drop(gone);
            if is_over {
                return;
            }
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Shelves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelves {
    fn pop(&mut self, origin: &Origin) -> Option<Waiting> {
        let waiting = self.of.get_mut(origin)?.pop_back()?;
        self.count -= 1;
        Some(waiting)
    }

    /// With the one that has to make room, where there is none left.
    fn push(&mut self, origin: Origin, stream: Stream) -> Option<Waiting> {
        let shelf = self.of.entry(origin).or_default();
        let since = Instant::now();
        shelf.push_back(Waiting { stream, since });
        self.count += 1;
        // Of the origin that has most: else one that came late would never keep any.
        let is_full = self.count > self.most;
        let longest = self.of.values_mut().filter(|_| is_full);
        let longest = longest.max_by_key(|shelf| shelf.len());
        let oldest = longest.and_then(VecDeque::pop_front);
        self.count -= usize::from(oldest.is_some());
        oldest
    }

    fn remove_useless(&mut self, now: Instant) -> Vec<Waiting> {
        let mut gone = Vec::new();
        self.of.retain(|_, shelf| {
            for _ in 0..shelf.len() {
                let Some(mut waiting) = shelf.pop_front() else {
                    break;
                };
                let is_young = now.saturating_duration_since(waiting.since) < IDLE;
                match is_young && waiting.is_quiet() {
                    true => shelf.push_back(waiting),
                    false => gone.push(waiting),
                }
            }
            !shelf.is_empty()
        });
        self.count -= gone.len();
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    /// Both ends of one connection, told apart by a number that the near end sends first.
    async fn connection(listener: &TcpListener, number: u8) -> (Stream, TcpStream) {
        let address = listener.local_addr().expect("an address");
        let mut near = TcpStream::connect(address).await.expect("connects");
        let (mut far, _) = listener.accept().await.expect("accepts");
        near.write_all(&[number]).await.expect("writes");
        assert_eq!(far.read_u8().await.expect("reads"), number);
        let near: pingora_core::protocols::l4::stream::Stream = near.into();
        (Box::new(near), far)
    }

    async fn listener() -> (TcpListener, Origin) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("an address");
        (listener, ("http://here".into(), address))
    }

    async fn send(stream: &mut Stream, far: &mut TcpStream, byte: u8) {
        stream.write_all(&[byte]).await.expect("writes");
        stream.flush().await.expect("flushes");
        assert_eq!(far.read_u8().await.expect("reads"), byte);
    }

    #[tokio::test]
    async fn the_last_that_came_is_taken_first_and_only_by_its_origin() {
        let (listener, origin) = listener().await;
        let pool = Pool::of_at_most(8);
        let (first, mut first_far) = connection(&listener, 1).await;
        let (second, mut second_far) = connection(&listener, 2).await;
        pool.put(origin.clone(), first);
        pool.put(origin.clone(), second);
        let elsewhere: Origin = ("https://here".into(), origin.1);
        assert!(pool.take(&elsewhere).is_none());
        let mut taken = pool.take(&origin).expect("the second");
        send(&mut taken, &mut second_far, 7).await;
        let mut taken = pool.take(&origin).expect("the first");
        send(&mut taken, &mut first_far, 8).await;
        assert!(pool.take(&origin).is_none());
    }

    /// Waits until this end knows what the other has done.
    async fn disturbed(stream: Stream) -> Stream {
        let since = Instant::now();
        let mut waiting = Waiting { stream, since };
        while waiting.is_quiet() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        waiting.stream
    }

    #[tokio::test]
    async fn one_that_has_ended_or_speaks_unasked_is_not_given_out() {
        let (listener, origin) = listener().await;
        let pool = Pool::of_at_most(8);
        let (sound, _sound_far) = connection(&listener, 1).await;
        let (ended, ended_far) = connection(&listener, 2).await;
        let (speaking, mut speaking_far) = connection(&listener, 3).await;
        drop(ended_far);
        speaking_far
            .write_all(b"HTTP/1.1 408")
            .await
            .expect("writes");
        let (ended, speaking) = (disturbed(ended).await, disturbed(speaking).await);
        for stream in [sound, ended, speaking] {
            pool.put(origin.clone(), stream);
        }
        assert!(pool.take(&origin).is_some());
        assert!(pool.take(&origin).is_none());
        assert_eq!(pool.locked().count, 0);
    }

    #[tokio::test]
    async fn the_oldest_makes_room() {
        let (listener, origin) = listener().await;
        let pool = Pool::of_at_most(1);
        let (first, mut first_far) = connection(&listener, 1).await;
        let (second, mut second_far) = connection(&listener, 2).await;
        pool.put(origin.clone(), first);
        pool.put(origin.clone(), second);
        assert_eq!(first_far.read(&mut [0]).await.expect("an end"), 0);
        let mut taken = pool.take(&origin).expect("the second");
        send(&mut taken, &mut second_far, 7).await;
        assert!(pool.take(&origin).is_none());
    }

    #[tokio::test]
    async fn who_comes_late_finds_room_beside_those_who_have_most() {
        let ((listener, origin), (other_listener, other)) = (listener().await, listener().await);
        let pool = Pool::of_at_most(2);
        for number in 0..2 {
            pool.put(origin.clone(), connection(&listener, number).await.0);
        }
        pool.put(other.clone(), connection(&other_listener, 3).await.0);
        let shelves = pool.locked();
        assert_eq!(
            (shelves.of[&other].len(), shelves.of[&origin].len()),
            (1, 1)
        );
        assert_eq!(shelves.count, 2);
    }

    #[tokio::test]
    async fn what_has_waited_too_long_or_has_ended_is_swept() {
        let (listener, origin) = listener().await;
        let pool = Pool::of_at_most(8);
        let (ended, ended_far) = connection(&listener, 1).await;
        let (sound, mut sound_far) = connection(&listener, 2).await;
        drop(ended_far);
        let ended = disturbed(ended).await;
        pool.put(origin.clone(), ended);
        pool.put(origin.clone(), sound);
        assert!(pool.locked().is_swept);
        let now = Instant::now();
        assert_eq!(pool.locked().remove_useless(now).len(), 1);
        assert_eq!(pool.locked().count, 1);
        let gone = pool.locked().remove_useless(now + IDLE * 2);
        assert_eq!((gone.len(), pool.locked().of.len()), (1, 0));
        drop(gone);
        assert_eq!(sound_far.read(&mut [0]).await.expect("an end"), 0);
    }
}
