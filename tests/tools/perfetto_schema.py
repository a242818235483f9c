# Reads a trace with Perfetto's published messages, and prints the fields unknown to them, and then the number of packets.
#   PYTHONPATH=FOLDER python3 perfetto_schema.py TRACE [FIELD..]     (FOLDER: see tests/setup.sh; messages in FIELD are not checked)
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


left_out = set(sys.argv[2:])


def unknown(message, path):
    for field in UnknownFieldSet(message):
        # Fields in an extension range, such as heap graphs, are defined elsewhere.
        extensions = message.DESCRIPTOR.extension_ranges
        kind = "extension" if any(start <= field.field_number < end for start, end in extensions) else "unknown"
        yield f"{kind} {path}: field {field.field_number}"
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE and descriptor.name not in left_out:
            for inner in value if descriptor.is_repeated else [value]:
                yield from unknown(inner, f"{path}/{descriptor.name}")


trace = Trace.FromString(open(sys.argv[1], "rb").read())
for line in sorted(set(unknown(trace, "trace"))):
    print(line)
print(len(trace.packet), "packets")
