# Reads a trace with Perfetto's published messages, and says of each packet what they do not know. Prints how many packets there are.
#   PYTHONPATH=FOLDER python3 perfetto_schema.py TRACE     (FOLDER: see tests/setup.sh)
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


def unknown(message, path):
    for field in UnknownFieldSet(message):
        yield f"{path}: field {field.field_number}"
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            for inner in value if descriptor.is_repeated else [value]:
                yield from unknown(inner, f"{path}/{descriptor.name}")


trace = Trace.FromString(open(sys.argv[1], "rb").read())
for line in sorted(set(unknown(trace, "trace"))):
    print("unknown", line)
print(len(trace.packet), "packets")
