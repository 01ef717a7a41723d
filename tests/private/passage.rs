//! A way to a server that can be cut and opened again, so that a test decides when it is down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub struct Passage {
    pub address: SocketAddr,
    to: SocketAddr,
    open: Mutex<Option<Opened>>,
}

struct Opened {
    accepting: JoinHandle<()>,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Passage {
    /// At first it is cut: nobody listens there.
    pub async fn to(port: u16) -> Passage {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Passage {
            address: listener.local_addr().expect("its address"),
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            open: Mutex::default(),
        }
    }

    pub async fn open(&self) {
        let listener = TcpListener::bind(self.address).await.expect("the port");
        let connections: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let (held, to) = (connections.clone(), self.to);
        let accepting = tokio::spawn(async move {
            while let Ok((mut inside, _)) = listener.accept().await {
                let connection = tokio::spawn(async move {
                    if let Ok(mut outside) = TcpStream::connect(to).await {
                        // Either end may leave.
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

    pub fn cut(&self) {
        let opened = self.open.lock().expect("no panic").take();
        let opened = opened.expect("it was open");
        opened.accepting.abort();
        for connection in opened.connections.lock().expect("no panic").drain(..) {
            connection.abort();
        }
    }
}
