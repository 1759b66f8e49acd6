"""What can have happened to a session's document: each kind turns the bytes of a sound one into those found on disk."""

import base64
import gzip
import json
import random
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

Damage = Callable[[bytes], bytes]
HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>try later</body></html>\n"
CONFLICT = b"<<<<<<< HEAD\n%s=======\n%s>>>>>>> theirs\n"


def edited(change: Callable[[dict[str, Any]], Any]) -> Damage:
    """The document read, changed and written as another program would write it."""

    def damage(data: bytes) -> bytes:
        document = json.loads(data)
        changed = change(document)
        return json.dumps(document if changed is None else changed).encode()

    return damage


def zipped(data: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("session.json", data)
    return file.getvalue()


def flipped_bits(data: bytes) -> bytes:
    found = bytearray(data)
    for place in random.Random(3).sample(range(len(found)), 12):
        found[place] ^= 1 << (place % 8)
    return bytes(found)


def nested(levels: int) -> bytes:
    return b'{"messages":' + b"[" * levels + b"]" * levels + b"}"


def without_users(document: dict[str, Any]) -> None:
    document["messages"] = [message for message in document["messages"] if message["role"] != "user"]


def each_message(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def change_all(document: dict[str, Any]) -> None:
        for message in document["messages"]:
            change(message)

    return edited(change_all)


UNREADABLE: dict[str, Damage] = {
    "empty": lambda data: b"",
    "one-byte": lambda data: data[:1],
    "cut-in-the-head": lambda data: data[:40],
    "only-zeros": lambda data: b"\0" * len(data),
    "random": lambda data: random.Random(1).randbytes(500),
    "gzip": gzip.compress,
    "zip": zipped,
    "html-page": lambda data: HTML,
    "messages-null": edited(lambda document: document.update(messages=None)),
    "messages-number": edited(lambda document: document.update(messages=7)),
    "top-list": lambda data: b"[]",
    "top-text": lambda data: b'"a session"',
    "top-null": lambda data: b"null\n",
    "top-true": lambda data: b"true",
    "another-document": lambda data: b'{"name":"left-pad","version":"1.3.0"}\n',
    "only-spaces": lambda data: b" \n" * 400,
    "only-a-mark": lambda data: b"\xef\xbb\xbf",
    "base64": base64.b64encode,
    "reversed": lambda data: data[::-1],
    "encrypted": lambda data: bytes(byte ^ 0x5A for byte in data),
    "nested-lists": lambda data: nested(5000),
    "lfs-pointer": lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n",
    "utf-16": lambda data: data.decode().encode("utf-16"),
    "torn-number": lambda data: b'{"sessionId":1e',
}
READABLE: dict[str, Damage] = {
    "cut-in-the-middle": lambda data: data[: len(data) * 3 // 4],
    "cut-in-a-character": lambda data: data[: data.rindex("ü".encode()) + 1],
    "last-byte-gone": lambda data: data[:-1],
    "zeros-behind": lambda data: data + b"\0" * 4096,
    "zeros-at-the-end": lambda data: data[:-60] + b"\0" * 60,
    "zeros-at-the-beginning": lambda data: b"\0" * 120 + data[120:],
    "twice": lambda data: data + data,
    "text-before": lambda data: b"cat session.json\n" + data,
    "text-behind": lambda data: data + b"connection closed\n",
    "conflict": lambda data: CONFLICT % (data, data),
    "messages-named-before": lambda data: b'{"messages":[{"role":"user","parts":[]}],' + data[1:],
    "title-named-twice": lambda data: data.replace(b'"metadata":{', b'"metadata":{"title":"Another",', 1),
    "flipped-bits": flipped_bits,
    "not-utf8": lambda data: data.replace(b"question", b"que\xff\xfeion"),
    "latin-1": lambda data: data.decode().encode("latin-1", "replace"),
    "control-characters": lambda data: data.replace(b"question", b"que\x01\x1b[31m"),
    "a-quote-missing": lambda data: data.replace(b'"role":"user"', b'"role":"use', 1),
    "comma-missing": lambda data: data.replace(b",\n", b"\n", 1),
    "comma-too-many": lambda data: data.replace(b"]}\n", b",]}\n"),
    "null-entries": edited(lambda document: document["messages"].insert(1, None)),
    "number-entries": edited(lambda document: document["messages"].extend([1, "two", []])),
    "messages-object": edited(lambda document: document.update(messages=dict(enumerate(document["messages"])))),
    "calls-null": edited(lambda document: document.update(toolCalls=None)),
    "calls-text": edited(lambda document: document.update(toolCalls="none")),
    "metadata-list": edited(lambda document: document.update(metadata=[1, 2])),
    "metadata-text": edited(lambda document: document.update(metadata="x")),
    "wrong-types": edited(lambda document: document.update(model=3, provider=None, startTime={}, lastActivity=[])),
    "deep-metadata": edited(lambda document: document["metadata"].update(extra=json.loads("[" * 90 + "]" * 90))),
    "part-types-odd": each_message(lambda message: message["parts"].append({"type": ["text"], "text": {}})),
    "role-unknown": edited(lambda document: document["messages"][1].update(role="wizard")),
    "not-a-number": lambda data: data.replace(b'"metadata":{', b'"metadata":{"rate":NaN,', 1),
    "tokens-text": edited(lambda document: document["metadata"].update(tokenCount="many", contextWindow=-4)),
    "tokens-without-end": edited(lambda document: document["metadata"].update(tokenCount=10**30)),
    "workspace-with-a-zero": edited(lambda document: document["metadata"].update(workspace="/tmp/\0x")),
    "workspace-too-long": edited(lambda document: document["metadata"].update(workspace="/" + "x" * 5000)),
    "histories-odd": edited(
        lambda document: document["metadata"].update(compressionHistory=[None, 3], modeHistory="x", contextHistory={})
    ),
    "markers-from-another-tool": lambda data: b")]}',\n" + data,
}
WHOLE: dict[str, Damage] = {
    "byte-order-mark": lambda data: b"\xef\xbb\xbf" + data,
    "windows-lines": lambda data: data.replace(b"\n", b"\r\n"),
    "indented": lambda data: json.dumps(json.loads(data), indent=4).encode(),
    "escaped": edited(lambda document: None),
    "parts-text": each_message(
        lambda message: message.update(parts="".join(part.get("text", "") for part in message["parts"]))
    ),
    "content-instead": each_message(
        lambda message: message.update(content="".join(part.get("text", "") for part in message.pop("parts")))
    ),
    "no-times": each_message(lambda message: message.pop("timestamp")),
    "bad-times": each_message(lambda message: message.update(timestamp="yesterday")),
    "far-times": each_message(lambda message: message.update(timestamp="9999-12-31T23:59:59.999Z")),
    "no-ids": each_message(lambda message: message.pop("id")),
    "numbers-without-end": each_message(lambda message: message.update(id=10**30 + message["id"])),
    "same-numbers": each_message(lambda message: message.update(id=1)),
    "unknown-fields": edited(lambda document: document.update(colour="blue", tags=["a"])),
    "no-user": edited(without_users),
}
EVERY: dict[str, Damage] = {**UNREADABLE, **READABLE, **WHOLE}
AT = b'{"at":"2026-01-27T10:00:00.000Z",'
JOURNALS: dict[str, bytes] = {
    "garbage": b"\x80garbage\n",
    "lists": b"[]\n[]\n",
    "parts-odd": AT + b'"partial":[{"type":"text","text":5}]}\n',
    "parts-empty": AT + b'"partial":[{"type":"text"}]}\n' + AT + b'"partial":[{"type":"text"}]}\n',
    "calls-odd": AT + b'"call":{"id":5}}\n' + AT + b'"call":[]}\n',
    "call-half": AT + b'"call":{"id":"c9","status":"running"}}\n',
    "number-without-end": AT + b'"message":{"role":"user","parts":[],"timestamp":"","id":1%s}}\n' % (b"0" * 40),
    "message-odd": AT + b'"message":{"role":5}}\n{"at":null}\n',
    "fields-odd": AT + b'"top":{"metadata":5,"messages":7},"set":{"compressionHistory":4}}\n',
    "histories-odd": AT + b'"set":{"modeHistory":3}}\n' + AT + b'"append":{"modeHistory":[9,[{}]]}}\n',
    "time-odd": b'{"at":"zz","tokens":100000000000000000000000000}\n',
    "mark-odd": AT + b'"mark":{"previous":"x"}}\n',
}
