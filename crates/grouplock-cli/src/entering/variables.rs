//! The environment variables of a command or script that is inside a room.

use grouplock_room::Recovered;

use super::RoomRequest;

/// The default of `--at`.
pub(crate) const AT: &str = "GROUPLOCK_AT";

/// The variables of one holding. A variable without a value must be removed from the environment.
pub(crate) fn variables(
    request: &RoomRequest,
    epoch: u64,
    holder: &str,
    recovered: Option<Recovered>,
) -> Vec<(&'static str, Option<String>)> {
    let (mut died, mut session, mut command) = (None, None, None);
    if let Some(recovered) = recovered {
        died = Some(recovered.epoch.to_string());
        (session, command) = (Some(recovered.session), Some(recovered.command));
    }
    vec![
        ("GROUPLOCK_ROOM", Some(request.room.clone())),
        ("GROUPLOCK_SESSION", Some(request.session.clone())),
        ("GROUPLOCK_EPOCH", Some(epoch.to_string())),
        ("GROUPLOCK_HOLDER", Some(holder.to_owned())),
        ("GROUPLOCK_RECOVERED", died),
        ("GROUPLOCK_RECOVERED_SESSION", session),
        ("GROUPLOCK_RECOVERED_COMMAND", command),
    ]
}
