"""Trees of files: coil compared with the usual tools."""

import json
import os
import shutil

from . import process


class Trees:
    """A random tree in `folder`, and the operations on it and on its copies."""

    def __init__(self, build, folder, files):
        self.program = build / "bench" / "fs" / "trees"
        self.folder = folder
        self.files = files
        self.source = folder / "source"

    def make(self):
        self.clear()
        self.folder.mkdir(parents=True)
        process.run([self.program, "make", self.source, 1, self.files, max(1, self.files // 50)], timeout=600)

    def clear(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def _measure(self, *command):
        os.sync() # so that the next program does not wait for the write-back of dirty pages
        return json.loads(process.run([self.program, *command], timeout=600))

    def round(self):
        """The figures of each operation. Deletes the copies that it makes."""
        ours, theirs = self.folder / "ours", self.folder / "theirs"
        return {
            "cp": self._measure("beside", "cp", "-r", self.source, theirs),
            "copy": self._measure("copy", self.source, ours),
            "find": self._measure("beside", "find", self.source, "-size", "+1000000k"),
            "walk": self._measure("walk", self.source),
            "rm": self._measure("beside", "rm", "-rf", theirs),
            "remove": self._measure("remove", ours),
        }
