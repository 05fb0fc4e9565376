"""Decode the keys from the bytes of a terminal. What a terminal pastes is a key between PASTE and PASTED each."""

from __future__ import annotations

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page up", "page down", "home", "end"
ENTER, ESCAPE, RUBOUT, RUBOUT_WORD, RUBOUT_ALL = "enter", "escape", "rubout", "rubout word", "rubout all"
PASTE, PASTED = "paste", "pasted"

_SEQUENCES = {
    b"[A": UP, b"[B": DOWN, b"OA": UP, b"OB": DOWN, b"[5~": PAGE_UP, b"[6~": PAGE_DOWN,
    b"[H": HOME, b"[F": END, b"OH": HOME, b"OF": END, b"[1~": HOME, b"[4~": END,
    b"[200~": PASTE, b"[201~": PASTED,
}  # fmt: skip
_BYTES = {
    0x0D: ENTER, 0x0A: ENTER, 0x10: UP, 0x0E: DOWN, 0x02: PAGE_UP, 0x06: PAGE_DOWN, 0x04: PAGE_DOWN,
    0x09: "\t", 0x08: RUBOUT, 0x7F: RUBOUT, 0x15: RUBOUT_ALL, 0x17: RUBOUT_WORD,
}  # fmt: skip


def parse_keys(data: bytes) -> tuple[list[str], bytes]:
    """The keys, and the start of an incomplete sequence. Unknown keys are ignored."""
    keys: list[str] = []
    at = 0
    while at < len(data):
        if data[at] >= 0x80:
            size = _letter_size(data[at])
            if at + size > len(data) and _is_rest_of_letter(data[at + 1 :]):
                return keys, data[at:]
            letter = data[at : at + size].decode(errors="ignore")
            keys += list(letter) if len(letter) == 1 else []
            at += size if len(letter) == 1 else 1
            continue
        if data[at] != 0x1B:
            keys += _plain(data[at])
            at += 1
            continue
        length = _length(data[at:])
        if length is None:
            return keys, data[at:]
        known = _SEQUENCES.get(data[at + 1 : at + length])
        keys += [known] if known else [ESCAPE] if length == 1 else []
        at += length
    return keys, b""


def flush_keys(rest: bytes) -> list[str]:
    """The key of a sequence that nothing follows: Esc."""
    return [ESCAPE] if rest == b"\x1b" else []


def _plain(byte: int) -> list[str]:
    if byte in _BYTES:
        return [_BYTES[byte]]
    return [chr(byte)] if 0x20 <= byte < 0x7F else []


def _letter_size(byte: int) -> int:
    """The bytes of a letter in UTF-8 that begins with this one; 1 for a byte that begins none."""
    return 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1


def _is_rest_of_letter(data: bytes) -> bool:
    return all(0x80 <= byte < 0xC0 for byte in data)


def _length(data: bytes) -> int | None:
    """The length of the sequence at the start; None if it is incomplete."""
    if len(data) == 1:
        return None
    if data[1] == 0x1B:
        return 1
    if data[1] not in b"[O":
        return 2
    for at in range(2, len(data)):
        if 0x40 <= data[at] <= 0x7E:
            return at + 1
        if not 0x20 <= data[at] <= 0x3F:
            return at  # another byte interrupts it
    return None
