//! The messages between members and clients, as bytes.
//!
//! A connection begins with eight bytes from each side: `GBPLK`, the number of the
//! [handshake](HANDSHAKE) as two bytes, big-endian, and a zero. Frames follow: a length of four
//! bytes, big-endian, and that many bytes of
//! [postcard](https://postcard.jamesmunns.com/wire-format). The first frame of the dialler is
//! [`Hello`]; the answer is [`Welcome`] or [`Frame::Refused`]. Hello contains the
//! [versions](Versions) that the dialler speaks, Welcome the version that both use from then on.
//! Later versions may append fields to these two frames; a reader skips what it does not know.
//!
//! * [`Frame`]: the frames. [`Reader`]: frames as bytes, and their limits.
//! * [`Cluster`]: what all members have in common, and its fingerprint. [`Versions`]: what may
//!   differ.
//! * [`Reason`]: why a member refuses somebody.

mod cluster;
mod codec;
mod connection;
mod dial;
mod frame;
mod reason;
mod seen;
mod tls;

pub use cluster::{Cluster, CoterieKind, Fingerprint, Peer, Versions};
pub use codec::{LONGEST, Reader, WireError, encode, write};
pub(crate) use connection::{End, NotSent, Outbox, Pauses, Take, run};
pub use dial::{BadOpening, HANDSHAKE, exchange_openings, opening};
pub(crate) use dial::{Connection, DialError, Stream, dial};
pub use frame::{
    About, BadName, Frame, Hello, LONGEST_COMMAND, LONGEST_HOST, LONGEST_SESSION, LONGEST_USER,
    Memory, PING_AFTER, Recall, Role, SILENT_AFTER, Welcome,
};
pub use reason::Reason;
pub use seen::{Inside, Participant, PastStage, Seen, Stage, Waiter};
pub(crate) use tls::is_for;
pub use tls::{Identity, TlsError};
