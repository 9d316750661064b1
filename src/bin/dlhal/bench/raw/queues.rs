//! Which queues the raw loop uses.

use ash::vk;

/// A queue's place: its family, and its number among the family's.
pub(super) type Place = (u32, u32);

/// The queues to create.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Queues {
    /// Does everything but what overlaps with it.
    pub(super) main: Place,
    /// Runs kernels beside the first.
    pub(super) second: Option<Place>,
    /// Copies beside the first: an engine of its own where there is one.
    pub(super) copy: Option<Place>,
}

/// Chooses among a device's families; `None` if it cannot compute.
pub(super) fn choose(families: &[vk::QueueFamilyProperties]) -> Option<Queues> {
    let with = |wanted: vk::QueueFlags, avoided: vk::QueueFlags, but: Option<u32>| {
        let suits = |family: &vk::QueueFamilyProperties| {
            family.queue_flags.contains(wanted) && !family.queue_flags.intersects(avoided)
        };
        (0u32..)
            .zip(families)
            .find(|(index, family)| suits(family) && Some(*index) != but)
            .map(|(index, _)| index)
    };
    let (compute, graphics) = (vk::QueueFlags::COMPUTE, vk::QueueFlags::GRAPHICS);
    let main = with(compute, vk::QueueFlags::empty(), None)?;
    let second = if families[main as usize].queue_count > 1 {
        Some((main, 1))
    } else {
        with(compute, vk::QueueFlags::empty(), Some(main)).map(|family| (family, 0))
    };
    let engine = with(vk::QueueFlags::TRANSFER, compute | graphics, None);
    Some(Queues { main: (main, 0), second, copy: engine.map(|family| (family, 0)).or(second) })
}

impl Queues {
    /// How many queues of each family that is in use.
    pub(super) fn by_family(&self) -> Vec<(u32, u32)> {
        let mut families: Vec<(u32, u32)> = Vec::new();
        for (family, index) in [Some(self.main), self.second, self.copy].into_iter().flatten() {
            match families.iter_mut().find(|(known, _)| *known == family) {
                Some((_, count)) => *count = (*count).max(index + 1),
                None => families.push((family, index + 1)),
            }
        }
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(flags: vk::QueueFlags, count: u32) -> vk::QueueFamilyProperties {
        vk::QueueFamilyProperties { queue_flags: flags, queue_count: count, ..Default::default() }
    }

    const ALL: vk::QueueFlags = vk::QueueFlags::from_raw(
        vk::QueueFlags::GRAPHICS.as_raw()
            | vk::QueueFlags::COMPUTE.as_raw()
            | vk::QueueFlags::TRANSFER.as_raw(),
    );

    #[test]
    fn a_card_with_copy_engines_copies_on_one() {
        let families = [family(ALL, 16), family(vk::QueueFlags::TRANSFER, 2)];
        let queues = choose(&families).unwrap();
        let expected = Queues { main: (0, 0), second: Some((0, 1)), copy: Some((1, 0)) };
        assert_eq!(queues, expected);
        assert_eq!(queues.by_family(), [(0, 2), (1, 1)]);
    }

    #[test]
    fn a_device_with_one_queue_has_no_second() {
        let queues = choose(&[family(ALL, 1)]).unwrap();
        assert_eq!(queues, Queues { main: (0, 0), second: None, copy: None });
        assert_eq!(queues.by_family(), [(0, 1)]);
    }

    #[test]
    fn a_second_family_serves_where_the_first_has_one_queue() {
        let queues = choose(&[family(ALL, 1), family(vk::QueueFlags::COMPUTE, 4)]).unwrap();
        assert_eq!((queues.second, queues.copy), (Some((1, 0)), Some((1, 0))));
    }
}
