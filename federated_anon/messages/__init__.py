"""Messages between the coordinator and a holder: frozen typed values, and Arrow IPC bytes of them."""

from federated_anon.messages.codec import decode, encode
from federated_anon.messages.envelope import COORDINATOR, VERSION, Envelope, Message, Step

__all__ = ["COORDINATOR", "VERSION", "Envelope", "Message", "Step", "decode", "encode"]
