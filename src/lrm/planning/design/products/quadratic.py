"""What the error of a batch depends on: one number per factor, and their products by subset.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.planning.design.products.subsets import (
    LARGEST_KEY,
    Masks,
    SubsetIndex,
    bits_of,
    masks_of,
    popcount,
)
from lrm.planning.limits import ARRAY
from lrm.queries.maps.linear import BLOCK_ENTRIES, Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import ProductBatch

#: Most pairs of products that are added up in one term: 24 bytes each, a few times.
MOST_PAIRS = 1 << 23
#: Values of an attribute up to which its Gram is an array that is decomposed.
DENSE_VALUES = 1024
#: Entries of a factor up to which two of them are written out for their traces.
SMALL_ENTRIES = 1 << 12


@dataclass(frozen=True, eq=False)
class PairGram:
    """``M = (FᵀG + GᵀF)/2`` of two factors of one attribute; most often F is G."""

    left: LinearMap
    right: LinearMap

    @property
    def tells(self) -> bool:
        """Whether both factors distinguish values; else tr(H·M) = 1ᵀHMH1/κ for every H."""
        return self.left.total_factor is None and self.right.total_factor is None

    @property
    def constant(self) -> float | None:
        """The a with ``M = a·11ᵀ`` where neither factor distinguishes values."""
        if self.left.total_factor is None or self.right.total_factor is None:
            return None
        if self.left is self.right:
            return self.left.total_factor
        return self.sums[1] / self.left.shape[1] ** 2

    @cached_property
    def squares(self) -> Floats:
        """The diagonal of M."""
        if self.left is self.right:
            return self.left.column_squared_sums()
        diagonal, height = np.zeros(self.left.shape[1]), max(1, BLOCK_ENTRIES // self.left.shape[1])
        for start in range(0, len(self.left), height):
            stop = min(start + height, len(self.left))
            parts = (factor.rows(start, stop) for factor in (self.left, self.right))
            diagonal += np.einsum("ij,ij->j", *parts)
        return diagonal

    @property
    def sums(self) -> tuple[float, float]:
        """``tr M`` and ``1ᵀM1``."""
        if self.left is self.right:
            return self.left.gram_sums
        total = float(np.vdot(self.left.row_totals, self.right.row_totals))
        if math.prod(self.left.shape) > SMALL_ENTRIES:
            return float(self.squares.sum()), total
        return float(np.vdot(self.left.dense(), self.right.dense())), total

    def times(self, X: Floats) -> Floats:
        """``M·X``."""
        if self.left is self.right:
            return self.left.gram_times(X)
        product = self.left.apply_transpose(self.right.apply(X))
        return np.asarray(product + self.right.apply_transpose(self.left.apply(X))) / 2

    def dense(self) -> Floats:
        """M as an array."""
        if self.left is self.right:
            return self.left.gram()
        gram = self.left.dense().T @ self.right.dense()
        return np.asarray(gram + gram.T) / 2


def sums_of_grams(grams: Sequence[PairGram]) -> Floats:
    """``tr M`` and ``1ᵀM1`` of Grams of one attribute (Grams x 2): those of conditions at once."""
    sums = np.empty((len(grams), 2))
    pairs = []
    for place, gram in enumerate(grams):
        left, right = gram.left, gram.right
        if left is right or not len(left) == len(right) == 1 or left.shape[1] > SMALL_ENTRIES:
            sums[place] = gram.sums
        else:
            pairs.append(place)
    if pairs:
        lefts = np.concatenate([grams[place].left.dense() for place in pairs])
        rights = np.concatenate([grams[place].right.dense() for place in pairs])
        sums[pairs, 0] = np.einsum("ij,ij->i", lefts, rights)
        sums[pairs, 1] = lefts.sum(axis=1) * rights.sum(axis=1)
    return sums


@dataclass(frozen=True, eq=False)
class _Block:
    """Products of the same number k of attributes: which, with which Gram, in which subsets."""

    attributes: Integers  # J x k
    grams: Integers  # J x k, numbers over all attributes
    coefficients: Floats  # J
    sizes: Floats  # J, the same where nothing cancels
    subsets: Integers  # J x 2^k, numbers of the subsets; bit m of the column: position m is in


class Quadratic:
    """``V = Σ_j c_j ⊗_i M_ji`` of a batch, interned, with the subsets A of its supports.

    Two numbers per Gram, ``r`` (what a residual costs) and ``s`` (what the total costs), give
    ``v_A = Σ_j c_j Π_{i∈A} r_ij Π_{i∈supp∖A} s_ij``, where c_j is a squared weight. Cost of
    ``values``: the number of pairs of a term and a subset of its support.

    With ``folded``, two more attributes of one value stand at the end, "even" and "odd": a subset
    contains the one that says whether it has an even number of attributes with two values. A set
    of attributes that contains both is measured whole, one with either is folded (see
    :class:`~lrm.planning.design.products.strategy.Marginals`), and a set still informs about its
    subsets.
    """

    def __init__(self, batch: ProductBatch, *, folded: bool = False) -> None:
        self.folded = folded
        self.sizes = batch.sizes + ((1, 1) if folded else ())
        self.mirrored = np.array(self.sizes) == 2
        self.d = len(self.sizes)
        self.grams: list[PairGram] = []
        self.attribute_of: list[int] = []
        pairs = FactorPairs.of(batch)
        coefficients = pairs.coefficients.copy()
        rows: list[Integers] = []
        numbers: list[Integers] = []
        for i in range(len(batch.sizes)):
            at, grams, of = pairs.telling(i)
            known = np.full(len(grams), -1)
            for place, gram in enumerate(grams):
                if gram.constant is None:
                    known[place] = len(self.grams)
                    self.grams.append(gram)
                    self.attribute_of.append(i)
                elif gram.constant != 1.0:
                    coefficients[at[of == place]] *= gram.constant
            active = known[of] >= 0
            rows.append(at[active])
            numbers.append(known[of[active]])
        self.tells = np.array([gram.tells for gram in self.grams], dtype=bool)
        every = np.concatenate(rows)
        order = np.argsort(every, kind="stable")  # by product, and within it by attribute
        pair_numbers = np.concatenate(numbers)[order]
        counts = np.bincount(every, minlength=len(coefficients))
        attributes = np.array(self.attribute_of, dtype=np.int64)[pair_numbers]
        self._gather(counts, attributes, pair_numbers, coefficients)

    def _gather(
        self, counts: Integers, attributes: Integers, grams: Integers, coefficients: Floats
    ) -> None:
        """Blocks of products with equally many attributes, each distinct product once."""
        words = bits_of(self.d).shape[1]
        # Bytes that all pairs of a term and a subset of its attributes may take while they are
        # numbered.
        most = 800_000_000 // (60 + 16 * words)
        if np.sum(2.0**counts) > most:
            raise WorkloadError(
                f"the terms have too many subsets of attributes: at most {most:,} pairs of a term "
                "and a subset can be held; ask for tables of fewer attributes, or for fewer tables"
            )
        ends = np.cumsum(counts)
        blocks = []
        for k in np.unique(counts):
            rows = np.flatnonzero(counts == k)
            places = (ends[rows] - k)[:, None] + np.arange(k)
            rows_of_grams = grams[places]
            keys = rows_of_grams
            if len(self.grams) ** int(k) < LARGEST_KEY:  # numbers are sorted faster than rows
                keys = rows_of_grams @ len(self.grams) ** np.arange(k)[::-1]
            _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
            distinct = rows_of_grams[first]
            weights, sizes = (
                np.bincount(place.reshape(-1), block_weights, len(distinct))
                for block_weights in (coefficients[rows], np.abs(coefficients[rows]))
            )
            nonzero = sizes != 0
            where = attributes[places[first[nonzero]]]
            masks = self._subset_masks(where, distinct[nonzero])
            blocks.append((where, distinct[nonzero], weights[nonzero], sizes[nonzero], masks))
        every = [block[-1].reshape(-1, block[-1].shape[-1]) for block in blocks]
        masks = np.concatenate(every) if every else np.zeros((0, words), dtype=np.uint64)
        self.index = SubsetIndex(masks, self.d)
        self.blocks = [
            _Block(where, distinct, weights, sizes, self.index.find(masks))
            for where, distinct, weights, sizes, masks in blocks
        ]
        self._cancel = any(np.any(block.sizes != block.coefficients) for block in self.blocks)

    def _subset_masks(self, attributes: Integers, grams: Integers) -> Masks:
        bits = bits_of(self.d)[attributes]
        bits[~self.tells[grams]] = 0
        masks = np.zeros((len(attributes), 1, bits.shape[-1]), dtype=np.uint64)
        for position in range(attributes.shape[1]):
            with_it = masks | bits[:, position, None, :]
            masks = np.concatenate([masks, with_it], axis=1)
        if self.folded:
            two = masks_of(self.mirrored[None])[0]
            masks |= bits_of(self.d)[self.d - 2 + popcount(masks & two) % 2]
        return masks

    def unfolded(self, sets: Masks) -> NDArray[np.bool_]:
        """Which sets are measured whole: those both even and odd, or with nothing to fold."""
        both, two = masks_of(np.stack([np.arange(self.d) >= self.d - 2, self.mirrored]))
        none_to_fold = ~np.any(sets & two, axis=1)
        return np.asarray(np.all((sets & both) == both, axis=1) | none_to_fold)

    @cached_property
    def supports(self) -> Masks:
        """The distinct sets of attributes that a product distinguishes values in."""
        ends = [block.subsets[:, -1] for block in self.blocks]
        numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *ends]))
        return np.asarray(self.index.masks[numbers])

    def of_attribute(self, attribute: int) -> list[int]:
        """Numbers of the Grams of one attribute, of which none is constant."""
        return self._of_attribute[attribute]

    @cached_property
    def _of_attribute(self) -> list[list[int]]:
        numbers: list[list[int]] = [[] for _ in self.sizes]
        for number, attribute in enumerate(self.attribute_of):
            numbers[attribute].append(number)
        return numbers

    def grams_of(self, attribute: int) -> list[PairGram]:
        """The Grams of one attribute."""
        return [self.grams[number] for number in self.of_attribute(attribute)]

    def gathered(self, numbers: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """``r`` and ``s`` of all Grams, from those of each attribute."""
        residual, total = np.zeros((2, len(self.grams)))
        for attribute, (by_residual, by_total) in enumerate(numbers):
            places = self.of_attribute(attribute)
            residual[places], total[places] = by_residual, by_total
        return residual, total

    def needs_basis(self, attribute: int) -> bool:
        """Whether more rows than the identity can help: some Gram is no mix of I and 11ᵀ.

        Attributes that are folded keep the identity.
        """
        if self.folded and self.mirrored[attribute]:
            return False
        for number in self.of_attribute(attribute):
            gram = self.grams[number]
            if not gram.tells or gram.left.kind == gram.right.kind == "identity":
                continue
            if not _is_plain(gram):
                return True
        return False

    def affords_basis(self, attribute: int, rows: int = 16) -> bool:
        """Whether an image of some rows under each Gram of an attribute can be held."""
        entries = len(self.of_attribute(attribute)) * self.sizes[attribute] * rows
        return entries <= ARRAY * 2

    def values(self, residual: Floats, total: Floats) -> Floats:
        """``v_A`` for every subset, from one number r and one number s per Gram."""
        v = self._sums(residual, total, [block.coefficients for block in self.blocks])
        return np.maximum(v, 0.0)

    def demands(self, residual: Floats, total: Floats) -> Floats:
        """``v_A`` and a little of all that summands ask for, so that a strategy determines them."""
        v = self.values(residual, total)
        if not self._cancel:
            return v
        sizes = [block.sizes for block in self.blocks]
        # What a sum of products asks of a subset that its summands ask for, at least, as a share of
        # what they would ask separately. Summands may cancel, as in "a or anything", but each is
        # answered.
        return np.maximum(v, 1e-12 * self._sums(np.abs(residual), np.abs(total), sizes))

    def _sums(self, residual: Floats, total: Floats, coefficients: Sequence[Floats]) -> Floats:
        v = np.zeros(len(self.index))
        for block, weights in zip(self.blocks, coefficients, strict=True):
            products = weights[:, None]
            for position in range(block.grams.shape[1]):
                g = block.grams[:, position]
                products = np.concatenate(
                    [products * total[g][:, None], products * residual[g][:, None]], axis=1
                )
            v += np.bincount(block.subsets.ravel(), products.ravel(), len(v))
        return v

    def pull_back(self, residual: Floats, total: Floats, slope: Floats) -> tuple[Floats, Floats]:
        """Derivatives of ``Σ_A slope_A·v_A`` by r and by s."""
        by_residual, by_total = np.zeros(len(self.grams)), np.zeros(len(self.grams))
        for block in self.blocks:
            k = block.grams.shape[1]
            r, s = residual[block.grams], total[block.grams]
            gathered = slope[block.subsets] * block.coefficients[:, None]
            for position in range(k):
                rest = gathered
                # Contract all other positions, the highest bit first.
                for other in range(k - 1, -1, -1):
                    if other != position:
                        rest = _contract(rest, other, position, r[:, other], s[:, other])
                g = block.grams[:, position]
                by_total += np.bincount(g, rest[:, 0], len(self.grams))
                by_residual += np.bincount(g, rest[:, 1], len(self.grams))
        return by_residual, by_total


def _is_plain(gram: PairGram) -> bool:
    """Whether M is a mix of I and 11ᵀ, by its diagonal and its products with three vectors.

    Nothing of size n x n: M·x for a random x differs from that of the mix for any other M.
    """
    n = len(gram.squares)
    if n == 1:
        return True
    if not np.allclose(gram.squares, gram.squares[0]):
        return False
    probes = np.random.default_rng(0).random((n, 2))
    first = np.zeros((n, 1))
    first[0] = 1.0
    images = gram.times(np.hstack([first, probes]))
    off = images[1, 0]
    mix = (gram.squares[0] - off) * probes + off * probes.sum(axis=0)
    return np.allclose(images[1:, 0], off) and np.allclose(images[:, 1:], mix)


def _contract(values: Floats, other: int, position: int, r: Floats, s: Floats) -> Floats:
    """Sum out the bit ``other``, which is the highest, or the one above ``position``'s."""
    count, width = values.shape
    if other > position:
        half = values.reshape(count, 2, width // 2)
        return np.asarray(half[:, 0] * s[:, None] + half[:, 1] * r[:, None])
    # The kept bit is now the highest one; the bit to contract stands just below it.
    quarter = values.reshape(count, 2, 2, width // 4)
    contracted = quarter[:, :, 0] * s[:, None, None] + quarter[:, :, 1] * r[:, None, None]
    return np.asarray(contracted.reshape(count, width // 2))


@dataclass(frozen=True, eq=False)
class FactorPairs:
    """Pairs of products (``left``, ``right``) whose Grams, with coefficients, add to V."""

    batch: ProductBatch
    left: Integers
    right: Integers
    coefficients: Floats

    @classmethod
    def of(cls, batch: ProductBatch) -> FactorPairs:
        """Every product with itself, and with those that the same term adds to it."""
        weight = batch.weights[batch.term_of]
        squares = (batch.coefficients * weight) ** 2
        same = np.arange(len(batch.choice))
        if batch.simple:
            return cls(batch, same, same, squares)
        counts = np.bincount(batch.term_of, minlength=batch.terms)
        count = int(np.sum(counts * (counts + 1) // 2))
        if count > MOST_PAIRS:
            raise WorkloadError(
                f"the sums of products of this batch have {count:,} pairs of products, and at most "
                f"{MOST_PAIRS:,} can be held; split conditions that join many alternatives by OR"
            )
        lefts, rights, coefficients = [same], [same], [squares]
        for term in np.flatnonzero(counts > 1).tolist():
            rows = batch.summand_numbers(term)
            a, b = (rows[index] for index in np.triu_indices(len(rows), 1))
            lefts.append(a)
            rights.append(b)
            coefficients.append(2 * batch.coefficients[a] * batch.coefficients[b] * weight[a] ** 2)
        return cls(
            batch, np.concatenate(lefts), np.concatenate(rights), np.concatenate(coefficients)
        )

    def on(self, attribute: int) -> tuple[list[PairGram], Integers]:
        """The distinct Grams of an attribute, and the number of each pair's Gram."""
        column, width = self.batch.choice[:, attribute], len(self.batch.factors[attribute])
        return self._grams(attribute, column[self.left] * np.int64(width) + column[self.right])

    def telling(self, attribute: int) -> tuple[Integers, list[PairGram], Integers]:
        """The pairs that are not two totals of an attribute, their distinct Grams, and whose.

        Nearly all pairs of a batch over many attributes are totals, whose Gram is 11ᵀ.
        """
        at, numbers = self.batch.chosen(attribute)
        width = np.int64(len(self.batch.factors[attribute]))
        keys = numbers * (width + 1)
        if not self.batch.simple:
            column = self.batch.choice[:, attribute]
            at = np.flatnonzero(column[self.left] | column[self.right])
            keys = column[self.left[at]] * width + column[self.right[at]]
        return at, *self._grams(attribute, keys)

    def _grams(self, attribute: int, keys: Integers) -> tuple[list[PairGram], Integers]:
        """From ``left·(factors) + right``, which is far above the number of pairs that occur."""
        if not len(keys):
            return [], keys
        distinct, of = np.unique(keys, return_inverse=True)
        choices = self.batch.factors[attribute]
        pairs = (divmod(key, len(choices)) for key in distinct.tolist())
        grams = [PairGram(choices[left], choices[right]) for left, right in pairs]
        return grams, of.reshape(-1)
