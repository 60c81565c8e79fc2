//! The first eight bytes of each side.

use std::time::Duration;

use grouplock_quorum::wire::{BadOpening, exchange_openings, opening};
use tokio::io::AsyncWriteExt;

/// The result of an exchange with a peer that begins with these bytes.
async fn check(theirs: [u8; 8]) -> Result<(), BadOpening> {
    let (mut near, mut far) = tokio::io::duplex(64);
    far.write_all(&theirs).await.unwrap();
    exchange_openings(&mut near, Duration::from_secs(60)).await
}

#[tokio::test]
async fn another_version_differs_from_another_protocol() {
    assert!(check(opening()).await.is_ok());
    let stale = check(*b"GBPLK\0\x09\0").await.unwrap_err();
    assert_eq!(stale.to_string(), "it begins with handshake 9, expected handshake 2");
    let foreign = check(*b"GET / HT").await.unwrap_err().to_string();
    assert!(foreign.contains("not a member or client"), "{foreign}");
    assert!(matches!(check(*b"GBPLK\0\x01\x01").await, Err(BadOpening::Foreign(_))));
}
