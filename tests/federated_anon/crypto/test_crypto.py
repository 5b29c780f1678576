import hashlib
import hmac

import numpy as np
import pytest

from federated_anon.crypto.agreement import agreement_key, derive, study_key, unwrap, wrap
from federated_anon.crypto.pseudonyms import pseudonyms, shuffle_within, sorted_set
from federated_anon.crypto.signing import Identity, require_signature
from federated_anon.errors import Code, DataRefused, PolicyRefused, StorageFailed, VerificationFailed

STUDY = "5" * 64
FIRST, SECOND, STRANGER = (Identity.for_simulation(0, name) for name in ("first", "second", "stranger"))


def public(identity: Identity) -> bytes:
    return agreement_key(identity, STUDY).public_key().public_bytes_raw()


def test_a_wrapped_key_opens_for_its_holder_only():
    key = study_key(FIRST, STUDY)
    wrapped = wrap(key, agreement_key(FIRST, STUDY), public(SECOND), STUDY, "second")
    assert unwrap(wrapped, agreement_key(SECOND, STUDY), public(FIRST), STUDY, "second") == key
    for own, partner, study, name in [
        (STRANGER, FIRST, STUDY, "second"),
        (SECOND, STRANGER, STUDY, "second"),
        (SECOND, FIRST, "6" * 64, "second"),
        (SECOND, FIRST, STUDY, "first"),
    ]:
        with pytest.raises(PolicyRefused) as refused:
            unwrap(wrapped, agreement_key(own, STUDY), public(partner), study, name)
        assert refused.value.code is Code.ROSTER


def test_a_key_that_was_touched_on_its_way_is_refused():
    wrapped = bytearray(wrap(b"k" * 32, agreement_key(FIRST, STUDY), public(SECOND), STUDY, "second"))
    wrapped[3] ^= 1
    with pytest.raises(PolicyRefused):
        unwrap(bytes(wrapped), agreement_key(SECOND, STUDY), public(FIRST), STUDY, "second")


def test_a_point_of_small_order_is_refused():
    with pytest.raises(PolicyRefused, match="valid point"):
        wrap(b"k" * 32, agreement_key(FIRST, STUDY), bytes(32), STUDY, "second")


def test_keys_differ_by_study_and_purpose():
    keys = {derive(FIRST.secret, *info) for info in [("a",), ("b",), ("a", "b"), ("a\x1fb",)[:1]]}
    assert len(keys) == 3 or len(keys) == 4
    assert study_key(FIRST, STUDY) != study_key(FIRST, "6" * 64)


def test_pseudonyms_are_truncated_hmac_under_a_derived_key():
    key = b"k" * 32
    expected = hmac.new(derive(key, "pseudonyms"), b"anna", hashlib.sha256).digest()[:7]
    assert int(pseudonyms(["anna", "ben"], key)[0]) == int.from_bytes(expected, "big")


def test_pseudonyms_are_sorted_and_two_alike_are_refused():
    values = pseudonyms([str(n) for n in range(500)], b"k" * 32)
    order, rising = sorted_set(values)
    assert rising.tolist() == sorted(values.tolist())
    assert np.array_equal(values[order], rising)
    with pytest.raises(DataRefused, match="another name"):
        sorted_set(np.append(values, values[7]))


def test_the_shuffle_keeps_groups_together_and_needs_the_key():
    groups = np.repeat(np.arange(40), 25)[np.random.default_rng(0).permutation(1000)]
    order = shuffle_within(groups, b"a" * 32)
    assert np.array_equal(np.sort(order), np.arange(1000))
    assert np.array_equal(groups[order], np.sort(groups))
    assert np.array_equal(order, shuffle_within(groups, b"a" * 32))
    other = shuffle_within(groups, b"b" * 32)
    assert (order == other).mean() < 0.15


def test_an_identity_survives_its_file_and_is_never_overwritten(tmp_path):
    path = tmp_path / "identity.key"
    made = Identity.create()
    made.save(path)
    assert Identity.load(path).public == made.public
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(StorageFailed, match="exist"):
        Identity.create().save(path)


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nxx\n-----END PRIVATE KEY-----\n"]
)
def test_a_bad_key_file_is_named_with_the_cure(tmp_path, content):
    path = tmp_path / "identity.key"
    path.write_bytes(content)
    with pytest.raises(StorageFailed, match="federated-anon keys"):
        Identity.load(path)


def test_a_signature_fits_its_owner_and_content_only():
    signature = FIRST.sign(b"content")
    require_signature(FIRST.public, signature, b"content", "it")
    for key, signed, content in [
        (SECOND.public, signature, b"content"),
        (FIRST.public, signature, b"other"),
        (FIRST.public, b"", b"content"),
        (b"short", signature, b"content"),
    ]:
        with pytest.raises(VerificationFailed):
            require_signature(key, signed, content, "it")
