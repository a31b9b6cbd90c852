"""Text <-> tokens: id, text, bytes and place in the text."""

from gptscope.tokens.change import first_change
from gptscope.tokens.long import ends, in_pieces
from gptscope.tokens.read import Added, Said, from_json, from_merges
from gptscope.tokens.spelling import byte_alphabet
from gptscope.tokens.stream import Decoder
from gptscope.tokens.tokenizer import Encoded, Token, Tokenizer, check_unicode

__all__ = [
    "Added",
    "Decoder",
    "Encoded",
    "Said",
    "Token",
    "Tokenizer",
    "byte_alphabet",
    "check_unicode",
    "ends",
    "first_change",
    "from_json",
    "from_merges",
    "in_pieces",
]
