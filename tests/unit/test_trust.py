"""A cache is data: what its records name becomes code only where the program or its project says so."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune import best_config, load_kernel
from autotune.core.packaged import packaged_folder
from autotune.core.records import Tier
from autotune.errors import Untrusted
from autotune.runtime.shipped import FOLDER
from autotune.serving import cache
from autotune.serving.allowed_options import refused_options
from tests.cache_example import DEVICE, entry, record
from tests.conftest import run_in_process

KERNEL = "__global__ void reduce(const float *x, float *y) {}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a cache and a source; the program runs elsewhere, beside another source."""
    for name in ("project/kernels", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("project/kernels/mine.cu", "elsewhere/theirs.cu"):
        (tmp_path / name).write_text(KERNEL)
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "project"


def stored(root, **changes):
    cache.store(root, DEVICE, replace(record(entry(64)), **changes))


def test_a_source_in_the_project_that_holds_the_cache_is_used(project):
    stored(project / "cache", source="../kernels/mine.cu")
    assert load_kernel("reduce", cache=project / "cache").source.path == project / "kernels/mine.cu"
    own = project / "cache/objective.energy"
    stored(own, source="../../kernels/mine.cu")
    assert load_kernel("reduce", cache=own).source.path == project / "kernels/mine.cu"


@pytest.mark.parametrize("folder", ["cache", "config/deep/tuned", "."])
def test_a_program_in_its_project_finds_the_source_wherever_it_keeps_its_cache(project, monkeypatch, folder):
    monkeypatch.chdir(project)
    source = Path("kernels/mine.cu")
    stored(folder, source=str(Path(*[".."] * len(Path(folder).parts), source)))
    assert load_kernel("reduce", cache=folder).source.path == source


def outside(project, kind):
    """A source of a record that leads to a file outside the project."""
    target = project.parent / "elsewhere/theirs.cu"
    (project / "linked.cu").symlink_to(target)
    (project / "linked").symlink_to(target.parent)
    return {
        "absolute": str(target),
        "climbing": "../../elsewhere/theirs.cu",
        "link": "../linked.cu",
        "linked folder": "../linked/theirs.cu",
    }[kind]


@pytest.mark.parametrize("kind", ["absolute", "climbing", "link", "linked folder"])
def test_a_source_outside_the_project_is_refused_unless_the_program_names_it(project, kind):
    stored(project / "cache", source=outside(project, kind))
    with pytest.raises(Untrusted, match=r"cache: a result names the source .*trusted=, --trusted") as caught:
        load_kernel("reduce", cache=project / "cache")
    assert "\n" not in str(caught.value) and "__global__" not in str(caught.value)
    for named in ({"source": "theirs.cu"}, {"trusted": "."}, {"trusted": project.parent}):
        found = load_kernel("reduce", cache=project / "cache", **named)
        assert found.source.text.endswith(KERNEL)


def test_the_root_of_the_file_system_is_nobodys_project(project, monkeypatch):
    monkeypatch.chdir("/")
    stored(project / "cache", source="../../elsewhere/theirs.cu")
    with pytest.raises(Untrusted):
        load_kernel("reduce", cache=project / "cache")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "/dev/zero", "..", "kernels\n\x1b[31m"])
def test_a_source_that_cannot_be_a_file_is_one_that_is_not_there(project, name):
    stored(project / "cache", source=name)
    assert load_kernel("reduce", cache=project / "cache").source.path.name == "reduce.cu"  # autotune's own


def test_build_takes_the_same_sources(project):
    stored(project / "cache", source="../../elsewhere/theirs.cu")
    words = ("build", "reduce", "--cache", project / "cache", "-o", "tuned", "--architectures", "sm_90")
    done = run_in_process(project, *words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "--trusted" in done.stderr and not (project / "tuned").exists()


ALLOWED = {
    ("cuda", ""): """
        --maxrregcount=32 -maxrregcount=64 --ftz=true -ftz=false --prec-div=true --prec-sqrt=false --fmad=true
        --use_fast_math -use_fast_math --Ofast-compile=min --gpu-architecture=sm_90a
        --extra-device-vectorization --std=c++20 -Dreal4=float4 -DINLINE_FUNC= -DX --restrict
        -lineinfo --ptxas-options=-v -G -w""",
    ("cuda", "nvcc"): "-O3 -Xptxas=-O2 --expt-relaxed-constexpr -maxrregcount=32 --extended-lambda",
    ("opencl", ""): """
        -cl-mad-enable -cl-fast-relaxed-math -cl-std=CL2.0 -cl-denorms-are-zero -cl-nv-maxrregcount=32 -w
        -Dsize_t=ulong""",
}
REFUSED = """
    -time=setup.py --time=setup.py -ccbin=evil -run -keep -o -o=x --output-file=x -include=x --pre-include=x
    -I -Ix -L -lx -l=x --options-file=x -optf=x -x -Xcompiler=-fplugin -Xlinker=-x -Xcicc=x -Xptxas=-o
    --dryrun -fdevice-time-trace=x --fdevice-time-trace=x -pch --create-pch=x --use-pch=x --pch-dir=x
    -ldir=x -MD -MF=x --device-c -cl-mad-enable=x -load -Xclang -fplugin=x -s -save-temps -temp --cubin
    -dlink -g -D -D1 -DX=a.b --ftz --ftz=x --maxrregcount=x ftz=true --maxrregcount --std=x
    --use_fast_math=x -arch=native -cl-std=x -cl-intel-x -ewp -U -DX=\u00e4"""
NO_WORDS = (
    "--ftz=true\n",
    "--use_fast_math\n",
    "-cl-mad-enable\n",
    "--maxrregcount=\u0663",
    "",
    " --ftz=true",
)


@pytest.mark.parametrize(("compiler", "options"), ALLOWED.items())
def test_options_that_only_change_the_code_are_allowed(compiler, options):
    assert list(refused_options(options.split(), *compiler)) == []


@pytest.mark.parametrize("compiler", [*ALLOWED, ("cuda", "triton"), ("python", ""), ("portable", "")])
def test_every_other_option_is_refused(compiler):
    options = [*REFUSED.split(), *NO_WORDS]
    assert list(refused_options(options, *compiler)) == options


@pytest.mark.parametrize("compiler", [("cuda", "triton"), ("python", ""), ("opencl", "")])
def test_an_option_is_allowed_for_its_compiler_only(compiler):
    assert list(refused_options(["--use_fast_math"], *compiler)) == ["--use_fast_math"]


@pytest.mark.parametrize("option", [{"-time": "'setup.py'"}, {"-run": "True"}, {"--ftz": "'setup.py'"}])
def test_an_option_that_may_write_or_run_is_refused_before_the_compiler(project, option):
    stored(project / "cache", compiler_options={"cuda": option})
    best = best_config("reduce", DEVICE, n=64, cache=project / "cache")
    with pytest.raises(Untrusted, match=r"compiler option -.*trusted=, --trusted.*is_trusted=True"):
        best.options("cuda")
    assert best.options("cuda", is_trusted=True) == (
        *(flag if text == "True" else f"{flag}=setup.py" for flag, text in option.items()),
    )
    assert best.match.tier is Tier.EXACT  # the configuration itself is data, and served


def test_build_runs_no_compiler_with_an_option_of_a_cache_that_is_not_trusted(project):
    pytest.importorskip("cuda.bindings")
    for path in Path(packaged_folder("cache")).glob("*/matadd.json"):
        folder = project / "cache" / path.parent.name
        folder.mkdir(parents=True)
        (folder / "device.json").write_bytes((path.parent / "device.json").read_bytes())
        found = json.loads(path.read_text()) | {"compiler_options": {"cuda": {"-time": "'setup.py'"}}}
        (folder / path.name).write_text(json.dumps(found))
    (project / "setup.py").write_text("mine")
    words = ("build", "matadd", "-o", "tuned", "--architectures", "sm_90")
    done = run_in_process(project, *words)
    assert done.returncode == 2 and "the compiler option -time=setup.py" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and (project / "setup.py").read_text() == "mine"
    assert run_in_process(project, *words, "--trusted", ".").returncode == 0
    assert (project / "setup.py").read_text() != "mine"  # the option does what a cache must not


def test_binaries_are_loaded_from_a_trusted_folder_only(project):
    root = project / "cache"
    stored(root)
    (root / FOLDER).mkdir()
    (root / FOLDER / "reduce.json").write_text("no manifest")
    with pytest.warns(UserWarning, match=r"binaries are code; .*trusted='.*cache'") as told:
        load_kernel("reduce", cache=root)
    assert told[0].filename == __file__
    with pytest.raises(cache.CacheError, match="damaged"):  # it is read now
        load_kernel("reduce", cache=root, trusted=project)
    elsewhere = project.parent / "elsewhere"
    (root / FOLDER).rename(elsewhere / FOLDER)
    (root / FOLDER).symlink_to(elsewhere / FOLDER)
    with pytest.warns(UserWarning, match="binaries are code"):  # a link does not carry trust
        load_kernel("reduce", cache=root, trusted=project)


def test_a_triton_entry_that_is_no_call_is_an_error_in_one_line():
    pytest.importorskip("triton.compiler")
    from autotune.compilers.triton_compiler import TritonCompiler
    from autotune.errors import CompileError

    source = "import triton\n@triton.jit\ndef add(x, n): pass\n"
    for entry_text in ("add", "add(", "a.b()", "add(1, 2)", "add(**x)", "add(f())", "add('i32', n=open)"):
        with pytest.raises(CompileError, match="not a kernel in Triton"):
            TritonCompiler("sm_90").compile(source, (), (entry_text,))
    for option in ("ptx_options='-o=/tmp/x'", "extern_libs='x'", "ir_override='x'", "num_warps='4'"):
        with pytest.raises(CompileError, match="numeric option of Triton"):
            TritonCompiler("sm_90").compile(source, (), (f"add('*fp32', 'i32', {option})",))


def test_triton_runs_nothing_of_a_file_that_only_a_cache_names(project):
    pytest.importorskip("triton.compiler")
    theirs = project.parent / "elsewhere/theirs.py"
    theirs.write_text("import triton\nHIT = open('hit', 'w')\n@triton.jit\ndef reduce(x): HIT\n")
    stored(project / "cache", source="../../elsewhere/theirs.py", compiler="triton", compiler_options={})
    words = ("build", "reduce", "--cache", project / "cache", "-o", "tuned", "--architectures", "sm_90")
    done = run_in_process(project, *words)
    assert done.returncode == 2 and "a result names the source" in done.stderr
    done = run_in_process(project, *words, "--source", theirs)  # named: it is run, and is not what was tuned
    assert done.returncode == 1 and "Traceback" not in done.stderr and (project / "hit").exists()
    assert "not a kernel in Triton" in done.stderr and done.stderr.count("\n") == 1, done.stderr
