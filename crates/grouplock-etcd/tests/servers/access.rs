//! Access to the servers: TLS, client certificates, names and passwords.

use crate::{actor, server};
use std::path::Path;
use std::time::Duration;

use crate::server::Server;
use grouplock_room::{Guard, Places, Room, RoomError, RoomOptions};
use grouplock_testing::Scratch;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

fn open(place: &str) -> Result<Room, RoomError> {
    let places = Places::new().with(grouplock_etcd::opener());
    places.open(place, "room", &RoomOptions::new())
}

/// Enters and leaves. Returns the error if one of them fails.
fn visit(place: &str) -> Result<(), String> {
    let room = open(place).map_err(|error| error.to_string())?;
    room.enter("s").and_then(Guard::leave).map_err(|error| error.to_string())
}

/// Not a test: what [`actor::start`] runs. Visits a room and prints the result.
#[test]
fn actor() {
    let Some(role) = actor::role() else { return };
    match visit(&role[0]) {
        Ok(()) => actor::say("well"),
        Err(error) => actor::say(&error),
    }
}

/// The result of a visit with these variables.
fn visit_with(place: &str, variables: &[(&str, &str)]) -> String {
    let actor = actor::start(module_path!(), &[place], variables);
    actor.hear().expect("it says how it went")
}

/// Makes an authority, a server's certificate and a client's, and an authority that is not trusted.
fn make_certificates(directory: &Path) {
    let write = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("a file can be written");
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params, key).expect("it signs itself")
    };
    let ours = authority("ours");
    write("ca.pem", &ours.pem());
    write("foreign.pem", &authority("foreign").pem());
    for name in ["server", "client"] {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("good names");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &ours).expect("the authority signs");
        write(&format!("{name}.pem"), &certificate.pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
}

#[test]
fn tls_with_certificates_on_both_sides() {
    if !server::is_installed() {
        return;
    }
    let scratch = Scratch::new();
    make_certificates(scratch.path());
    let file = |name: &str| scratch.path().join(name).display().to_string();
    let more = [
        format!("--cert-file={}", file("server.pem")),
        format!("--key-file={}", file("server.key")),
        format!("--trusted-ca-file={}", file("ca.pem")),
        "--client-cert-auth".to_owned(),
    ];
    let server = Server::single(scratch.path(), &more, "https");
    let hosts = format!("etcd://{}", server.endpoint());
    let (ca, cert, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
    visit(&format!("{hosts}?cacert={ca}&cert={cert}&key={key}")).expect("all is well");
    // The same with variables of the environment.
    let variables = [
        ("GROUPLOCK_ETCD_CACERT", ca.as_str()),
        ("GROUPLOCK_ETCD_CERT", &cert),
        ("GROUPLOCK_ETCD_KEY", &key),
    ];
    assert_eq!(visit_with(&hosts, &variables), "well");
    let foreign = file("foreign.pem");
    for (options, what) in [
        (format!("cacert={ca}"), "without a certificate of our own"),
        (format!("cacert={foreign}&cert={cert}&key={key}"), "with an authority that is not ours"),
        ("ttl=9".to_owned(), "in plain text"),
    ] {
        let error = visit(&format!("{hosts}?timeout=1&{options}")).expect_err(what);
        assert!(error.contains("cannot be reached"), "{what}: {error}");
        println!("{what}: {error}");
    }
    let error = visit(&format!("{hosts}?cacert={ca}x")).expect_err("there is no such file");
    assert!(error.contains("ca.pemx") && error.contains("No such file"), "{error}");
    let error = visit(&format!("{hosts}?cacert={key}")).expect_err("it is no certificate");
    println!("a key for a certificate: {error}");
}

#[test]
fn names_and_passwords() {
    if !server::is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let server = Server::single(scratch.path(), &[], "http");
    for arguments in [
        &["user", "add", "root:all mighty"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "visitor"],
        &["role", "grant-permission", "visitor", "--prefix=true", "readwrite", "ours/"],
        &["user", "add", "me:open sesame"],
        &["user", "grant-role", "me", "visitor"],
        &["auth", "enable"],
    ] {
        let output = server.etcdctl(arguments);
        assert!(output.status.success(), "{output:?}");
    }
    let place = format!("etcd://{}/ours?timeout=10", server.endpoint());
    let user = |password| [("GROUPLOCK_ETCD_USER", "me"), ("GROUPLOCK_ETCD_PASSWORD", password)];
    assert_eq!(visit_with(&place, &user("open sesame")), "well");
    let wrong = visit_with(&place, &user("open barley"));
    assert!(wrong.contains("authentication failed"), "{wrong}");
    assert!(!wrong.contains("barley"), "{wrong}");
    let nobody = visit_with(&place, &[]);
    assert!(nobody.contains("user name is empty"), "{nobody}");
    assert!(nobody.contains("GROUPLOCK_ETCD_USER"), "{nobody}");
    let elsewhere = format!("etcd://{}/theirs?timeout=10", server.endpoint());
    let denied = visit_with(&elsewhere, &user("open sesame"));
    assert!(denied.contains("permission denied"), "{denied}");
}

/// A token that the server has forgotten, as after its start, is replaced.
#[test]
fn a_pass_that_has_run_out_is_fetched_anew() {
    let Some(role) = actor::role() else {
        if server::is_installed() {
            let scratch = Scratch::new();
            let server = Server::single(scratch.path(), &["--auth-token-ttl=1".to_owned()], "http");
            for arguments in [
                &["user", "add", "root:all mighty"][..],
                &["user", "grant-role", "root", "root"],
                &["auth", "enable"],
            ] {
                let output = server.etcdctl(arguments);
                assert!(output.status.success(), "{output:?}");
            }
            let place = format!("etcd://{}?ttl=20", server.endpoint());
            let login =
                [("GROUPLOCK_ETCD_USER", "root"), ("GROUPLOCK_ETCD_PASSWORD", "all mighty")];
            let test = "access::a_pass_that_has_run_out_is_fetched_anew";
            let actor = actor::start_as(test, &[&place], &login);
            assert_eq!(actor.hear().as_deref(), Some("well"));
        }
        return;
    };
    let room = open(&role[0]).expect("it opens");
    for pause in [0, 2500, 0] {
        std::thread::sleep(Duration::from_millis(pause));
        room.enter("s").expect("the pass is renewed").leave().expect("it can be left");
    }
    actor::say("well");
}
