//! The registers and objects of a lock with its processes. They are the same for every run.

use grouplock_algorithms::memory::{Home, Word};

use crate::memory::context::{Blueprint, BlueprintRegister};
use crate::value::{MOST_CLASSES, MOST_OBJECTS, Val};

#[derive(Clone, Debug)]
pub struct ObjectInfo {
    /// Objects of one kind are interchangeable.
    pub class: usize,
    pub registers: Vec<usize>,
    pub name: String,
}

#[derive(Clone, Debug)]
pub struct Layout {
    pub registers: Vec<BlueprintRegister<Val>>,
    pub objects: Vec<ObjectInfo>,
    /// The objects of each kind.
    pub classes: Vec<Vec<usize>>,
    /// The registers that lie in no object.
    pub globals: Vec<usize>,
}

impl Layout {
    /// # Panics
    /// If there are more than an exploration can number.
    pub(crate) fn of(blueprint: &Blueprint) -> Self {
        assert!(
            blueprint.objects.len() <= MOST_OBJECTS,
            "too many objects: explore fewer processes"
        );
        let packed = |register: &BlueprintRegister| {
            let BlueprintRegister { site, initial, object, forgotten } = *register;
            BlueprintRegister { site, initial: pack(initial, blueprint), object, forgotten }
        };
        let registers: Vec<_> = blueprint.registers.iter().map(packed).collect();
        let globals = (0..registers.len()).filter(|&id| registers[id].object.is_none()).collect();
        let mut shapes: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut classes: Vec<Vec<usize>> = Vec::new();
        let mut objects: Vec<ObjectInfo> = Vec::new();
        for object in &blueprint.objects {
            let fields = object.registers.clone();
            let shape =
                (object.type_name, fields.iter().map(|&r| registers[r].site.name).collect());
            let class = shapes.iter().position(|known| *known == shape).unwrap_or_else(|| {
                shapes.push(shape);
                classes.push(Vec::new());
                shapes.len() - 1
            });
            classes[class].push(objects.len());
            let name = object_name(object.type_name, &fields, &registers, &objects);
            objects.push(ObjectInfo { class, registers: fields, name });
        }
        assert!(classes.len() <= MOST_CLASSES, "too many kinds of objects");
        Layout { registers, objects, classes, globals }
    }

    /// The same register after its object was renamed.
    pub(crate) fn renamed(&self, register: usize, object: impl Fn(usize) -> usize) -> usize {
        match self.registers[register].object {
            Some((o, field)) => self.objects[object(o)].registers[field],
            None => register,
        }
    }

    pub(crate) fn register_name(&self, register: usize) -> String {
        let info = &self.registers[register];
        match (info.object, info.site.index) {
            (Some((object, _)), _) => format!("{}.{}", self.objects[object].name, info.site.name),
            (None, Some(index)) => format!("{}[{index}]", info.site.name),
            (None, None) => info.site.name.to_owned(),
        }
    }

    pub(crate) fn value_name(&self, value: Val) -> String {
        match value.as_object() {
            Some(object) => self.objects[object].name.clone(),
            None => format!("{value:?}"),
        }
    }
}

/// The last part of the type's name, its first owner, and a letter if there are several.
fn object_name(
    type_name: &str,
    fields: &[usize],
    registers: &[BlueprintRegister<Val>],
    before: &[ObjectInfo],
) -> String {
    let path = type_name.split('<').next().unwrap_or(type_name);
    let kind = path.rsplit("::").next().unwrap_or(path);
    let home = fields.iter().find_map(|&r| match registers[r].site.home {
        Home::Process(p) => Some(format!("{kind}{p}")),
        Home::Shared => None,
    });
    let stem = home.unwrap_or_else(|| kind.to_owned());
    ('a'..='z')
        .map(|letter| format!("{stem}{letter}"))
        .find(|name| before.iter().all(|object| object.name != *name))
        .unwrap_or(stem)
}

/// A word of a run as a value. A pointer becomes the number of an object.
///
/// # Panics
/// If it is a pointer that `Memory::allocate` did not give, or too large a number.
pub(crate) fn pack(word: Word, blueprint: &Blueprint) -> Val {
    try_pack(word, blueprint).unwrap_or_else(|why| panic!("{why}"))
}

/// The same, or why there is no such value.
pub(crate) fn try_pack(word: Word, blueprint: &Blueprint) -> Result<Val, String> {
    match word {
        Word::Number(number) => Val::number(number),
        Word::Pointer(place) if place.addr() <= 2 => Ok(Val::mark(place.addr())),
        Word::Pointer(place) => object_at(place.addr(), blueprint)
            .map(Val::object)
            .ok_or_else(|| format!("{place:?} is no object of this lock")),
    }
}

pub(crate) fn object_at(address: usize, blueprint: &Blueprint) -> Option<usize> {
    blueprint.objects.iter().position(|object| object.place.addr() == address)
}

/// A value as a word of a run; the value says whether it is a number or a pointer.
pub(crate) fn unpack(value: Val, blueprint: &Blueprint) -> Word {
    match (value.as_mark(), value.as_object(), value.as_number()) {
        (Some(mark), ..) => Word::Pointer(std::ptr::without_provenance(mark)),
        (_, Some(object), _) => Word::Pointer(blueprint.objects[object].place),
        (_, _, Some(number)) => Word::Number(number),
        _ => unreachable!("undefined contents are never handed to a process"),
    }
}
