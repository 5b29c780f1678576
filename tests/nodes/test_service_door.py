"""The door itself, around a holder that only counts: one request at a time, limits, late answers, a clean end."""

import threading
import time

import pyarrow.flight as flight
import pytest

from coordinator.credentials import load_credentials
from coordinator.remote import FlightHolders
from federated_anon.crypto.certificates import OwnFiles
from federated_anon.crypto.trial_authority import write_trial
from federated_anon.errors import HolderLate, MessageRefused
from federated_anon.messages import VERSION
from federated_anon.messages.framing import announced_length, announcement, pieces
from federated_anon.messages.hello import Hello
from nodes import service as door
from nodes.limits import RateLimit, Tally
from nodes.service import HolderService
from nodes.service_settings import ServiceSettings

LARGEST = 2**20


class SlowHolder:
    """Answers after a while, with what it was asked; remembers how many requests were ever in it at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.inside, self.most = seconds, 0, 0
        self.threads: set[int] = set()

    def answer(self, request: bytes) -> bytes:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        self.inside -= 1
        return request

    def refuse(self, error: MessageRefused) -> bytes:
        return f"refused {error.code}".encode()


@pytest.fixture
def certs(tmp_path):
    write_trial(tmp_path / "certs", "coordinator", ["north"], (), 5)
    return tmp_path / "certs"


def opened(certs, holder, per_minute=10_000) -> HolderService:
    own = certs / "north"
    files = OwnFiles(own / "north.crt", own / "north.key", own / "authority.crt")
    settings = ServiceSettings("127.0.0.1:0", files, "coordinator", own / "coordinator.crt", per_minute)
    return HolderService("north", holder, settings, LARGEST)


def link(certs, service) -> FlightHolders:
    return FlightHolders({"north": f"127.0.0.1:{service.port}"}, load_credentials(certs / "coordinator", ["north"]))


def together(certs, service, requests) -> list:
    """Several coordinators at once, each with a connection of its own."""
    replies: list = [None] * len(requests)

    def ask(number: int) -> None:
        try:
            replies[number] = link(certs, service).ask({"north": requests[number]}, 20)["north"]
        except HolderLate as error:
            replies[number] = error

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_requests_at_once_are_answered_one_after_the_other_on_one_thread(certs):
    holder = SlowHolder(0.02)
    with opened(certs, holder) as service:
        requests = [bytes([number]) * 10 for number in range(8)]
        assert together(certs, service, requests) == requests
    assert holder.most == 1
    assert len(holder.threads) == 1


@pytest.mark.parametrize("size", [1, 2**20 - 1, 2**20])
def test_messages_up_to_the_limit_pass_whole(certs, size):
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with opened(certs, SlowHolder()) as service:
        assert link(certs, service).ask({"north": content}, 20) == {"north": content}


def test_one_byte_more_is_refused(certs):
    with opened(certs, SlowHolder()) as service:
        assert link(certs, service).ask({"north": bytes(LARGEST + 1)}, 20) == {"north": b"refused oversized-message"}


def test_a_late_answer_names_the_holder_and_the_service_goes_on(certs):
    holder = SlowHolder(1.0)
    with opened(certs, holder) as service:
        holders = link(certs, service)
        with pytest.raises(HolderLate, match="north"):
            holders.ask({"north": b"x"}, 0.3)
        holder.seconds = 0.0
        assert holders.ask({"north": b"y"}, 10) == {"north": b"y"}


def test_a_caller_beyond_the_rate_is_slowed_not_turned_away(certs):
    with opened(certs, SlowHolder(), per_minute=60) as service:
        holders = link(certs, service)
        service._rate = RateLimit(60)
        for _ in range(60):
            service._rate.delay()
        started = time.monotonic()
        assert holders.ask({"north": b"x"}, 20) == {"north": b"x"}
        assert 1.5 < time.monotonic() - started < 10  # A hello and a request, one second each.


def test_too_many_calls_at_once_are_put_off(certs, monkeypatch):
    monkeypatch.setattr(door, "MOST_CALLS", 1)
    holder = SlowHolder(0.5)
    with opened(certs, holder) as service:
        busy = threading.Thread(target=lambda: link(certs, service).ask({"north": b"x"}, 20))
        busy.start()
        while not holder.inside:
            time.sleep(0.01)
        assert link(certs, service).ask({"north": b"y"}, 20) == {"north": b"y"}
        busy.join()
    assert holder.most == 1


def test_a_service_that_ends_waits_for_the_request_under_way_but_not_for_ever(certs):
    holder = SlowHolder(1.0)
    service = opened(certs, holder)
    replies: dict = {}
    busy = threading.Thread(target=lambda: replies.update(link(certs, service).ask({"north": b"x"}, 5)))
    busy.start()
    while not holder.inside:
        time.sleep(0.01)
    assert not service.close(grace=0.1)
    with pytest.raises(HolderLate):
        link(certs, service).ask({"north": b"y"}, 0.3)
    busy.join()
    assert replies == {"north": b"x"}
    assert service.close(grace=10)


def test_a_fault_in_the_holder_crosses_as_a_code(certs):
    class Broken(SlowHolder):
        def answer(self, request: bytes) -> bytes:
            raise ValueError("Alice Example, born 1970-01-01")

    with opened(certs, Broken()) as service:
        found = link(certs, service)
        client = found._links["north"]
        client.reach(time.monotonic() + 10)
        with pytest.raises(flight.FlightServerError, match="holder-fault") as caught:
            client._exchange(b"x", time.monotonic() + 10)
    assert "Alice" not in str(caught.value)
    assert "Alice" not in str(caught.value.extra_info)


def test_rates_fill_again():
    now = 0.0
    limit = RateLimit(60, lambda: now)
    assert [limit.delay() for _ in range(60)] == [0.0] * 60
    assert limit.delay() == pytest.approx(1.0)
    assert limit.delay() == pytest.approx(2.0)
    now = 3.0
    assert limit.delay() == 0.0
    now = 1000.0
    assert [limit.delay() for _ in range(60)] == [0.0] * 60


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**20 + 1, 3 * 2**20])
def test_pieces_make_the_message_again(size):
    content = bytes(size)
    assert b"".join(pieces(content)) == content
    assert announced_length(announcement(content)) == size


@pytest.mark.parametrize("command", [b"", b"answer 5", b"federated-anon 1 answer ", b"federated-anon 1 answer 1e3"])
def test_other_words_announce_nothing(command):
    assert announced_length(command) is None


def test_hello_is_read_strictly():
    said = Hello("north", VERSION, "1.0", 12.5)
    assert Hello.decoded(said.encoded()) == said
    for content in (b"", b"[]", b"{}", b"null", b'{"holder": 1}', bytes(5000), said.encoded().replace(b"12.5", b'"x"')):
        with pytest.raises(MessageRefused):
            Hello.decoded(content)


def test_refusals_are_tallied_so_that_ledgers_stay_small():
    now = 0.0
    tally = Tally(3, lambda: now)
    assert [tally.due("malformed") for _ in range(10)] == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert tally.due("replayed") == 1
    now = 60.0
    assert [tally.due("malformed") for _ in range(3)] == [8, 0, 0]
    now = 1e6
    assert [tally.due("malformed") for _ in range(4)] == [3, 1, 1, 0]
