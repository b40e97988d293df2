from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.workers.parent_side import Worker
from leader_hints.net.workers.worker_links import WorkerLinks, next_worker


def _workers(count: int) -> list[Worker]:
    return [Worker(number, lambda message, sock: None) for number in range(1, count + 1)]


async def test_a_link_is_counted_from_its_client_to_its_end() -> None:
    route = Route("r", Mode.ON)
    links = WorkerLinks({"r": route}, 2)
    (worker, other), traffic = _workers(2), route.traffic
    number, refused = links.begin(route, worker), links.begin(route, other)
    assert (traffic.connecting, traffic.links_open, worker.links) == (2, 0, 1)
    links.began(number)
    links.ended(refused)
    assert (traffic.connecting, traffic.links_open, worker.links, other.links) == (0, 1, 1, 0)
    links.ended(number)
    links.ended(number)
    links.began(number)
    assert (traffic.connecting, traffic.links_open, worker.links) == (0, 0, 0)


async def test_the_number_of_a_link_says_which_worker_has_it() -> None:
    route = Route("r", Mode.ON)
    links = WorkerLinks({"r": route}, 3)
    workers = _workers(3)
    numbers = {links.begin(route, worker): worker.number for worker in workers * 20}
    assert len(numbers) == 60
    assert {number: links.worker_of(number) for number in numbers} == numbers


async def test_the_links_of_a_worker_that_dies_are_known() -> None:
    route = Route("r", Mode.ON)
    links = WorkerLinks({"r": route}, 2)
    worker, other = _workers(2)
    mine = {links.begin(route, worker) for _ in range(4)}
    links.begin(route, other)
    links.began(min(mine))
    assert {*links.of(worker)} == mine


async def test_links_spread_evenly_whatever_ends_first() -> None:
    route = Route("r", Mode.ON)
    links = WorkerLinks({"r": route}, 3)
    workers = _workers(3)
    for turn in range(1000):
        worker = next_worker(workers)
        assert worker is not None
        number = links.begin(route, worker)
        if turn % 7 == 0:
            links.ended(number)
    counts = [worker.links for worker in workers]
    assert max(counts) - min(counts) <= 1
    assert next_worker(workers[:0]) is None
