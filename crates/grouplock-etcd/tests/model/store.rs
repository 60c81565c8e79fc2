//! The part of etcd that the transactions need: keys with revisions, leases, and nested
//! transactions.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_etcd::keys::{Keys, Span};
use grouplock_etcd::proto::{
    Compare, CompareResult, CompareTarget, DeleteRangeResponse, KeyValue, PutResponse,
    RangeResponse, Request, RequestOp, Response, ResponseHeader, ResponseOp, TargetUnion,
    TxnRequest, TxnResponse,
};
use grouplock_etcd::view::View;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) keys: BTreeMap<Vec<u8>, KeyValue>,
    pub(crate) revision: i64,
    pub(crate) leases: BTreeSet<i64>,
}

/// A put names a lease that does not exist.
#[derive(Debug)]
pub(crate) struct NoLease;

impl Store {
    pub(crate) fn new(leases: impl IntoIterator<Item = i64>) -> Self {
        Store { keys: BTreeMap::new(), revision: 1, leases: leases.into_iter().collect() }
    }

    pub(crate) fn in_span(&self, span: &Span) -> impl Iterator<Item = &KeyValue> {
        self.keys.range(span.start.clone()..span.end.clone()).map(|(_, kv)| kv)
    }

    /// Ends a lease. All its keys are deleted at one revision.
    pub(crate) fn end(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let before = self.keys.len();
        self.keys.retain(|_, kv| kv.lease != lease);
        if self.keys.len() != before {
            self.revision += 1;
        }
    }

    /// Executes a transaction completely, or not at all.
    pub(crate) fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, NoLease> {
        // etcd checks the leases of all puts before the first put.
        self.check(request)?;
        let mut changed = false;
        let mut response = self.apply(request, &mut changed);
        if changed {
            self.revision += 1;
        }
        response.header =
            Some(ResponseHeader { revision: self.revision, ..ResponseHeader::default() });
        Ok(response)
    }

    fn path<'r>(&self, request: &'r TxnRequest) -> (bool, &'r [RequestOp]) {
        let holds = request.compare.iter().all(|compare| self.holds(compare));
        (holds, if holds { &request.success } else { &request.failure })
    }

    fn check(&self, request: &TxnRequest) -> Result<(), NoLease> {
        for step in self.path(request).1 {
            match &step.request {
                Some(Request::Put(put)) if put.lease != 0 && !self.leases.contains(&put.lease) => {
                    return Err(NoLease);
                }
                Some(Request::Txn(inner)) => self.check(inner)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, request: &TxnRequest, changed: &mut bool) -> TxnResponse {
        let (succeeded, steps) = self.path(request);
        let responses = steps.iter().map(|step| self.step(step, changed)).collect();
        let header = ResponseHeader { revision: self.revision, ..ResponseHeader::default() };
        TxnResponse { header: Some(header), succeeded, responses }
    }

    fn step(&mut self, step: &RequestOp, changed: &mut bool) -> ResponseOp {
        let response = match step.request.as_ref().expect("every step says what it is") {
            Request::Range(range) => {
                let mut kvs = self.found(&range.key, &range.range_end);
                if range.keys_only {
                    for kv in &mut kvs {
                        kv.value.clear();
                    }
                }
                Response::Range(RangeResponse { header: None, kvs })
            }
            Request::Put(put) => {
                *changed = true;
                let now = self.revision + 1;
                let old = self.keys.get(&put.key).cloned();
                let kv = KeyValue {
                    key: put.key.clone(),
                    create_revision: old.as_ref().map_or(now, |old| old.create_revision),
                    mod_revision: now,
                    version: old.as_ref().map_or(1, |old| old.version + 1),
                    value: put.value.clone(),
                    lease: put.lease,
                };
                self.keys.insert(put.key.clone(), kv);
                Response::Put(PutResponse { header: None })
            }
            Request::DeleteRange(delete) => {
                let gone = self.found(&delete.key, &delete.range_end);
                *changed |= !gone.is_empty();
                for kv in &gone {
                    self.keys.remove(&kv.key);
                }
                let deleted = i64::try_from(gone.len()).expect("not that many");
                Response::DeleteRange(DeleteRangeResponse { header: None, deleted })
            }
            Request::Txn(inner) => Response::Txn(self.apply(inner, changed)),
        };
        ResponseOp { response: Some(response) }
    }

    /// What a watch has reported so far, if it is up to date.
    pub(crate) fn view(&self, keys: &Keys) -> View {
        let kvs: Vec<KeyValue> = self.in_span(&keys.state()).cloned().collect();
        View::of(keys, self.revision, &kvs)
    }

    fn found(&self, key: &[u8], end: &[u8]) -> Vec<KeyValue> {
        if end.is_empty() {
            return self.keys.get(key).cloned().into_iter().collect();
        }
        if end <= key {
            return Vec::new();
        }
        let span = Span { start: key.to_vec(), end: end.to_vec() };
        self.in_span(&span).cloned().collect()
    }

    /// On an empty range a comparison reads zeros.
    fn holds(&self, compare: &Compare) -> bool {
        let target = CompareTarget::try_from(compare.target).expect("a known target");
        assert_eq!(compare.result, i32::from(CompareResult::Equal), "nobody asks for else");
        let mut found = self.found(&compare.key, &compare.range_end);
        if found.is_empty() {
            found.push(KeyValue::default());
        }
        found.iter().all(|kv| match (target, compare.target_union.as_ref()) {
            (CompareTarget::Create, Some(TargetUnion::CreateRevision(with))) => {
                kv.create_revision == *with
            }
            (CompareTarget::Mod, Some(TargetUnion::ModRevision(with))) => kv.mod_revision == *with,
            (CompareTarget::Lease, Some(TargetUnion::Lease(with))) => kv.lease == *with,
            other => panic!("nobody asks for {other:?}"),
        })
    }
}
