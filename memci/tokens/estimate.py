"""Estimates: tokens counted by the shape of the text, where no tokenizer can be imported.

A text is cut into pieces, each of a class that has a price:

    "Hello, мир 2024!"   word 1 · punctuation 0.85 · blank 0 · Cyrillic 2.75 · blank 1 · digits 2 · punctuation 0.85

The result is the sum × 1.15 plus 1.5 times its square root, since short texts vary more. It is never more than the
bytes of the text, which is the most that a byte-level vocabulary can give. The prices are set so that the result is not
below o200k on English, code, JSON, Chinese, Russian, base64, hexadecimal, random letters and random characters. On some
it is far above: about 1.6 times on English, 3 times on Chinese, Korean and Russian, 4 times on Arabic and Vietnamese.
(Characters / 4 would be 61 % too low on base64.)

Only the bound by bytes is proven: one unlucky word, repeated, can still be counted too low. So an estimate is never
called exact. This module knows no vocabulary, no model and no message.
"""

import math
import re

# For each letter, those that seldom follow it in English. Such a pair costs a token of its own: a word without them is
# mostly one token, random letters are not. This separates prose from base64.
_SELDOM = re.compile(
    r"(?=a[aefhjoqwxz]|b[bcdfghijkmnpqrstvwxyz]|c[bcdfgjmnpqsvwxyz]|d[bcdfghjklmnpqrtvwxyz]|e[bghijkoquwz]"
    r"|f[bcdfghjklmnpqstvwxyz]|g[abcdfgijklmnpqstuvwxyz]|h[bcdfghjklpqrsuvwxyz]|i[bhijkqruwxyz]"
    r"|j[abcdefghijklmnpqrstuvwxyz]|k[abcdfghjklmnopqrtuvwxyz]|l[bcghjkmnpqrvwxz]|m[bcdfghjklmnqrstvwxyz]"
    r"|n[bfhjklmnpqruwxyz]|o[aeijqxyz]|p[bcdfgjkmnquvwxz]|r[bdfghjlmnpqvwxz]|s[bdfgjklmnqrvwxyz]"
    r"|t[cdfgjklmnpqvwxz]|u[abdfhjkmoquvwxyz]|v[bcdfghjklmnopqrstuvwxyz]|w[bcdfgjklmnpqrstuvwxyz]"
    r"|y[abcdefghijklmnpqruvwxyz]|[qxz][a-z])"
)
_PIECE = re.compile(
    r"(?P<word>[A-Z]?[a-z]+)"
    r"|(?P<capitals>[A-Z]+(?![a-z])|[A-Z]+(?=[A-Z]))"
    r"|(?P<digits>[0-9]+)"
    r"|(?P<joined> (?=[^\W\d]|[!-/:-@\[-`{-~]))"  # one space before a word or a sign is part of that token
    r"|(?P<blank>([ \t\r\n])\6*)"
    r"|(?P<sign>([!-/:-@\[-`{-~])\8*)"
    r"|(?P<cyrillic>[\u0400-\u045f]+)"
    r"|(?P<letters>[\u00c0-\u00ff\u03b1-\u03c9\u05d0-\u05ea\u0627-\u063a\u0641-\u064a]+)"
    r"|(?P<han>[\u4e00-\u9fff]+)"
    r"|(?P<kana>[\u3041-\u30fe]+)"
    r"|(?P<hangul>[\uac00-\ud7a3]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)


def estimate(text: str) -> int:
    """Return an estimate that is seldom below the tokens of *text* in o200k. O(length), 0.5 µs per character."""
    price = sum(_PRICES[piece.lastgroup or "other"](piece[0]) for piece in _PIECE.finditer(text))
    return min(math.ceil(price * 1.15 + 1.5 * math.sqrt(price)), len(text.encode("utf-8", "surrogatepass")))


def _word(piece: str) -> float:
    seldom = len(_SELDOM.findall(piece.lower()))
    return min(len(piece), 1 + 0.35 * max(0, len(piece) - 6) + 0.75 * seldom)


def _han(piece: str) -> float:
    # Characters of the first level of the old national standards are in daily use: vocabularies know them.
    return sum(1.45 if _in_daily_use(character) else 3.0 for character in piece)


def _in_daily_use(character: str) -> bool:
    simplified = character.encode("gb2312", "ignore")
    traditional = character.encode("big5", "ignore")
    return bool(simplified and simplified[0] < 0xD8) or bool(traditional and traditional[0] <= 0xC6)


def _hangul(piece: str) -> float:
    return sum(1.9 if len(character.encode("euc_kr", "ignore")) == 2 else 3.0 for character in piece)


def _other(character: str) -> float:
    return min(3, len(character.encode("utf-8", "surrogatepass")))


_PRICES = {
    "word": _word,
    "capitals": lambda piece: min(len(piece), 0.5 + 0.6 * len(piece)),
    "digits": lambda piece: -(-len(piece) // 3),
    "joined": lambda _: 0,
    "blank": lambda piece: 0.9 + 0.1 * len(piece),
    "sign": lambda piece: 0.75 + 0.1 * len(piece),
    "cyrillic": lambda piece: 0.35 + 0.8 * len(piece),
    "letters": len,  # each of these is a token by itself
    "han": _han,
    "kana": lambda piece: 1.1 * len(piece),
    "hangul": _hangul,
    "other": _other,
}
