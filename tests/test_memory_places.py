"""Places that are tried in many orders get the offsets that the structure for one order gives."""

from __future__ import annotations

import random

import pytest

from hlotext.memory.free_space import FreeSpace
from hlotext.memory.heap import Interval, Simulation, place_by_size, place_repaired
from hlotext.memory.slots import Slots
from hlotext.memory.values import Value


def one_by_one(
    times: list[list[tuple[int, int]]], sizes: list[int], taken: list[int], order: list[int], limit: int
) -> tuple[int, dict[int, int]] | int:
    """The same by `FreeSpace`."""
    occupancy = FreeSpace(1 + max(last for each in times for _, last in each))
    offsets: dict[int, int] = {}
    heap = 0
    for number in order:
        offset = occupancy.best_fit(times[number], sizes[number])
        heap = max(heap, offset + sizes[number])
        if heap >= limit:
            return number
        offsets[number] = offset
        for first, last in times[number]:
            occupancy.reserve(first, last, offset, offset + taken[number])
    return heap, offsets


@pytest.mark.parametrize("seed", range(40))
def test_both_structures_give_the_same_places(seed: int) -> None:
    """Of few and many places, of equal and of different sizes, of short and long lives, some of several, in any order and
    below any limit."""
    chance = random.Random(seed)
    moments, alignment = chance.choice((20, 300, 5_000)), chance.choice((1, 16))
    longest = chance.choice((moments, 10))
    times: list[list[tuple[int, int]]] = []
    for _ in range(chance.choice((1, 2, 30, 150))):
        firsts = [chance.randrange(moments) for _ in range(chance.choice((1, 1, 1, 3)))]
        times.append([(first, first + chance.randrange(longest)) for first in firsts])
    sizes = [chance.choice((1, 8, 16, 100, chance.randrange(1, 2_000))) for _ in times]
    taken = [-(-size // alignment) * alignment for size in sizes]
    known = Slots(times, sizes, taken)
    order = list(range(len(times)))
    for limit in (1 << 40, sum(sizes) // 2, 200):
        chance.shuffle(order)
        assert known.place(order, limit) == one_by_one(times, sizes, taken, order, limit)


@pytest.mark.parametrize(("begin", "used"), [(3, 16), (4, 8)])
def test_a_place_that_is_free_for_a_tick_is_used(begin: int, used: int) -> None:
    """Two values share a place from tick 0 to 2 and from `begin`; a third lives at tick 3 alone."""

    def interval(name: str, start: int, stop: int) -> Interval:
        found = Interval(Value(None, name, (), None), 8, start)
        found.stop = stop
        return found

    first, between = interval("first", 0, 2), interval("between", 3, 3)
    first.members.append(interval("second", begin, 5))
    assert place_by_size(Simulation([], [first, between], [], 6), 1).bytes == used


@pytest.mark.parametrize("seed", range(8))
def test_no_order_is_placed_twice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What did not fit in the order by size is known from its result when it is tried again."""
    chance = random.Random(seed)
    intervals = []
    for number in range(60):
        first, last = sorted(chance.sample(range(200), 2))
        found = Interval(Value(None, f"v{number}", (), None), chance.randrange(1, 500), first)
        found.value.number, found.stop = number, last
        intervals.append(found)
    orders: list[tuple[int, ...]] = []
    place = Slots.place

    def recorded(self: Slots, order: list[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        orders.append(tuple(order))
        return place(self, order, limit)

    monkeypatch.setattr(Slots, "place", recorded)
    simulation = Simulation([], intervals, [], 200)
    repaired = place_repaired(simulation, 1).bytes
    assert len(orders) > 2
    assert orders.count(orders[0]) == 1
    assert repaired <= place_by_size(simulation, 1).bytes
