"""How well associations survive: alpha-confidence, relative association error, items kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from federated_anon.setvalued.chunks import Disassociated
from federated_anon.setvalued.measures.supports import Itemset, expected_supports, supports, visible_supports
from federated_anon.setvalued.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Association:
    """A set of items: its support in the original, visible in one chunk, and expected of a re-association."""

    items: Itemset
    before: int
    visible: int
    expected: float

    @property
    def alpha_visible(self) -> float:
        """Visible support / original support; 1 for a set that the original does not hold."""
        return self.visible / self.before if self.before else 1.0

    @property
    def alpha_expected(self) -> float:
        r"""Expected support / original support, the :math:`\alpha`-confidence of Awad et al. (2020).

        Their bound :math:`\delta^{-|ur|} \le \alpha \le 1` is about this one; chance can lift it above 1. It is 1
        for a set that the original does not hold.
        """
        return self.expected / self.before if self.before else 1.0


def associations(original: Transactions, form: Disassociated, itemsets: Iterable[Itemset]) -> tuple[Association, ...]:
    """Each set of items before and after disassociation."""
    wanted = list(dict.fromkeys(itemsets))
    before = supports(original, wanted)
    visible, expected = visible_supports(form, wanted), expected_supports(form, wanted)
    return tuple(Association(one, before[one], visible[one], expected[one]) for one in wanted)


def relative_association_error(before: Mapping[Itemset, float], after: Mapping[Itemset, float]) -> float:
    r"""Sum over the sets of ``before`` of the change relative to the mean of both supports.

    .. math:: \sum_A \frac{|s(A) - s^*(A)|}{(s(A) + s^*(A)) / 2}

    The printed formula (Awad et al. 2020, section 2.4) lacks the absolute value, without which gains hide losses. Each
    set adds at most 2; one that is in neither adds nothing.
    """
    pairs = ((support, after.get(one, 0.0)) for one, support in before.items())
    return float(sum(2 * abs(s - t) / (s + t) for s, t in pairs if s + t))


def items_kept(original: Transactions, form: Disassociated) -> float:
    """Share of the original's item occurrences that are in record chunks; terms are lost, being without counts."""
    return form.kept / len(original.items) if len(original.items) else 1.0
