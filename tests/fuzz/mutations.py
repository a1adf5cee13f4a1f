"""Random damage: to bytes, to texts, to JSON, to arrays, and to the members of archives."""

import io
import json
import re
import zipfile
from hashlib import sha256

import numpy as np

WORDS = [
    "", "0", "-1", "1e999", "NaN", "inf", "null", "true", "x" * 300, "\x00", "\ud800", "é", "'",
    "levels", "sparse", "dense", "prefix", "all-ranges", "pure", "zCDP", "gaussian", "laplace",
    "9" * 5000, "1/0", "1e-400", "0x1p9999", "[", "{", '"', "*a", "&a [*a]", "- " * 50,
    "!!python/x", "=1+1", "\n", ",", ";", "SELECT", "GROUP BY", "substitute", "add-remove",
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2, 3, 7, 2**31, 2**52 - 1, 2**52, 2**53, 2**62, 2**63, -(2**63), 2**70, 10**30,
    0.5, 1.5, -0.5, 1e-300, 1e100, 1e300, -1e300, 1024, 1025, 10**6, 64, 65,
]  # fmt: skip
DTYPES = ["<f8", ">f8", "<f4", "<f2", "<i8", ">i8", "<i4", "<u8", "|b1", "<c16", "S3", "<U2"]


def damaged(rng, data: bytes, others: list[bytes]) -> bytes:
    """Damage bytes of any kind."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not changed:
            break
        place = int(rng.integers(len(changed)))
        length = int(rng.integers(1, 1 + min(64, len(changed))))
        match int(rng.integers(7)):
            case 0:
                changed[place] ^= 1 << int(rng.integers(8))
            case 1:
                changed[place : place + length] = rng.bytes(length)
            case 2:
                del changed[place : place + length]
            case 3:
                del changed[place:]
            case 4:
                changed[place:place] = changed[place : place + length] * int(rng.integers(1, 20))
            case 5:
                other = others[int(rng.integers(len(others)))]
                start = int(rng.integers(len(other))) if other else 0
                changed[place : place + length] = other[start : start + length]
            case 6:
                changed[place : place + length] = bytes([int(rng.choice([0, 255, 127]))]) * length
    return bytes(changed)


def retold(rng, data: bytes) -> bytes:
    """Damage a text: by words and lines."""
    lines = data.decode("utf-8").splitlines(keepends=True)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(lines)))
        words = lines[place].replace(",", " , ").replace("{", "{ ").split(" ")
        word = str(rng.choice([*WORDS, *map(repr, NUMBERS)]))
        match int(rng.integers(6)):
            case 4 | 5:
                number = repr(NUMBERS[int(rng.integers(len(NUMBERS)))])
                lines[place] = re.sub(r"\d+", number, lines[place], count=1)
            case 0:
                words[int(rng.integers(len(words)))] = word
                lines[place] = " ".join(words)
            case 1:
                lines.insert(place, lines[int(rng.integers(len(lines)))])
            case 2 if len(lines) > 1:
                del lines[place]
            case _:
                lines[place] = lines[place].replace(str(rng.choice(words)) or "\0", word, 1)
    return "".join(lines).encode("utf-8", "surrogatepass")


def some_value(rng, depth: int = 0):
    """A value of any type of JSON."""
    way = int(rng.integers(5))
    if way == 3 and depth < 3:
        return [some_value(rng, depth + 1) for _ in range(int(rng.integers(4)))]
    if way == 4 and depth < 3:
        keys = rng.choice(["kind", "shape", "cells", "query", "groups", "a"], 2)
        return {str(key): some_value(rng, depth + 1) for key in keys}
    plain = [[None, True, False], NUMBERS, WORDS][way % 3]
    return plain[int(rng.integers(len(plain)))]


def _places(value, found):
    """Every container of a JSON value, with each of its keys."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            _places(value[key], found)
    return found


def mutate_json(rng, value) -> None:
    """Change, remove, add or move a value somewhere inside."""
    places = _places(value, [])
    for _ in range(int(rng.integers(1, 3))):
        holder, key = places[int(rng.integers(len(places)))]
        try:
            old = holder[key]
        except (KeyError, IndexError):  # removed a moment ago
            continue
        match int(rng.integers(7)):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[str(rng.choice(["extra", "kind", "first", "line"]))] = some_value(rng)
            case 2:
                other, place = places[int(rng.integers(len(places)))]
                if (place in other) if isinstance(other, dict) else place < len(other):
                    holder[key] = json.loads(json.dumps(other[place]))
            case 3 if isinstance(old, int | float) and not isinstance(old, bool):
                holder[key] = old + NUMBERS[int(rng.integers(6))]
            case 4:
                deep = old
                for _ in range(int(rng.choice([1, 3, 20, 400]))):
                    deep = [deep]
                holder[key] = deep
            case _:
                holder[key] = some_value(rng)


def mutate_array(rng, array):
    """The same array with other values, another shape, or another type."""
    array = np.array(array)
    flat = array.reshape(-1)
    match int(rng.integers(8)):
        case 0 | 1 | 2 if flat.size and array.dtype.kind in "if":
            for place in rng.integers(flat.size, size=int(rng.integers(1, 4))):
                value, old = float(NUMBERS[int(rng.integers(len(NUMBERS)))]), float(flat[place])
                value = float(rng.choice([value, -value, old + 1, old * 2, np.nan]))
                if array.dtype.kind == "i":
                    most = 2.0 ** (8 * array.itemsize - 2)
                    value = int(np.clip(np.nan_to_num(value), -most, most))
                flat[place] = value
            return array
        case 3:
            return flat[: int(rng.integers(flat.size + 1))]
        case 4:
            return np.concatenate([flat, flat[: int(rng.integers(flat.size + 1))]])
        case 5:
            return array.reshape(rng.permutation(array.shape)) if array.ndim > 1 else array[None]
        case 6 if array.dtype.kind in "if":
            with np.errstate(all="ignore"):
                return array.astype(str(rng.choice(DTYPES)))
        case _:
            return rng.permutation(flat).reshape(array.shape) if flat.size else array


def unpacked(data: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    """An archive of the members as they are."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return archive.getvalue()


def sealed(members: dict[str, bytes]) -> dict[str, bytes]:
    """The members with a header whose checksums fit them."""
    header = json.loads(members["header.json"])
    parts = {name: data for name, data in members.items() if name != "header.json"}
    header["sha256"] = {name: sha256(data).hexdigest() for name, data in parts.items()}
    return {"header.json": json.dumps(header).encode(), **parts}


def npy(array) -> bytes:
    """An array as bytes of the ``.npy`` format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def mutate_members(rng, members: dict[str, bytes], other: dict[str, bytes]) -> None:
    """Damage an archive's facts or arrays, or bring in those of another archive."""
    names = [name for name in members if name != "header.json"]
    name = names[int(rng.integers(len(names)))]
    match int(rng.integers(10)):
        case 0:
            strangers = sorted(set(other) - {"header.json"})
            stranger = strangers[int(rng.integers(len(strangers)))]
            members[stranger] = other[stranger]
        case 1 if name in other:
            members[name] = other[name]
        case 2:
            del members[name]
        case 3:
            members[name] = damaged(rng, members[name], [other.get(name, b"x")])
        case 4 | 5 | 6 if name.endswith(".npy"):
            members[name] = npy(mutate_array(rng, np.load(io.BytesIO(members[name]))))
        case _ if "facts.json" in members:
            facts = json.loads(members["facts.json"])
            mutate_json(rng, facts)
            members["facts.json"] = json.dumps(facts).encode()
        case _:
            arrays = [each for each in names if each.endswith(".npy")]
            chosen = arrays[int(rng.integers(len(arrays)))]
            members[chosen] = npy(mutate_array(rng, np.load(io.BytesIO(members[chosen]))))
