"""The documentation says what the code does: commands parse, keys and names are complete, examples run."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
import yaml

import autotune
from autotune.cli import main
from autotune.cli.parsing import GROUPS, parser
from autotune.cli.run import EXAMPLE as RUN_EXAMPLE
from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.source_text import read_source, render
from autotune.core.c_types import C_TYPES
from autotune.core.expression_ops import FUNCTIONS
from autotune.core.launch_plan import DEVICE_NAMES
from autotune.core.records import Tier
from autotune.core.trials import Status
from autotune.devices import backend
from autotune.errors import SpaceError
from autotune.evaluation.evaluator import MIN_TIMEOUT_S, TIMEOUT_FACTOR
from autotune.searchers import engine_names, strategy_names
from autotune.space import load_space
from autotune.space import yaml_document as document
from autotune.space.arguments import FILLS, ROLES
from autotune.space.spec import COMPILER_DIALECTS, DIALECTS
from autotune.tuning import finalists, remeasure, turns
from autotune.tuning.context import POLICY
from autotune.tuning.options import DEFAULT_BUDGET

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests/README.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "reference"),  # made by the site
]
FIRST = DOCS / "space-format.md"
CONTRACT = [FIRST, *(DOCS / f"space-{part}.md" for part in ("parameters", "launch", "verification"))]
GUIDES = ["Start", "Describe", "Search", "Understand", "Ship", "Concepts"]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)  # also in a list
NEEDS = "# needs "  # a block that begins so only parses here: it needs a GPU, or what it names


def text_of(name: str) -> str:
    return (DOCS / name).read_text()


def blocks(page: Path, *languages: str) -> list[str]:
    found = FENCE.findall(page.read_text())
    return [textwrap.dedent(code) for language, code in found if language in languages]


def described(text: str, words) -> list[str]:
    """Those words that are not in the text, as code: alone in backticks, or at the start of a piece of it."""
    return [word for word in words if not re.search(rf"`{re.escape(word)}[`:(,]", text)]


@cache
def verbs() -> dict[str, argparse.ArgumentParser]:
    return next(a.choices for a in parser()._actions if isinstance(a, argparse._SubParsersAction))


def options(verb: argparse.ArgumentParser) -> set[str]:
    return {option for action in verb._actions for option in action.option_strings}


def pages(paths):
    return pytest.mark.parametrize("page", paths, ids=lambda path: str(path.relative_to(ROOT)))


# ------------------------------------------------------------------------------------------ commands


def commands(page: Path, *, here: bool = False) -> list[str]:
    """Every command line of a page's shell blocks that runs autotune, without comments and pipes.

    `here` leaves out blocks that say that they need what is not on every machine.
    """
    chosen = [code for code in blocks(page, "", "sh") if not (here and code.startswith(NEEDS))]
    lines = [line for code in chosen for line in code.replace("\\\n", " ").splitlines()]
    parts = [part.strip() for line in lines for part in re.split(r"&&|\|\||\||#", line)]
    return [part for part in parts if part.startswith("autotune ")]


@pages([page for page in PAGES if commands(page)])
def test_every_command_line_parses(page):
    whole = parser()
    for command in commands(page):
        whole.parse_args(shlex.split(command)[1:])


def test_every_configuration_to_run_is_valid(monkeypatch):
    monkeypatch.chdir(ROOT)
    known = [RUN_EXAMPLE, *(command for page in PAGES for command in commands(page))]
    configs = {
        re.sub("^autotune run", "space", one) for one in known if re.match("autotune run .*--config", one)
    }
    assert len(configs) > 0
    for words in configs:
        assert main([*shlex.split(words), "--device", "sm_90"]) == 0, words


@pages(PAGES)
def test_every_command_has_a_verb_and_options_that_exist(page):
    prose = FENCE.sub("", page.read_text())
    for command in [*commands(page), *re.findall(r"`(autotune [^`]+)`", prose)]:
        _, verb, *words = command.split()
        assert verb in verbs(), command
        unknown = [
            word for word in words if word.startswith("--") and word not in ("--", *options(verbs()[verb]))
        ]
        assert not unknown, command


def test_every_listed_verb_is_in_the_readme_and_every_option_in_the_guides():
    readme = (ROOT / "README.md").read_text()
    listed = [verb for group in GROUPS.values() for verb in group]
    assert not [verb for verb in listed if f"`autotune {verb}" not in readme]
    guides = "".join(page.read_text() for page in PAGES)
    for name, verb in verbs().items():
        missing = [option for option in options(verb) - {"-h", "-d"} if option not in guides]
        assert not missing, name


# -------------------------------------------------------------------------------------- space format


def contract() -> str:
    return "".join(page.read_text() for page in CONTRACT)


def example() -> str:
    return next(code for code in blocks(FIRST, "yaml") if code.startswith("schema:"))


def write(folder: Path, text: str) -> Path:
    for name in ("scale_sum.cu", "scale_sum.py", "products.cu", "products.py"):
        (folder / name).touch()
    path = folder / "example.yaml"
    path.write_text(text)
    return path


def test_every_key_that_the_reader_accepts_is_described(tmp_path, monkeypatch):
    accepted = set()
    original = document.Element.record

    def record(self, required, optional=(), examples=()):
        accepted.update((*required, *optional))
        return original(self, required, optional, dict(examples))

    monkeypatch.setattr(document.Element, "record", record)
    load_space(write(tmp_path, example()))
    assert {
        "schema",
        "landmarks",
        "cpu",
        "fill",
        "value",
        "shared_bytes",
        "opencl",
        "rtol",
        "flops",
    } <= accepted
    assert not described(contract(), accepted)


@pytest.mark.parametrize(
    "words",
    [FUNCTIONS, ROLES, FILLS, DIALECTS, COMPILER_DIALECTS, DEVICE_NAMES, [*C_TYPES, *C_TYPES.values()]],
    ids=["functions", "roles", "fills", "dialects", "compilers", "device", "types"],
)
def test_every_word_of_the_space_format_is_described(words):
    text = contract()
    short = [word for word in words if not word.startswith("device.")]
    assert not described(text, short)
    assert not [
        word for word in words if f"`{word}`" not in text and f"`{word}(" not in text and word not in short
    ]


def test_the_example_and_every_fragment_of_the_space_format_load(tmp_path):
    whole = yaml.safe_load(example())
    for code in [code for page in CONTRACT for code in blocks(page, "yaml")]:
        is_whole = code.startswith("schema:")
        load_space(write(tmp_path, code if is_whole else yaml.safe_dump(whole | yaml.safe_load(code))))


def mistakes() -> list[tuple[str, str, str]]:
    table = FIRST.read_text().split("\n## Errors\n")[1]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+)` \|$", table, re.MULTILINE)


@pytest.mark.parametrize(("right", "wrong", "message"), mistakes(), ids=lambda text: text[:30])
def test_every_mistake_of_the_space_format_is_answered_as_it_says(tmp_path, right, wrong, message):
    assert right in example()
    with pytest.raises(SpaceError) as error:
        load_space(write(tmp_path, example().replace(right, wrong, 1)))
    assert message in str(error.value)


# ------------------------------------------------------------------------------------------ complete


def test_every_status_and_every_tier_is_described():
    assert not described(text_of("statuses.md"), [status.value for status in Status])
    assert not described(
        text_of("serving-api.md"), [tier.value for tier in Tier] + [tier.name for tier in Tier]
    )


def test_every_public_name_is_described():
    assert not described(
        text_of("production.md") + text_of("serving-api.md") + text_of("python-api.md"), autotune.__all__
    )


def test_every_public_attribute_of_a_result_is_described():
    public = {name for name in (*vars(autotune.Best), *autotune.Best.__dataclass_fields__) if name[0] != "_"}
    assert not described(text_of("serving-api.md"), public)
    assert not described(text_of("serving-api.md"), autotune.Match.__dataclass_fields__)


def test_every_engine_and_strategy_is_described_and_no_other():
    text = text_of("searching.md")
    strategies = [name for engine in engine_names() for name in strategy_names(engine)]
    assert not described(text, [*engine_names(), *strategies])
    section = text.split("## Engines and strategies")[1].split("```")[0]
    named = set(re.findall(r"`([a-z]\w+)`", section))
    assert named <= {*engine_names(), *strategies}


def test_the_numbers_of_the_guides_are_those_of_the_code(whole_last_round):
    measuring, searching = (" ".join(text_of(name).split()) for name in ("measuring.md", "searching.md"))
    assert str(POLICY) in measuring
    assert f"The {finalists.MAX_FINALISTS} fastest configurations and the default" in measuring
    assert f"{remeasure.ROUNDS} rounds of {turns.SAMPLES_PER_TURN} samples" in measuring
    assert (
        f"`--budget N`: how many configurations to try, the default included. {DEFAULT_BUDGET.trials} if"
        in searching
    )
    assert (
        f"the limit is {TIMEOUT_FACTOR} times" in searching
        and f"at least {MIN_TIMEOUT_S:g} s and at most `--timeout`" in searching
    )


def test_every_word_of_the_portable_header_is_described():
    header = (ROOT / "kernels/portable.h").read_text()
    common, opencl, cuda = re.split(r"^#ifdef __OPENCL_VERSION__.*|^#else /\*.*", header, flags=re.MULTILINE)
    defined = [set(re.findall(r"^#define (\w+)", part, re.MULTILINE)) for part in (common, opencl, cuda)]
    helpers = re.compile(r"PORTABLE_H|PRAGMA|DEFINE_\w+|\w+_EXPANDED|VECTOR_(SUM_)?\d")
    words = [word for word in defined[0] | (defined[1] & defined[2]) if not helpers.fullmatch(word)]
    assert len(words) > 20
    assert not described(text_of("portable-dialect.md"), words)


@pytest.mark.parametrize("kernel", sorted((ROOT / "kernels").glob("*.cu")), ids=lambda path: path.stem)
def test_every_kernel_has_a_space_a_reference_landmarks_and_a_page_with_them(kernel):
    spec = load_space(ROOT / "spaces" / f"{kernel.stem}.yaml")
    assert spec.kernel == kernel.stem and spec.source.samefile(kernel)
    assert spec.reference.samefile(kernel.with_suffix(".py"))
    assert spec.landmarks
    names = [landmark.name for landmark in spec.landmarks]
    pages = [text for text in map(Path.read_text, DOCS.glob("*.md")) if f"spaces/{kernel.stem}.yaml" in text]
    assert any(not described(text, names) for text in pages), f"no page of docs has all of {names}"


def test_every_landmark_of_the_ladder_is_on_its_page():
    spec = load_space(ROOT / "spaces/reduce.yaml")
    names = [landmark.name for landmark in spec.landmarks]
    page = text_of("reduction-ladder.md")
    assert not described(page, names)
    assert set(re.findall(r"`(reduce\d\w+)`", page)) <= set(names)


def guide_pages() -> list[Path]:
    """The pages of the sections Start to Concepts."""
    sections = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text_of("README.md"), re.MULTILINE | re.DOTALL)
    assert [title for title, _ in sections][: len(GUIDES)] == GUIDES
    rows = "".join(body for title, body in sections if title in GUIDES)
    return [DOCS / name for name in re.findall(r"^\| \[[^]]+\]\((.+\.md)\)", rows, re.MULTILINE)]


def test_guides_have_at_most_30_000_words():
    assert sum(len(page.read_text().split()) for page in [DOCS / "README.md", *guide_pages()]) <= 30_000


# ---------------------------------------------------------------------------------- links and snippets


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pages(PAGES)
def test_links_resolve(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_the_index_has_every_page():
    for folder in (DOCS, DOCS / "decisions"):
        index = (folder / "README.md").read_text()
        pages = [page.name for page in folder.glob("*.md") if page.name != "README.md"]
        assert [page for page in pages if f"]({page})" not in index] == []


@pages([page for page in PAGES if blocks(page, "python")])
def test_python_snippets_compile(page):
    for code in blocks(page, "python"):
        compile(code, str(page), "exec")


def kernels(page):
    """The code of a page in C, without functions of the host alone."""
    return [code for code in blocks(page, "c") if "restrict " not in code]


@pytest.mark.parametrize("language", ["opencl", "cuda"])
@pages([page for page in PAGES if kernels(page)])
def test_kernels_on_a_page_compile_in_both_languages(page, language, tmp_path):
    compiler = CudaCompiler("sm_80") if language == "cuda" else backend("opencl").open_compiler(0)
    macros = {"DTYPE": "float", "BLOCK_SIZE": 64, "WORK_PER_THREAD": 2}
    for number, code in enumerate(kernels(page)):
        path = tmp_path / f"kernel{number}.cu"
        path.write_text(code)
        assert compiler.compile(render(read_source(path), macros), ()).data


# ---------------------------------------------------------------------------------- the first kernel


def script(page: str) -> str:
    """The page as a shell script: its files are written and its commands run, in their order."""
    steps = []
    for name, language, code in re.findall(
        r"(?:^File `([\w.]+)`:\n\n)?^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    ):
        if name:
            steps.append(f"cat > {name} <<'END_OF_FILE'\n{code}END_OF_FILE\n")
        elif language == "sh" and not code.startswith(NEEDS):
            steps.append(code)
    return "".join(steps)


def run_script(folder: Path, page: str, *edits: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a page as a script in a folder, with this checkout for the clone."""
    commands = script(page).replace("clone=~/autotune", f"clone={shlex.quote(str(ROOT))}", 1)
    for old, new in edits:
        assert old in commands
        commands = commands.replace(old, new, 1)
    functions = f'pip() {{ :; }}\nautotune() {{ {shlex.quote(sys.executable)} -m autotune "$@"; }}\n'
    python = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    environment |= {"POCL_CACHE_DIR": str(folder / "pocl"), "PYOPENCL_NO_CACHE": "1"}
    environment.pop("AUTOTUNE_CACHE", None)
    done = subprocess.run(
        ["bash", "-e", "-c", functions + python + commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def shown(page: str) -> list[str]:
    """What a page shows of outputs."""
    return [code for language, code in FENCE.findall(page) if language == "text"]


def test_the_first_kernel_works_as_its_page_says(tmp_path):
    page = text_of("first-kernel.md")
    fewer = "sed -i -e 's/32, 64, 128, 256, 512/256/' -e 's/1, 2, 4, 8/4/' axpy.yaml\n"
    search = "autotune search axpy.yaml\n"  # of 2 configurations, which are as good as 35
    done = run_script(tmp_path, page.replace("4_194_304", "65_536"), (search, fewer + search))
    assert "35 valid of 40" in done.stdout and shown(page)[0] in done.stdout
    assert "tried   2 of 2 valid configurations with exhaustive" in done.stdout
    assert "kept    cache/" in done.stdout and "-DORDER=ORDER_" in done.stdout
    assert done.stdout.splitlines().count("right") == 1 and "exit code 1" in done.stdout
    assert "broken.cu: the default configuration fails" in done.stderr and "out_of_bounds" in done.stderr
    assert {file.name for file in tmp_path.glob("axpy/cache/*/*")} == {"axpy.json", "device.json"}


def test_the_first_kernel_in_triton_works_as_its_page_says(tmp_path):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    page = text_of("first-kernel-in-triton.md")
    done = run_script(tmp_path, page)
    found = " ".join(done.stdout.split())
    assert "the default compiles for sm_90" in found and "12 valid of 12 combinations" in found
    assert len(shown(page)) == 2 and [one for one in shown(page) if " ".join(one.split()) not in found] == []
    assert "16 valid of 16 combinations" in found and found.count("no findings") == 2


@pytest.mark.wide
def test_a_guessed_space_becomes_right_as_its_page_says(tmp_path):
    page = text_of("space-format.md")
    new = "autotune new products.cu"
    done = run_script(tmp_path, page, (new, f"{new} && cat products.yaml products.py > guessed\n#"))
    guessed = (tmp_path / "guessed").read_text()
    section = page.split("## Complete a draft")[1].split("## ")[0]
    found = re.findall(r"^\d\. \*\*[\w ]+\*\*: `(.+?)`[.,] ", section, re.MULTILINE)
    assert len(found) == 6 and [one for one in found if one not in guessed] == []
    assert "9 valid of 9 combinations" in done.stdout and "no findings" in done.stdout
    assert "ok at 4 sizes" in done.stdout
