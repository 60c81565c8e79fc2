//! A member's file of settings.

use std::path::Path;
use std::time::Duration;

use grouplock_quorum::node::{Config, ConfigError, Security};
use grouplock_quorum::{Admission, MemberId, Precedence};

const GOOD: &str = r#"
id = 1
data = "data"
status = "127.0.0.1:7201"

[cluster]
name = "example"
members = [
  { address = "127.0.0.1:7100" },
  { address = "127.0.0.1:7101", name = "one" },
  { address = "[::1]:7102" },
]
coterie = "plane"
policy = "priority:10s"
lease = "4s"

[tls]
plaintext = true
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/etc/grouplock/node.toml"))
}

#[test]
fn a_good_one_says_what_it_means() {
    let config = parse(GOOD).unwrap();
    assert_eq!(config.id, MemberId(1));
    assert_eq!(config.listen, "127.0.0.1:7101".parse().unwrap());
    assert_eq!(config.data, Path::new("/etc/grouplock/data"));
    assert_eq!(config.security, Security::Plain);
    let names = config.cluster.members.iter().map(|peer| peer.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["127.0.0.1", "one", "::1"]);
    let settings = config.cluster.settings;
    assert_eq!(settings.lease, Some(Duration::from_secs(4)));
    assert_eq!(settings.precedence, Precedence::Aged { weight: Duration::from_secs(10) });
}

#[test]
fn the_rule_of_admission_is_a_choice_of_its_own() {
    for (policy, admission, means) in [
        ("priority:10s", None, Admission::InOrder),
        ("priority:10s", Some("together"), Admission::Together),
        ("fifo", Some("in-order"), Admission::InOrder),
        ("static", None, Admission::Together),
        ("static", Some("in-order"), Admission::InOrder),
    ] {
        let line = admission.map_or_else(String::new, |it| format!("\nadmission = \"{it}\""));
        let policy = format!("policy = \"{policy}\"{line}");
        let config = parse(&GOOD.replace("policy = \"priority:10s\"", &policy)).unwrap();
        assert_eq!(config.cluster.settings.admission, means, "{policy}");
    }
}

#[test]
fn a_mistake_is_named_with_key_value_and_what_was_expected() {
    let fifo = "\"fifo\"\nadmission = \"together\"";
    let soon = "\"fifo\"\nadmission = \"soon\"";
    for (old, new, key, value, expected) in [
        ("\"priority:10s\"", fifo, "cluster.admission", "`together` with `fifo`", "`in-order`"),
        ("\"priority:10s\"", soon, "cluster.admission", "`soon`", "`together`"),
        ("id = 1", "id = 3", "id", "3", "0 to 2"),
        ("\"plane\"", "\"planet\"", "cluster.coterie", "`planet`", "`majority`"),
        ("\"plane\"", "\"grid\"", "cluster.coterie", "`grid` with 3", "3, 7, 13"),
        ("lease = \"4s\"", "lease = \"3s\"", "cluster.lease", "3000 ms", "four times"),
        ("lease = \"4s\"", "lease = \"4\"", "cluster.lease", "`4`", "`500ms`"),
        ("priority:10s", "batch:3", "cluster.policy", "`batch:3`", "`static`"),
        ("127.0.0.1:7100", "10.0.0.1:7100", "members[0].address", "10.0.0.1", "loopback"),
        ("127.0.0.1:7100", "127.0.0.1:7101", "members[1].address", "7101", "once"),
        ("127.0.0.1:7100", "127.0.0.1", "members[0].address", "`127.0.0.1`", "host:port"),
        ("127.0.0.1:7201", "0.0.0.0:7201", "status", "0.0.0.0", "status_public"),
        ("127.0.0.1:7201", "here", "status", "`here`", "an address"),
        ("data =", "listen = \"0.0.0.0:7101\"\ndata =", "listen", "0.0.0.0", "loopback"),
        ("plaintext = true", "cert = \"c\"\nkey = \"k\"", "tls.ca", "missing", "plaintext"),
        ("plaintext = true", "plaintext = true\nca = \"c\"", "tls.plaintext", "true", "no cert"),
        ("name = \"example\"", "name = \"\"", "cluster.name", "``", "1 to 64"),
        ("name = \"one\"", "name = \"o n e\"", "members[1].name", "`o n e`", "certificates"),
    ] {
        let text = GOOD.replacen(old, new, 1);
        assert_ne!(text, GOOD, "{old}");
        let message = parse(&text).unwrap_err().to_string();
        for part in ["/etc/grouplock/node.toml", key, value, expected] {
            assert!(message.contains(part), "{part} is missing in: {message}");
        }
    }
}

#[test]
fn an_unknown_or_missing_key_is_named_with_its_line() {
    for (old, new, part) in [
        ("lease =", "leese =", "leese"),
        ("coterie = \"plane\"", "", "coterie"),
        ("id = 1", "id = \"one\"", "invalid type"),
        ("id = 1", "id = 70000", "70000"),
        ("[tls]", "[tls", "tls"),
    ] {
        let message = parse(&GOOD.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("line"), "{message}");
    }
    let missing = Config::read(Path::new("/nonexistent/node.toml")).unwrap_err().to_string();
    assert!(missing.contains("`/nonexistent/node.toml`"), "{missing}");
}
