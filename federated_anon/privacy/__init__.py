"""Privacy of a release: what is measured returns a number, what must hold raises."""

from federated_anon.privacy.kanonymity import equivalence_classes, require_k, smallest_class
from federated_anon.privacy.ldiversity import Diversity, distinct_diversity, entropy_diversity, require_l
from federated_anon.privacy.linkage import LinkageRisk, Rate, indices_linkage, linkage_risk, representative_linkage
from federated_anon.privacy.personal import require_wishes, unmet_groups
from federated_anon.privacy.tcloseness import closeness, require_t

__all__ = [
    "Diversity",
    "LinkageRisk",
    "Rate",
    "closeness",
    "distinct_diversity",
    "entropy_diversity",
    "equivalence_classes",
    "indices_linkage",
    "linkage_risk",
    "representative_linkage",
    "require_k",
    "require_l",
    "require_t",
    "require_wishes",
    "smallest_class",
    "unmet_groups",
]
