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
mod limits;
mod opening;
mod reason;
mod seen;
mod tls;
mod versions;

pub use cluster::{Cluster, CoterieKind, Fingerprint, Peer};
pub use codec::{LONGEST, Reader, WireError, encode, write};
pub(crate) use connection::{End, NotSent, Outbox, Pauses, Take, run};
pub(crate) use dial::{Connection, DialError, Stream, dial};
pub use frame::{About, Frame, Hello, Memory, Recall, Role, Welcome};
pub use limits::{
    BadName, LONGEST_COMMAND, LONGEST_HOST, LONGEST_SESSION, LONGEST_USER, PING_AFTER, SILENT_AFTER,
};
pub use opening::{BadOpening, HANDSHAKE, exchange_openings, opening};
pub use reason::Reason;
pub use seen::{Inside, Participant, PastStage, Seen, Stage, Waiter};
pub(crate) use tls::is_for;
pub use tls::{Identity, TlsError};
pub use versions::Versions;
