//! `grouplock-lab list`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use grouplock_algorithms::claims::{Claim, Kind};
use grouplock_lab::{Property, Subject, registry};
use serde_json::json;

use crate::say;

/// The form of the output.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let subjects = registry::all();
    let kind = |subject: &Subject| match subject.claims.kind {
        Kind::Mutual => "mutual",
        Kind::Group => "group",
    };
    let text = if arguments.json {
        let rows = subjects.iter().map(|subject| {
            let claim = |property: Property| property.claim(&subject.claims).to_string();
            let claims = Property::CLAIMABLE.map(|property| (property.name(), claim(property)));
            json!({
                "algorithm": subject.name,
                "kind": kind(subject),
                "source": subject.claims.source,
                "claims": BTreeMap::from(claims),
                "rmr_cc": subject.claims.rmr_cc.to_string(),
                "rmr_dsm": subject.claims.rmr_dsm.to_string(),
            })
        });
        format!("{:#}\n", serde_json::Value::Array(rows.collect()))
    } else {
        let line = |subject: &Subject| {
            let claims = &subject.claims;
            let claimed = Property::CLAIMABLE.into_iter().filter_map(|property| {
                match property.claim(claims) {
                    Claim::Yes => Some(property.name().to_owned()),
                    Claim::Refuted(_) => Some(format!("{} (refuted)", property.name())),
                    Claim::No | Claim::NotApplicable => None,
                }
            });
            let claimed: Vec<String> = claimed.collect();
            let (name, kind, source) = (subject.name, kind(subject), claims.source);
            let (cc, dsm) = (claims.rmr_cc, claims.rmr_dsm);
            let claimed = claimed.join(", ");
            format!(
                "{name}  ({kind}; {source})\n    claims {claimed}; remote references {cc} CC, {dsm} DSM\n"
            )
        };
        subjects.iter().map(line).collect()
    };
    say(&text);
    ExitCode::SUCCESS
}
