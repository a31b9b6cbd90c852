"""The parts that train a small GPT on a text of stories; the scripts beside put them together."""
