"""The families of GPT, each a file that renames, turns and folds weights until all look alike.

A family is a module with `matches(config, names)`, `rename(name)` and `build(config, tensors)`.
"""

from types import ModuleType

from gptscope.model.families import gpt2, llama, mistral, toy

FAMILIES: tuple[ModuleType, ...] = (gpt2, llama, mistral, toy)
