"""Short vectors, by which the candidates of a search are picked before full vectors score them.

Some encoders are trained so that their first dimensions say most. For the others the vectors are projected on
the directions in which they differ most: a randomised principal component analysis with a fixed seed.
"""

import numpy as np

from catalog.search.meaning import Vectors

DIMENSIONS = 128
COARSE_WORDS = 64  # of word vectors beside others: they were trained to be cut there
# By how much a similarity of short vectors may differ from that of full ones: of what is cut, and of what is
# projected. Of 400 queries to 10,000 tools all had the same first five as without short vectors.
CUT_SLACK, PROJECTED_SLACK = 0.175, 0.125
_SPARE_DIMENSIONS = 16
_ROUNDS = 3
_MOST_ROWS = 8192
_SEED = 20260


def find_basis(vectors: Vectors, dimensions: int = DIMENSIONS) -> Vectors:
    """Orthonormal columns, so many or as many as the vectors have dimensions; none where all are zeros."""
    sample = _take_sample(vectors[vectors.any(axis=1)])
    if len(sample) == 0:
        return np.empty((vectors.shape[1], 0), dtype=np.float32)
    if vectors.shape[1] <= dimensions:
        return np.eye(vectors.shape[1], dtype=np.float32)
    width = min(dimensions + _SPARE_DIMENSIONS, vectors.shape[1])
    random = np.random.default_rng(_SEED)
    directions = random.standard_normal((vectors.shape[1], width), dtype=np.float32)
    for _ in range(_ROUNDS):
        directions, _unused = np.linalg.qr(sample.T @ (sample @ directions))
    _left, _sizes, right = np.linalg.svd(sample @ directions, full_matrices=False)
    basis: Vectors = np.ascontiguousarray((directions @ right.T)[:, :dimensions], dtype=np.float32)
    return basis


def _take_sample(vectors: Vectors) -> Vectors:
    if len(vectors) <= _MOST_ROWS:
        return vectors
    rows = np.random.default_rng(_SEED).choice(len(vectors), _MOST_ROWS, replace=False)
    sample: Vectors = vectors[np.sort(rows)]
    return sample
