"""The driver over holders that forget, vanish, lag or come back with other data."""

import pytest

from coordinator.checkpoints import Checkpoints
from coordinator.holders import InProcess
from federated_anon.errors import Code, HolderRefused, MessageRefused
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REQUESTS
from tests.simulator import Driver, drive, make_holders, make_study

STUDY = make_study()


class Forgetful:
    """A transport whose holder is born again, without memory, just before a step; perhaps losing the request too."""

    def __init__(self, make, step: Step, loses: bool) -> None:
        self.make, self.step, self.loses = make, step, loses
        self.holders, self.happened = make(), False

    def ask(self, requests, timeout):
        replies = {}
        for name, request in requests.items():
            if name == "south" and not self.happened and decode(request, REQUESTS).envelope.step is self.step:
                self.happened = True
                self.holders["south"] = self.make()["south"]
                if self.loses:
                    replies[name] = None
                    continue
            replies[name] = self.holders[name].answer(request)
        return replies


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return drive(STUDY, make_holders(tmp_path_factory.mktemp("calm")))


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize(
    "step", [Step.ALIGN, Step.MAP, Step.SETTLE, Step.CODE, Step.CONSTRAIN, Step.RELEASE, Step.CLOSE]
)
def test_a_holder_that_lost_its_memory_is_led_back_and_the_release_is_the_same(tmp_path, undisturbed, step, loses):
    transport = Forgetful(lambda: make_holders(tmp_path), step, loses)
    outcome = Driver(STUDY, transport).run()
    assert transport.happened
    assert outcome.release.csv() == undisturbed.release.csv()
    assert outcome.report == undisturbed.report


def test_a_holder_that_comes_back_with_other_data_ends_the_study(tmp_path):
    sizes = iter([60, 61])
    transport = Forgetful(lambda: make_holders(tmp_path / str(size := next(sizes)), rows=size), Step.CODE, False)
    with pytest.raises((MessageRefused, HolderRefused)):
        Driver(STUDY, transport).run()


def test_a_refusal_names_holder_step_and_code(tmp_path):
    with pytest.raises(HolderRefused) as stopped:
        drive(make_study(k=2), make_holders(tmp_path, smallest_k=3))
    assert (stopped.value.step, stopped.value.code) == ("enrol", Code.POLICY_K)
    assert stopped.value.holder in ("north", "south")


def test_a_lost_holder_that_stays_lost_is_named(tmp_path):
    holders = make_holders(tmp_path)

    class Gone:
        def ask(self, requests, timeout):
            return {n: None if n == "south" else holders[n].answer(r) for n, r in requests.items()}

    with pytest.raises(HolderRefused, match="south"):
        Driver(STUDY, Gone()).run()


@pytest.mark.parametrize("last", [Step.ENROL, Step.ALIGN, Step.CORRECT, Step.RELEASE])
def test_a_study_goes_on_from_its_checkpoints(tmp_path, undisturbed, last):
    holders = make_holders(tmp_path / "data")
    kept = Checkpoints(tmp_path / "kept", STUDY.digest)
    seen = []

    def interrupt(progress):
        if seen and seen[-1] is last:
            raise KeyboardInterrupt
        seen.append(progress.step)

    with pytest.raises(KeyboardInterrupt):
        drive(STUDY, holders, checkpoints=kept, listen=interrupt)
    asked = []

    class Counting(InProcess):
        def ask(self, requests, timeout):
            asked.append(decode(next(iter(requests.values())), REQUESTS).envelope.step)
            return super().ask(requests, timeout)

    transport = Counting({name: one.answer for name, one in holders.items()})
    outcome = Driver(STUDY, transport, checkpoints=kept, first_sequence=1000).run()
    assert outcome.release.csv() == undisturbed.release.csv()
    assert outcome.report == undisturbed.report
    assert last not in asked
    kept.remove()
    assert not kept.place.exists()


def test_checkpoints_serve_holders_that_forgot_everything(tmp_path, undisturbed):
    kept = Checkpoints(tmp_path / "kept", STUDY.digest)
    steps = []

    def interrupt(progress):
        steps.append(progress.step)
        if progress.step is Step.RELEASE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(STUDY, make_holders(tmp_path / "data"), checkpoints=kept, listen=interrupt)
    outcome = drive(STUDY, make_holders(tmp_path / "data"), checkpoints=kept, first_sequence=1000)
    assert outcome.release.csv() == undisturbed.release.csv()


def test_checkpoints_are_for_their_owner_only(tmp_path):
    kept = Checkpoints(tmp_path, STUDY.digest)
    kept.save(0, Step.ENROL, {"north": b"reply"})
    assert all(path.stat().st_mode & 0o077 == 0 for path in [kept.place, *kept.place.iterdir()])
    assert kept.load(0, Step.ENROL, ["north"]) == {"north": b"reply"}
    assert kept.load(0, Step.ENROL, ["north", "south"]) is None


def test_a_reply_under_another_name_is_refused(tmp_path):
    holders = make_holders(tmp_path)
    crossed = InProcess({"north": holders["south"].answer, "south": holders["north"].answer})
    with pytest.raises(MessageRefused) as refused:
        Driver(STUDY, crossed).run()
    assert refused.value.code is Code.WRONG_SENDER
