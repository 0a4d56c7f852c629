"""Small mistakes: where they can be made, which tests they meet, and what survives."""

import ast
import json

import pytest

from tests.faults import mutants, mutation
from tests.faults.mutants import CAUGHT, ROOT, SURVIVED
from tests.faults.mutation import CORE, TESTS, UNREACHED, chosen, drawn, main, reached
from tests.faults.sites import sites

MODULE = '''"""What it is."""
LIMIT = 2

def small(n):
    assert n >= 0, "not below nothing"
    if n < LIMIT and not n == 7:
        return True
    return False

def unknown(n: int = 3) -> None:
    print(n)
'''
TEST = """from memci.small import small

def test_two_is_not_small():
    assert small(1)
    assert not small(2)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a test of one of its functions."""
    made = tmp_path / "root"
    for name, text in {
        "memci/__init__.py": "",
        "memci/small.py": MODULE,
        "tests/test_small.py": TEST,
        "pyproject.toml": "",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text, "utf-8")
    (made / "tests" / "__init__.py").write_text("", "utf-8")
    (made / "tests" / "faults").symlink_to(ROOT / "tests" / "faults")
    for module in (mutants, mutation):
        monkeypatch.setattr(module, "ROOT", made)
    monkeypatch.setattr(mutation, "TESTS", ("tests/test_small.py",))
    return made


def test_mistakes_are_one_change_of_the_text_each(package):
    """Comparisons, conditions, numbers and calls are changed, each so that it is Python; assertions are left alone."""
    found = list(sites(package, "memci/small.py"))

    names = [site.mutant.name.partition(":")[2] for site in found]
    assert [name.partition(": ")[0] for name in names] == [
        "2 2 → 3",
        "2 2 → 1",
        "6 and → or",
        "6 < → <=",
        "6 not → nothing",
        "6 == → !=",
        "6 7 → 8",
        "6 7 → 6",
        "7 True → False",
        "8 False → True",
        "10 3 → 4",
        "10 3 → 2",
        "11 it → pass",
    ]
    assert {site.function.partition(":")[2] for site in found} == {"", "small", "unknown"}
    for site in found:
        assert MODULE.count(site.mutant.old) == 1
        assert ast.parse(MODULE.replace(site.mutant.old, site.mutant.new))


def test_mistakes_are_drawn_from_the_whole_core():
    """There are thousands of places; the seed says which come first, the same each time; each test folder is there."""
    found = list(drawn(CORE, 7, 10**6))
    first, again, other = (list(drawn(["memci/window"], seed, 20)) for seed in (7, 7, 8))

    assert len(found) > 3_000
    assert len({site.mutant.path.split("/")[1] for site in found[:200]}) >= 6
    assert first == again != other
    assert all((ROOT / path).exists() for path in (*CORE, *TESTS))


def test_tests_of_a_function_are_the_quickest_that_reach_it():
    """Those that call it, while there is time; a line outside of functions has those of its module."""
    reach = {
        "slow": (14.0, ["memci/a.py:f"]),
        "slower": (50.0, ["memci/a.py:f"]),
        "quick": (0.1, ["memci/a.py:f", "memci/b.py:g"]),
        "other": (0.2, ["memci/a.py:h"]),
    }

    assert chosen(reach, "memci/a.py:f") == ["quick", "slow"]
    assert chosen(reach, "memci/a.py:") == ["quick", "other", "slow"]
    assert chosen(reach, "memci/c.py:f") == []


@pytest.mark.slow
def test_survivors_are_named(package, capsys):
    """What no test notices is told as a line of code, and so is what no test reaches; the package stays as it is."""
    module, kept = package / "memci" / "small.py", package / "reach.json"
    module.write_text("def small(n):\n    return n < 2\n\ndef unknown(n):\n    return not n\n", "utf-8")
    (package / "tests" / "test_small.py").write_text(TEST.replace("    assert not small(2)\n", ""), "utf-8")

    code = main(["--seed", "7", "--only", "memci/small.py", "--reach", str(kept)])

    said = capsys.readouterr().out
    lines = [line.rpartition("  ")[0] for line in said.splitlines()[1:-1]]
    assert code == 1
    assert set(lines) == {
        f"{CAUGHT}     memci/small.py:2 2 → 1: return n < 2",
        f"{UNREACHED}  memci/small.py:5 not → nothing: return not n",
        f"{SURVIVED}   memci/small.py:2 2 → 3: return n < 2",
        f"{SURVIVED}   memci/small.py:2 < → <=: return n < 2",
    }
    assert said.splitlines()[-1].startswith("4 tried: ")
    assert [functions for _, functions in json.loads(kept.read_text()).values()] == [["memci/small.py:small"]]
    assert "n < 2" in module.read_text("utf-8")


@pytest.mark.slow
def test_tests_that_fail_without_a_mistake_prove_nothing(package):
    """No mistake is made then."""
    (package / "tests" / "test_small.py").write_text("def test_wrong():\n    assert False\n", "utf-8")

    with pytest.raises(SystemExit, match="fail without any mistake"):
        reached(["tests/test_small.py"])
