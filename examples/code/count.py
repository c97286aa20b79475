"""Counts the words of an input and leaves the result."""

import json
import os
import pathlib

longest = int(os.environ["LONGEST"])
text = pathlib.Path(os.environ["DROVER_INPUTS"], "words").read_text()
counts = {word: text.split().count(word) for word in sorted(set(text.split()))}
print(f"{len(counts)} different words, {sum(len(word) <= longest for word in counts)} short ones")
pathlib.Path(os.environ["DROVER_RESULT_DIR"], "counts.json").write_text(json.dumps(counts))
