"""Partners' codes as side information: what a holder sends, how it is made better, how it is rebuilt."""

from federated_anon.side.code import Code, Correction, rebuild
from federated_anon.side.conditional import encode_block
from federated_anon.side.decode import correct

__all__ = ["Code", "Correction", "correct", "encode_block", "rebuild"]
