//! An authority, and certificates for members and clients.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// Makes `ca.pem`, and `.pem` and `.key` of `member-N` for each member, `client` and `stranger`.
/// Another authority signs the stranger's certificate, for the name of member 1.
pub(crate) fn make(directory: &Path, members: u16) {
    let authority = authority();
    fs::write(directory.join("ca.pem"), authority.pem()).expect("it can be written");
    for id in 0..members {
        let name = format!("member-{id}");
        issue(directory, &name, &format!("{name}.test"), &authority);
    }
    issue(directory, "client", "client.test", &authority);
    issue(directory, "stranger", "member-1.test", &self::authority());
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("a certificate")
}

fn issue(directory: &Path, file: &str, name: &str, authority: &CertifiedIssuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    fs::write(directory.join(format!("{file}.pem")), certificate.pem()).expect("it can be written");
    fs::write(directory.join(format!("{file}.key")), key.serialize_pem())
        .expect("it can be written");
}
