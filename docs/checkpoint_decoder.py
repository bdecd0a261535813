#!/usr/bin/env python3
"""Decodes projection checkpoints, as docs/checkpoint-format.md describes them; written from that page alone.

Reads one checkpoint per line of standard input, in hex, and writes one line of JSON for each: its reference, and the
checkpoint or why there is none. Needs nothing beside Python 3.8.

    $ echo 00000001... | python3 docs/checkpoint_decoder.py
"""

import hashlib
import json
import sys

MAX_STRING_BYTES = 65_536
OPTIONAL = ["asl_snapshot_id", "artifact_count", "edge_count", "error_count", "lag_millis", "note"]
FIELDS = [
    ("projection_name", "string"),
    ("projection_schema_version", "u32"),
    ("asl_snapshot_id", "u64"),
    ("asl_log_position", "u64"),
    ("created_at", "u64"),
    ("builder_id", "string"),
    ("artifact_count", "u64"),
    ("edge_count", "u64"),
    ("error_count", "u64"),
    ("lag_millis", "u64"),
    ("note", "string"),
]


class Refused(Exception):
    def __init__(self, **fault):
        super().__init__(fault["reason"])
        self.fault = fault


class Reader:
    def __init__(self, data):
        self.data = data
        self.offset = 0

    def take(self, field, size):
        needed = self.offset + size - len(self.data)
        if needed > 0:
            raise Refused(reason="missing-bytes", field=field, offset=self.offset, needed=needed)
        start = self.offset
        self.offset += size
        return self.data[start : self.offset]

    def u32(self, field):
        return int.from_bytes(self.take(field, 4), "big")

    def u64(self, field):
        # JSON of other languages has no integers of 64 bits: they are written as decimal text.
        return str(int.from_bytes(self.take(field, 8), "big"))

    def string(self, field):
        start = self.offset
        size = self.u32(field)
        if size > MAX_STRING_BYTES:
            raise Refused(reason="string-too-long", field=field, offset=start, bytes=size)
        start = self.offset
        content = self.take(field, size)
        try:
            return content.decode("utf-8", "strict")
        except UnicodeDecodeError:
            raise Refused(reason="invalid-utf8", field=field, offset=start) from None

    def end(self):
        left = len(self.data) - self.offset
        if left > 0:
            raise Refused(reason="trailing-bytes", offset=self.offset, bytes=left)


def decode(data):
    reader = Reader(data)
    version = reader.u32("checkpoint_version")
    if version != 1:
        raise Refused(reason="unsupported-version", version=version)
    presence = reader.u32("presence")
    unknown = presence & ~((1 << len(OPTIONAL)) - 1)
    if unknown:
        raise Refused(reason="unknown-presence-bits", bits=unknown)
    checkpoint = {"checkpoint_version": version}
    for field, kind in FIELDS:
        absent = field in OPTIONAL and not presence >> OPTIONAL.index(field) & 1
        checkpoint[field] = None if absent else getattr(reader, kind)(field)
    reader.end()
    return checkpoint


def reference(data):
    def string(text):
        return len(text).to_bytes(4, "big") + text

    head = string(b"retl.artifact.1") + string(b"retl.projection-checkpoint")
    return "sha256:" + hashlib.sha256(head + data).hexdigest()


def main():
    for line in sys.stdin:
        data = bytes.fromhex(line.strip())
        answer = {"reference": reference(data)}
        try:
            answer["checkpoint"] = decode(data)
        except Refused as refused:
            answer["refused"] = refused.fault
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
