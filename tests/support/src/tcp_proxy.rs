//! A TCP proxy in front of a server that a test closes and opens, so that the server seems to be down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A proxy to a port of this machine.
pub struct TcpProxy {
    /// The address that it listens on while it is open.
    pub address: SocketAddr,
    to: SocketAddr,
    open: Mutex<Option<Opened>>,
}

struct Opened {
    accepting: JoinHandle<()>,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl TcpProxy {
    /// Creates a proxy that is closed: its address refuses connections.
    pub async fn to(port: u16) -> TcpProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        TcpProxy {
            address: listener.local_addr().expect("its address"),
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            open: Mutex::default(),
        }
    }

    /// Starts to listen and to forward connections.
    pub async fn open(&self) {
        let listener = TcpListener::bind(self.address).await.expect("the port");
        let connections: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let (held, to) = (connections.clone(), self.to);
        let accepting = tokio::spawn(async move {
            while let Ok((mut inside, _)) = listener.accept().await {
                let connection = tokio::spawn(async move {
                    if let Ok(mut outside) = TcpStream::connect(to).await {
                        // Either side may close the connection.
                        let _ = copy_bidirectional(&mut inside, &mut outside).await;
                    }
                });
                held.lock().expect("no panic").push(connection);
            }
        });
        *self.open.lock().expect("no panic") = Some(Opened {
            accepting,
            connections,
        });
    }

    /// Ends all connections and refuses new ones.
    pub fn close(&self) {
        let opened = self.open.lock().expect("no panic").take();
        let opened = opened.expect("it was open");
        opened.accepting.abort();
        for connection in opened.connections.lock().expect("no panic").drain(..) {
            connection.abort();
        }
    }
}
