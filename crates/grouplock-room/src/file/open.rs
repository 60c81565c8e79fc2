//! Opening, creating and removing.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Directory;
use super::clock;
use super::directory::{Opened, Site};
use super::fork::Birth;
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

/// How often a room may be removed under our hands before we give up.
const ATTEMPTS: u32 = 200;

/// Opens a room, and makes it if it is not there and may be made.
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
                expected: format!("1 to {MAX_CAPACITY} are possible"),
            });
        }
    };
    let no_such_room =
        || RoomError::NoSuchRoom { name: name.to_string(), place: directory.display().to_string() };
    if options.existing && !directory.exists() {
        return Err(no_such_room());
    }
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let site = Site::open(directory, name, (!options.existing).then_some(options.access))?;
        let opened = match site.file(options.look_only) {
            // A shell has emptied it, or has made it when it opened a room that was just removed.
            Err(foreign @ RoomError::Foreign { .. }) if !options.look_only => {
                let file = site.any_file(false)?;
                let is_empty = |file: &File| file.metadata().is_ok_and(|facts| facts.len() == 0);
                let Some(file) = file.filter(is_empty) else { return Err(foreign) };
                // Whoever is inside has still locked it. Others may be removing it too.
                if remove_unreadable(&site, file).is_err() {
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
            site.create(Fixed { capacity, policy, created: clock::exact() }, options.access)?;
            continue;
        };
        if let Some(asked) = options.policy
            && asked != opened.fixed.policy
        {
            return Err(RoomError::PolicyMismatch { has: opened.fixed.policy, asked });
        }
        let room = prepare(&site, opened, name, options)?;
        match room
            .as_long_as_it_says()
            .and_then(|()| room.still_there())
            .and_then(|()| room.verdict())
        {
            Ok(()) => return Ok(Room::from_backend(Arc::new(Directory(Arc::new(room))))),
            // Somebody is removing it, or died while doing so.
            Err(error @ RoomError::Removed { .. }) if !options.look_only => {
                finish_removal(&site, &room)?;
                last = Some(error);
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(no_such_room))
}

fn prepare(
    site: &Site,
    opened: Opened,
    name: &RoomName,
    options: &RoomOptions,
) -> Result<FileRoom, RoomError> {
    let Opened { file, watch, fixed } = opened;
    let map = Mapping::new(&file, layout::size(fixed.capacity), options.look_only)
        .map_err(|e| site.io("map", e))?;
    let command = options.command.clone().unwrap_or_else(myself::command_line);
    Ok(FileRoom {
        map,
        life: Life::new(file, watch),
        fixed,
        name: name.clone(),
        path: site.path.clone(),
        birth: Birth::now().map_err(|error| site.io("prepare", error))?,
        look_only: options.look_only,
        command: myself::cut(command, COMMAND_MAX),
        host: myself::cut(myself::host(), HOST_MAX),
        slots: AtomicU16::new(fixed.capacity.min(FIRST_SLOTS)),
        cut_off: AtomicBool::new(false),
        leases: Mutex::new(Vec::new()),
        watchmen: Watchmen::default(),
    })
}

impl FileRoom {
    /// An error if the header says that there are more slots than the file has.
    fn as_long_as_it_says(&self) -> Result<(), RoomError> {
        let said = self.map.half(header::SLOTS).get();
        if u32::from(self.slots()) == said {
            return Ok(());
        }
        let length = self.life.file.metadata().map_or(0, |facts| facts.len());
        Err(self.corrupt(&format!("it has {length} bytes, too few for its {said} slots")))
    }
}

/// Removes a room that nobody uses.
pub(crate) fn remove(directory: &Path, name: &RoomName) -> Result<(), RoomError> {
    let no_such_room =
        || RoomError::NoSuchRoom { name: name.to_string(), place: directory.display().to_string() };
    if !directory.exists() {
        return Err(no_such_room());
    }
    let site = Site::open(directory, name, None)?;
    let opened = match site.file(false) {
        Ok(opened) => opened.ok_or_else(no_such_room)?,
        Err(corrupt @ RoomError::Corrupt { .. }) => {
            return match site.any_file(false)? {
                Some(file) => remove_unreadable(&site, file),
                None => Err(corrupt),
            };
        }
        Err(error) => return Err(error),
    };
    let room = prepare(&site, opened, name, &RoomOptions::new())?;
    match room.verdict() {
        Err(RoomError::Corrupt { .. }) => {
            if room.life.others().map_err(|error| site.io("probe", error))? {
                return Err(in_use(&site, "processes that have not noticed".to_owned()));
            }
        }
        Err(RoomError::Removed { .. }) => {}
        Err(error) => return Err(error),
        Ok(()) => retire(&site, &room)?,
    }
    finish_removal(&site, &room)
}

/// Closes a room for good, if nobody is inside or waits.
fn retire(site: &Site, room: &FileRoom) -> Result<(), RoomError> {
    let lease = room.lease(&Request::new(""))?;
    let retired = room.latch(lease.slot).and_then(|mut latched| {
        for slot in latched.present() {
            if !latched.alive(slot)? {
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
            return Err(in_use(site, users.join(", ")));
        }
        room.close(verdict::REMOVED);
        Ok(())
    });
    room.give_back(lease);
    retired
}

/// Takes the name away from a room that is closed for good. Under a lock on the old file, so that of two who do it none
/// hits the file that came after it.
fn finish_removal(site: &Site, room: &FileRoom) -> Result<(), RoomError> {
    room.reclaiming(|| site.unlink(&room.life.file))?
}

/// The same for a file whose header cannot be read any more.
fn remove_unreadable(site: &Site, file: File) -> Result<(), RoomError> {
    let watch = file.try_clone().map_err(|error| site.io("open", error))?;
    let life = Life::new(file, watch);
    let probe = |error| site.io("probe", error);
    if life.others().map_err(probe)? {
        return Err(in_use(site, "processes that have not noticed".to_owned()));
    }
    let removed = life.try_reclaiming(|| site.unlink(&life.file)).map_err(probe)?;
    removed.unwrap_or_else(|| Err(in_use(site, "a process that opens it".to_owned())))
}

fn in_use(site: &Site, users: String) -> RoomError {
    RoomError::InUse { path: site.path.clone(), users }
}
