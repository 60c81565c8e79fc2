//! Opening, creating and removing.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock;
use super::directory::{DirectoryEntry, Opened};
use super::fork::Birth;
use super::latch_word::LatchWord as _;
use super::layout::{
    self, COMMAND_MAX, DEFAULT_CAPACITY, FIRST_SLOTS, Fixed, HOST_MAX, MAX_CAPACITY, header,
    verdict,
};
use super::life::Life;
use super::mapping::Mapping;
use super::room::FileRoom;
use super::watchman::Watchmen;
use crate::error::RoomError;
use crate::myself;
use crate::name::RoomName;
use crate::request::Request;
use crate::room::{Room, RoomOptions};

/// The number of attempts if other processes keep removing the room.
const ATTEMPTS: u32 = 200;

/// Opens a room. Creates it if it does not exist and the options allow it.
pub(crate) fn open(
    directory: &Path,
    name: &RoomName,
    options: &RoomOptions,
) -> Result<Room, RoomError> {
    let capacity = match options.capacity.map_or(DEFAULT_CAPACITY, u16::from) {
        capacity @ 1..=MAX_CAPACITY => capacity,
        capacity => {
            return Err(RoomError::BadOption {
                what: "the capacity of a room",
                value: capacity.to_string(),
                expected: format!("expected 1 to {MAX_CAPACITY}"),
            });
        }
    };
    let no_such_room = || no_such_room(directory, name);
    if options.existing && !directory.exists() {
        return Err(no_such_room());
    }
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let entry =
            DirectoryEntry::open(directory, name, (!options.existing).then_some(options.access))?;
        let opened = match entry.file(options.look_only) {
            // A shell has truncated the file, or created it when it opened a room that was just
            // removed.
            Err(foreign @ RoomError::Foreign { .. }) if !options.look_only => {
                let file = entry.any_file(false)?;
                let is_empty = |file: &File| file.metadata().is_ok_and(|facts| facts.len() == 0);
                let Some(file) = file.filter(is_empty) else { return Err(foreign) };
                // Holders still have it locked, or another process also removes it.
                if remove_unreadable(&entry, file).is_err() {
                    last = Some(foreign);
                    std::thread::sleep(Duration::from_millis(1));
                }
                continue;
            }
            opened => opened?,
        };
        let Some(opened) = opened else {
            if options.existing {
                return Err(no_such_room());
            }
            let policy = options.policy.unwrap_or_default();
            entry.create(Fixed { capacity, policy, created: clock::exact() }, options.access)?;
            continue;
        };
        if let Some(asked) = options.policy
            && asked != opened.fixed.policy
        {
            return Err(RoomError::PolicyMismatch { has: opened.fixed.policy, asked });
        }
        let room = prepare(&entry, opened, name, options)?;
        match room.check_length().and_then(|()| room.still_there()).and_then(|()| room.verdict()) {
            Ok(()) => return Ok(Room::from_backend(Arc::new(Arc::new(room)))),
            // Another process is removing it, or died while it did.
            Err(error @ RoomError::Removed { .. }) if !options.look_only => {
                finish_removal(&entry, &room)?;
                last = Some(error);
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(no_such_room))
}

fn prepare(
    entry: &DirectoryEntry,
    opened: Opened,
    name: &RoomName,
    options: &RoomOptions,
) -> Result<FileRoom, RoomError> {
    let Opened { file, watch, fixed } = opened;
    let map = Mapping::new(&file, layout::size(fixed.capacity), options.look_only)
        .map_err(|e| entry.io("map", e))?;
    let command = options.command.clone().unwrap_or_else(myself::command_line);
    Ok(FileRoom {
        map,
        life: Life::new(file, watch),
        fixed,
        name: name.clone(),
        path: entry.path.clone(),
        birth: Birth::now().map_err(|error| entry.io("prepare", error))?,
        look_only: options.look_only,
        command: myself::cut(command, COMMAND_MAX),
        host: myself::cut(myself::host(), HOST_MAX),
        slots: AtomicU16::new(fixed.capacity.min(FIRST_SLOTS)),
        cut_off: AtomicBool::new(false),
        idle_slots: Mutex::new(Vec::new()),
        watchmen: Watchmen::default(),
    })
}

impl FileRoom {
    /// An error if the header claims more slots than the file has.
    fn check_length(&self) -> Result<(), RoomError> {
        let said = self.map.half(header::SLOTS).get();
        if u32::from(self.slots()) == said {
            return Ok(());
        }
        let length = self.life.file.metadata().map_or(0, |facts| facts.len());
        Err(self.corrupt(&format!("it has {length} bytes, too few for its {said} slots")))
    }
}

/// Removes a room that has no participants.
pub(crate) fn remove(directory: &Path, name: &RoomName) -> Result<(), RoomError> {
    let no_such_room = || no_such_room(directory, name);
    if !directory.exists() {
        return Err(no_such_room());
    }
    let entry = DirectoryEntry::open(directory, name, None)?;
    let opened = match entry.file(false) {
        Ok(opened) => opened.ok_or_else(no_such_room)?,
        Err(corrupt @ RoomError::Corrupt { .. }) => {
            return match entry.any_file(false)? {
                Some(file) => remove_unreadable(&entry, file),
                None => Err(corrupt),
            };
        }
        Err(error) => return Err(error),
    };
    let room = prepare(&entry, opened, name, &RoomOptions::new())?;
    match room.verdict() {
        Err(RoomError::Corrupt { .. }) => {
            if room.life.others().map_err(|error| entry.io("probe", error))? {
                return Err(in_use(
                    &entry,
                    "processes that have not noticed the damage".to_owned(),
                ));
            }
        }
        Err(RoomError::Removed { .. }) => {}
        Err(error) => return Err(error),
        Ok(()) => retire(&entry, &room)?,
    }
    finish_removal(&entry, &room)
}

/// Closes a room forever, if it has no participants.
fn retire(entry: &DirectoryEntry, room: &FileRoom) -> Result<(), RoomError> {
    let owned = room.take_slot(&Request::new(""))?;
    let retired = room.latch(owned.number).and_then(|mut latched| {
        for slot in latched.present() {
            if !room.is_alive(slot)? {
                latched.bury(slot)?;
            }
        }
        let present = latched.present();
        if !present.is_empty() {
            let user = |slot: u16| {
                let slot = room.slot(slot);
                let session = room.session_text(slot.session()).unwrap_or_default();
                format!("process {} (session `{session}`)", slot.pid().get())
            };
            let users: Vec<_> = present.into_iter().map(user).collect();
            return Err(in_use(entry, users.join(", ")));
        }
        room.close(verdict::REMOVED);
        Ok(())
    });
    room.return_slot(owned);
    retired
}

/// Removes the name of a closed room. It holds a lock on the old file, so that two processes cannot
/// remove the new file that follows it.
fn finish_removal(entry: &DirectoryEntry, room: &FileRoom) -> Result<(), RoomError> {
    room.reclaiming(|| entry.unlink(&room.life.file))?
}

/// Removes a file whose header cannot be read.
fn remove_unreadable(entry: &DirectoryEntry, file: File) -> Result<(), RoomError> {
    let watch = file.try_clone().map_err(|error| entry.io("open", error))?;
    let life = Life::new(file, watch);
    let probe = |error| entry.io("probe", error);
    if life.others().map_err(probe)? {
        return Err(in_use(entry, "processes that have not noticed the damage".to_owned()));
    }
    let removed = life.try_reclaiming(|| entry.unlink(&life.file)).map_err(probe)?;
    removed.unwrap_or_else(|| Err(in_use(entry, "a process that is opening it".to_owned())))
}

fn no_such_room(directory: &Path, name: &RoomName) -> RoomError {
    RoomError::NoSuchRoom { name: name.to_string(), place: directory.display().to_string() }
}

fn in_use(entry: &DirectoryEntry, users: String) -> RoomError {
    RoomError::InUse { path: entry.path.clone(), users }
}
