//! What members and clients say to each other, as bytes.
//!
//! A connection begins with eight bytes from each side: `GBPLK`, the number of the [handshake](HANDSHAKE) as two bytes, big end first,
//! and a zero. Then frames follow: a length of four bytes, big end first, and that many bytes of
//! [postcard](https://postcard.jamesmunns.com/wire-format). The dialler's first frame is [`Hello`], the answer [`Welcome`] or
//! [`Frame::Refused`]. Hello tells the [versions](Versions) that the dialler speaks, Welcome the one that both will speak from then on.
//! Both may only grow at their end: what a reader does not know there is skipped.
//!
//! * [`frame`](Frame): what is said.
//! * [`codec`](Reader): frames as bytes, and their limits.
//! * [`Cluster`]: what all members must agree on, and its fingerprint. · [`Versions`]: what may differ.
//! * [`Reason`]: why somebody is not listened to.

mod cluster;
mod codec;
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
