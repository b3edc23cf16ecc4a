"""Writes the documents that cost most for their size, each as a catalog of its own: worst_documents.py FOLDER MIB"""
import os
import sys

folder, size = sys.argv[1], int(sys.argv[2]) << 20


def repeated(start, part, end):
    return start + part * ((size - len(start) - len(end)) // len(part)) + end


DOCUMENTS = {
    "flow": repeated(b"x: [", b"1,", b"]\n"),
    "merge": repeated(b"<<: [", b"{},", b"]\n"),
    "keys": b"v: {" + b",".join(b"k%d" % number for number in range(size // 10)) + b"}\n",
    "json": repeated(b'{"a":[', b"{},", b"{}]}\n"),
}
for name, document in DOCUMENTS.items():
    os.makedirs(f"{folder}/{name}")
    with open(f"{folder}/{name}/catalog.yaml", "wb") as file:
        file.write(b"schema: olm.package\nname: good\n---\n" + document)
