//! Rooms on etcd.
