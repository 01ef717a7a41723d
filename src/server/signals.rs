//! The signals of the process, handled from its first moments on: a signal without a handler would kill it.

use std::io;
use std::process::exit;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::upgrade::Handover;
use crate::admin::{Admin, LifecyclePhase};

/// What a shell shows of a process that SIGINT has ended.
const INTERRUPTED: i32 = 130;

/// What the process was told to do. A signal that comes before somebody waits for it is not lost.
#[derive(Clone, Default)]
pub(super) struct Signals {
    shutdown: Arc<Notify>,
    reload: Arc<Notify>,
    upgrade: Arc<Notify>,
}

impl Signals {
    /// Installs the handlers, on a thread of their own.
    pub(super) fn install() -> Result<Signals> {
        let signals = Signals::default();
        let (installed, is_installed) = sync_channel(1);
        let watched = signals.clone();
        let watching = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => {
                    // The receiver waits for this, and is gone only if its thread has ended.
                    let _ = installed.send(Err(error));
                    return;
                }
            };
            runtime.block_on(async move {
                let handlers = Handlers::install();
                let failed = handlers.as_ref().err().map(|error| error.kind());
                let _ = installed.send(failed.map_or(Ok(()), |kind| Err(kind.into())));
                if let Ok(handlers) = handlers {
                    handlers.watch(&watched).await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(watching).context("cannot start a thread")?;
        is_installed
            .recv()
            .context("the thread of the signals has ended")?
            .context("cannot install signal handlers")?;
        Ok(signals)
    }

    /// Waits for SIGHUP.
    pub(super) async fn reload_requested(&self) {
        self.reload.notified().await;
    }
}

/// Tells pingora when the process is to end. Every signal that ends it drains it first.
pub(super) struct ShutdownWatcher {
    pub(super) signals: Signals,
    pub(super) admin: Arc<Admin>,
    pub(super) handover: Handover,
    /// Load balancers see for this time that the gateway is not ready, while it still takes what they send.
    pub(super) delay: Duration,
}

#[async_trait]
impl ShutdownSignalWatch for ShutdownWatcher {
    async fn recv(&self) -> ShutdownSignal {
        loop {
            tokio::select! {
                () = self.signals.shutdown.notified() => break,
                () = self.signals.upgrade.notified() => {}
            }
            match self.handover.start_successor().await {
                Ok(()) => {
                    log::info!("handing the listeners over; requests in flight finish here");
                    return ShutdownSignal::GracefulUpgrade;
                }
                Err(error) => log::error!("no upgrade, this process serves on: {error:#}"),
            }
        }
        if !self.delay.is_zero() {
            self.admin.enter(LifecyclePhase::Draining);
            log::info!("not ready any more; the listeners close after server.shutdown_delay");
            sleep(self.delay).await;
        }
        ShutdownSignal::GracefulTerminate
    }
}

struct Handlers {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
    hangup: Signal,
    user: [Signal; 2],
}

impl Handlers {
    fn install() -> io::Result<Handlers> {
        Ok(Handlers {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            user: [
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
            ],
        })
    }

    async fn watch(mut self, signals: &Signals) {
        let mut is_interrupted = false;
        let [user1, user2] = &mut self.user;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.quit.recv() => {}
                _ = self.interrupt.recv() => {
                    if is_interrupted {
                        log::warn!("a second SIGINT: requests in flight are cut");
                        exit(INTERRUPTED);
                    }
                    is_interrupted = true;
                }
                _ = self.hangup.recv() => {
                    signals.reload.notify_one();
                    continue;
                }
                _ = user1.recv() => {
                    log::info!("SIGUSR1 has no meaning here");
                    continue;
                }
                _ = user2.recv() => {
                    signals.upgrade.notify_one();
                    continue;
                }
            }
            signals.shutdown.notify_one();
        }
    }
}
