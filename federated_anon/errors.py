"""Every error of the project, as one tree; each class has a stable code and an exit code.

    FederatedAnonError
    ├── SettingsRefused      3  a study or settings file has faults; all of them are listed
    ├── DataRefused          4  a table cannot be used as declared
    ├── MessageRefused       5  bytes that are not a well-formed message of this study and step
    ├── PolicyRefused        5  a holder's own policy forbids what was asked
    ├── HolderRefused        5  the coordinator's view of a refusal: a holder's name and a code, nothing more
    ├── GuaranteeBroken      6  k, l or t does not hold, or cannot be reached
    ├── VerificationFailed   7  a finished run does not match its ledgers, signatures or promises
    ├── HolderLate           8  a holder did not answer in time
    └── StorageFailed        9  a file or folder could not be written or read

The text of an error may quote what the holder knows, so it stays with the holder: only the code crosses.
Exit code 1 is an unexpected fault, 2 a wrong command line, 130 an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class Code(StrEnum):
    """What crosses between parties in place of an error's text."""

    FAULT = "holder-fault"
    SETTINGS = "settings-refused"
    DATA = "data-refused"
    DUPLICATE_IDS = "duplicate-ids"
    OVERLAP = "overlap-too-small"
    MALFORMED = "malformed-message"
    OVERSIZED = "oversized-message"
    VERSION = "unknown-version"
    OTHER_STUDY = "other-study"
    WRONG_STEP = "unknown-step"
    WRONG_SENDER = "unknown-sender"
    CERTIFICATE = "untrusted-certificate"
    HANDSHAKE = "failed-handshake"
    REPLAYED = "replayed"
    OUT_OF_ORDER = "out-of-order"
    CHANGED_REQUEST = "changed-request"
    POLICY_K = "policy-k"
    POLICY_EXPOSURE = "policy-exposure"
    POLICY_METHOD = "policy-method"
    POLICY_COLUMN = "policy-column"
    POLICY_ROUNDS = "policy-rounds"
    POLICY_ROLE = "policy-role"
    POLICY_LABELS = "policy-labels"
    POLICY_NOISE = "policy-noise"
    BUDGET = "budget"
    POLICY_TREE = "policy-tree"
    ROSTER = "roster-mismatch"
    POINTS = "bad-points"
    SMALL_GROUP = "group-below-k"
    SECOND_PARTITION = "second-partition"
    GUARANTEE = "guarantee-broken"
    VERIFICATION = "verification-failed"
    LATE = "holder-late"
    STORAGE = "storage-failed"


class FederatedAnonError(Exception):
    """Root of the tree."""

    code: Code = Code.FAULT
    exit_code: int = 1

    def __init__(self, message: str, code: Code | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class SettingsRefused(FederatedAnonError):
    """A study or settings file has faults; the message lists all of them."""

    code = Code.SETTINGS
    exit_code = 3

    def __init__(self, where: str, faults: Sequence[str]) -> None:
        count = f"{len(faults)} fault" + ("s" if len(faults) > 1 else "")
        super().__init__(f"{where} refused, {count}:\n" + "\n".join(f"  {fault}" for fault in faults))
        self.faults = tuple(faults)


class DataRefused(FederatedAnonError):
    """A table cannot be used as declared."""

    code = Code.DATA
    exit_code = 4


class MessageRefused(FederatedAnonError):
    """Bytes that are not a well-formed message of this study and step."""

    code = Code.MALFORMED
    exit_code = 5


class PolicyRefused(FederatedAnonError):
    """A holder's own policy forbids what was asked."""

    code = Code.POLICY_K
    exit_code = 5


class HolderRefused(FederatedAnonError):
    """A holder refused a step; all the coordinator learns is the code."""

    exit_code = 5

    def __init__(self, holder: str, step: str, code: Code) -> None:
        super().__init__(f"holder '{holder}' refused step '{step}' with code '{code}'; its own log says why", code)
        self.holder, self.step = holder, step


class GuaranteeBroken(FederatedAnonError):
    """k, l or t does not hold, or cannot be reached on this table."""

    code = Code.GUARANTEE
    exit_code = 6


class VerificationFailed(FederatedAnonError):
    """A finished run does not match its ledgers, signatures or promises."""

    code = Code.VERIFICATION
    exit_code = 7


class HolderLate(FederatedAnonError):
    """A holder did not answer in time; the message names it."""

    code = Code.LATE
    exit_code = 8


class StorageFailed(FederatedAnonError):
    """A file or folder could not be written or read."""

    code = Code.STORAGE
    exit_code = 9
