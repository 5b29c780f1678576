"""A holder's end of the secure argmax: shares of gains in, one layer of gates per request, shares of the winner out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from federated_anon.arrays import Weights
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.argmax import (
    Bits,
    Gates,
    Triples,
    circuit,
    layers,
    planes,
    shared_inputs,
    zero_shares,
)
from federated_anon.crypto.sums import Circle
from federated_anon.errors import Code, MessageRefused
from federated_anon.messages.relayed import Compare, Compared

_NONCE = bytes(12)  # Each key encrypts one message only, so a fixed nonce is safe.


@dataclass(frozen=True, slots=True)
class Told:
    """The gains of a level, which stay here."""

    level: int
    gains: Weights


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where a comparison stands after a round: the layers behind it, and the triples of the one under way."""

    round: int
    shares: Bits
    outputs: tuple[Bits, ...] = ()
    triples: Triples | None = None


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The last two rounds: the latest may be asked again, and then starts from the one before it."""

    before: Comparison | None = None
    latest: Comparison | None = None

    def until(self, number: int) -> Comparison | None:
        """Where things stood when a round was first asked."""
        is_again = self.latest is not None and self.latest.round == number
        return self.before if is_again else self.latest


def compared(
    request: Compare, told: Told, past: Comparisons, circle: Circle, key: bytes
) -> tuple[Compared, Comparisons]:
    """One round, and the rounds to remember."""
    before = past.until(request.round)
    reply, current = _compared(request, told, before, circle, key)
    return reply, Comparisons(before, current)


def _compared(
    request: Compare, told: Told, before: Comparison | None, circle: Circle, key: bytes
) -> tuple[Compared, Comparison]:
    """Close the layer before, open the next, and tell its hidden inputs to the partners; or the result."""
    depth, is_first = len(layers(len(circle.holders))), circle.name == circle.holders[0]
    level, layer = divmod(request.round, depth + 1)
    if request.round < 0 or level != told.level:
        raise MessageRefused(f"round {request.round} is not of level {told.level}", Code.OUT_OF_ORDER)
    if layer == 0:
        current = Comparison(request.round, shared_inputs(planes(told.gains), circle, str(level)))
    else:
        current = _closed(request, before, circle, key)
    gates = _next_gates(current, is_first)
    if not isinstance(gates, Gates):
        masked = gates ^ zero_shares(gates.shape, circle, str(level))
        return Compared(len(told.gains), masked.tobytes()), replace(current, triples=None)
    triples = _dealt(request, gates, is_first)
    content = _cipher(key, circle.study, circle.name, request.round).encrypt(_NONCE, triples.hidden(gates), None)
    return Compared(len(told.gains), content), replace(current, triples=triples)


def _closed(request: Compare, before: Comparison | None, circle: Circle, key: bytes) -> Comparison:
    """The comparison with the outputs of the layer whose hidden inputs came in."""
    if before is None or before.round != request.round - 1 or before.triples is None:
        raise MessageRefused(f"round {request.round} of comparisons is not the next one", Code.OUT_OF_ORDER)
    if len(request.partners) != len(circle.holders):
        raise MessageRefused("the hidden inputs of some holders are missing")
    told = [
        _opened(content, _cipher(key, circle.study, name, request.round - 1))
        for name, content in zip(circle.holders, request.partners, strict=True)
    ]
    out = before.triples.outputs(told, circle.name == circle.holders[0])
    return Comparison(request.round, before.shares, (*before.outputs, out))


def _next_gates(current: Comparison, is_first: bool) -> Gates | Bits:
    """The inputs of the layer after those that are done, or the result; the circuit is cheap enough to run again."""
    running = circuit(current.shares, is_first)
    try:
        gates = next(running)
        for out in current.outputs:
            gates = running.send(out)
    except StopIteration as end:
        result: Bits = end.value
        return result
    return gates


def _dealt(request: Compare, gates: Gates, is_first: bool) -> Triples:
    """The dealer's triples for these gates."""
    if len(request.seed) != 32 or len(request.correction) != (gates.left.size if is_first else 0):
        raise MessageRefused("the dealt triples do not fit the layer")
    drawn = Triples.drawn(request.seed, *gates.left.shape)
    if not is_first:
        return drawn
    return replace(drawn, c=np.frombuffer(request.correction, dtype=np.uint8).reshape(gates.left.shape))


def _cipher(key: bytes, study: str, holder: str, number: int) -> ChaCha20Poly1305:
    """The cipher of one message to all holders, under the key that only they share."""
    return ChaCha20Poly1305(derive(key, "argmax", study, holder, str(number)))


def _opened(content: bytes, cipher: ChaCha20Poly1305) -> bytes:
    try:
        return cipher.decrypt(_NONCE, content, None)
    except InvalidTag:
        raise MessageRefused("a partner's message was changed on its way") from None
