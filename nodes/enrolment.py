"""How a holder joins a study: its keys, signed, and the columns that it brings."""

from __future__ import annotations

import json

from federated_anon.crypto.agreement import agreement_key, statement
from federated_anon.messages.payloads import Enrolled
from federated_anon.study import Study
from nodes.block import Records
from nodes.settings import HolderSettings


def enrolment(study: Study, records: Records, settings: HolderSettings) -> Enrolled:
    """What leaves a holder that has accepted a study."""
    identity = settings.identity
    agreement = agreement_key(identity, study.digest).public_key().public_bytes_raw()
    told = () if study.kind == "set-valued" else records.told
    return Enrolled(
        identity=identity.public,
        agreement=agreement,
        signature=identity.sign(statement(study.digest, settings.name, agreement)),
        names=tuple(column.name for column in told),
        roles=tuple(column.role.value for column in told),
        kinds=tuple(column.kind.value for column in told),
        levels=tuple(json.dumps(column.levels) for column in told),
        rows=len(records.ids) if settings.policy.tell_rows else -1,
    )
