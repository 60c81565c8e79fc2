//! A proxy in front of a member, so that connections can be cut.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The proxy of one member.
pub(crate) struct Proxy {
    pub(crate) address: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// A connection to the proxy reaches `member`.
    pub(crate) fn before(member: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let open = Arc::new(Mutex::new(Vec::new()));
        let ours = Arc::clone(&open);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                // If the member is down, the caller's connection is closed.
                if let Ok(callee) = TcpStream::connect(&member) {
                    _ = join(&caller, &callee);
                    ours.lock().unwrap_or_else(PoisonError::into_inner).extend([caller, callee]);
                }
            }
        });
        Proxy { address, open }
    }

    /// Cuts all connections. New connections are possible.
    pub(crate) fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in &open {
            // It may be closed already.
            _ = stream.shutdown(Shutdown::Both);
        }
        open.len() / 2
    }
}

/// Copies both ways until one side ends.
fn join(caller: &TcpStream, callee: &TcpStream) -> io::Result<()> {
    for (from, to) in [(caller, callee), (callee, caller)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        from.set_nodelay(true)?;
        thread::spawn(move || {
            _ = io::copy(&mut from, &mut to);
            _ = to.shutdown(Shutdown::Both);
            _ = from.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
