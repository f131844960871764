"""Where cached results lie, what their files say, and what is refused."""

import json
import os
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.core.records import (
    CallSpec,
    Config,
    Entry,
    KernelRecord,
    Parameter,
    Provenance,
    Tier,
    VariantTable,
)
from autotune.errors import CacheError, InputError, WriteError
from autotune.hardware.names import slug
from autotune.serving import cache
from autotune.serving.cache_reader import CacheReader
from autotune.serving.cache_schema import device_text, parse_device, parse_record, record_text
from autotune.serving.device_records import walk
from autotune.serving.lookup import best_config
from tests.cache_example import DEFAULT, DEVICE, OTHER, PROVENANCE, entry, record

finite = st.floats(0, allow_infinity=False)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(cache.VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("Intel(R) Xeon(TM) CPU @ 2.20GHz", "intel-xeon-cpu-2-20ghz"),
        ("nvidia-h200", "nvidia-h200"),
        ("../../etc", "etc"),
        ("???", "unnamed"),
    ],
)
def test_a_slug_is_a_plain_folder_name(name, expected):
    assert slug(name) == expected


def test_what_is_stored_is_read_back(tmp_path):
    path = cache.store(tmp_path, DEVICE, record(entry(64, BLOCK=128)))
    assert path == tmp_path / "example-gpu-100" / "reduce.json"
    assert cache.read_record(str(path)) == record(entry(64, BLOCK=128))
    assert cache.read_device(str(path.with_name("device.json"))) == DEVICE
    assert sorted(file.name for file in path.parent.iterdir()) == ["device.json", "reduce.json"]


@settings(deadline=None)
@given(
    time_ms=finite,
    low=finite,
    sizes=st.dictionaries(
        st.from_regex("[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), st.integers(1, 2**63 - 1), max_size=3
    ),
    text=st.text(),
)
def test_numbers_and_texts_round_trip(time_ms, low, sizes, text):
    changed = replace(
        entry(8),
        time_ms=time_ms,
        interval_ms=(low, time_ms),
        sizes=sizes,
        provenance=replace(PROVENANCE, host=text),
    )
    assert parse_record(record_text(record(changed)), "here") == record(changed)


@pytest.mark.parametrize("noise", [None, 0.25])
def test_the_noise_is_kept_and_not_written_where_nobody_noted_it(noise):
    text = record_text(record(replace(entry(8), noise=noise)))
    assert ('"noise": 0.25' in text) is bool(noise) is ("noise" in text)
    assert parse_record(text, "here").entries[0].noise == noise


def test_truth_values_and_numbers_stay_what_they_are():
    config = parse_record(record_text(record(entry(8, UNROLL=True, VECTOR=1))), "here").entries[0].config
    assert config["UNROLL"] is True
    assert type(config["VECTOR"]) is int


def test_derived_names_keep_their_order():
    shuffled = replace(record(entry(8)), derived={"Z": "1", "A": "Z + 1", "M": "A + Z"})
    assert list(parse_record(record_text(shuffled), "here").derived) == ["Z", "A", "M"]


def test_configurations_keep_the_order_of_the_parameters():
    other = Config({**DEFAULT, "BLOCK": 32})
    first = replace(
        entry(64), ties=(other,), measured=((other, 2.0),), front=((other, 2.0, 3.0),), rivals=(entry(64),)
    )
    table = VariantTable("int32", ({"n": 64},), (other,), ())
    read = parse_record(record_text(replace(record(first), variants=(table,))), "here")
    (found,) = read.entries
    configs = (read.default, found.config, *found.ties, found.measured[0][0], found.front[0][0])
    for config in (*configs, found.rivals[0].config, *read.variants[0].configs):
        assert list(config) == ["ALGORITHM", "BLOCK", "VECTOR", "UNROLL"]


def test_an_entry_for_the_same_problem_replaces_and_others_stay_sorted(tmp_path):
    for each in (entry(512), entry(64), entry(64, "float32"), entry(512, BLOCK=256)):
        path = cache.store(tmp_path, DEVICE, record(each))
    newest = replace(entry(512, BLOCK=256), measured=((DEFAULT, 512 / 1e6),))
    assert cache.read_record(str(path)) == record(entry(64, "float32"), entry(64), newest)


def test_a_new_search_keeps_what_earlier_ones_of_the_same_source_and_space_measured(tmp_path):
    one, two, three = (Config({**DEFAULT, "BLOCK": block}) for block in (32, 128, 256))
    cache.store(tmp_path, DEVICE, record(replace(entry(64), measured=((one, 2.0), (two, 5.0)))))
    path = cache.store(
        tmp_path, DEVICE, record(replace(entry(64), config=three, time_ms=1.0, measured=((two, 3.0),)))
    )
    (kept,) = cache.read_record(str(path)).entries
    assert kept.measured == ((DEFAULT, 64 / 1e6), (one, 2.0), (two, 3.0))
    assert kept.relative_times == {three: 1.0, DEFAULT: 1.0, one: 2.0, two: 3.0}
    for change in ({"space_sha256": "b" * 64}, {"source_sha256": "6" * 64}):
        changed = replace(entry(64), provenance=replace(PROVENANCE, **change))
        cache.store(tmp_path, DEVICE, record(changed))
        assert cache.read_record(str(path)).entries == (changed,)


def test_an_edit_that_leaves_inputs_and_launches_alone_keeps_earlier_times(tmp_path):
    before = replace(PROVENANCE, workload_sha256="c" * 64)
    cache.store(tmp_path, DEVICE, record(replace(entry(64), provenance=before)))
    after = replace(before, space_sha256="b" * 64)
    path = cache.store(tmp_path, DEVICE, record(replace(entry(64, BLOCK=512), provenance=after)))
    (kept,) = cache.read_record(str(path)).entries
    assert kept.config["BLOCK"] == 512 and kept.measured == ((DEFAULT, 64 / 1e6),)


def test_each_measured_configuration_has_a_line(tmp_path):
    measured = tuple((Config({**DEFAULT, "BLOCK": block}), block / 7) for block in (32, 128, 256))
    text = record_text(record(replace(entry(64), measured=measured), entry(128)))
    lines = [line for line in text.splitlines() if line.startswith('        [ { "ALGORITHM"')]
    assert [float(line.split("}, ")[1].split()[0]) for line in lines] == [time_ms for _, time_ms in measured]
    assert parse_record(text, "here").entries[0].measured == measured


def test_a_walk_skips_damaged_files_where_it_is_told_to(tmp_path):
    cache.store(tmp_path, DEVICE, record(entry(64, BLOCK=32)))
    cache.store(tmp_path, OTHER, record(entry(64, BLOCK=128), entry(128, BLOCK=256)))
    cache.store(tmp_path, OTHER, record(entry(64), kernel="scan"))
    broken = cache.store(tmp_path, replace(OTHER, name="B", slug="b"), record(entry(64, BLOCK=64)))
    broken.write_text("{")
    found = walk(CacheReader(), [str(tmp_path)], "reduce", skip_damaged=True)
    assert [one.folder for one in found] == [DEVICE.slug, OTHER.slug]
    with pytest.raises(CacheError, match=r"b/reduce\.json: damaged"):
        walk(CacheReader(), [str(tmp_path)], "reduce")


def test_the_newest_record_describes_the_kernel(tmp_path):
    cache.store(tmp_path, DEVICE, record(entry(64)))
    path = cache.store(tmp_path, DEVICE, replace(record(entry(128)), constraints=("BLOCK > 32",)))
    assert cache.read_record(str(path)).constraints == ("BLOCK > 32",)


def test_a_new_driver_is_noted_and_another_model_with_the_same_slug_refused(tmp_path):
    cache.store(tmp_path, DEVICE, record(entry(64)))
    path = cache.store(tmp_path, replace(DEVICE, driver="driver 8"), record(entry(64)))
    assert cache.read_device(str(path.with_name("device.json"))).driver == "driver 8"
    impostor = replace(OTHER, slug=DEVICE.slug)
    for refused in (
        lambda: cache.store(tmp_path, impostor, record(entry(64))),
        lambda: cache.check_writable(tmp_path, impostor),
    ):
        with pytest.raises(
            CacheError, match=r"device\.json: describes Example\(R\) GPU 100 .*results are of Other GPU"
        ):
            refused()


@pytest.mark.parametrize("kernel", ["device", "../reduce", "a/b", "", ".hidden"])
def test_a_kernel_that_could_be_no_file_is_refused(tmp_path, kernel):
    with pytest.raises(InputError, match=r"cannot be called|is not the name of a kernel"):
        cache.store(tmp_path, DEVICE, record(entry(64), kernel=kernel))
    assert not list(tmp_path.iterdir())


def test_a_number_that_is_not_finite_is_refused(tmp_path):
    with pytest.raises(CacheError, match="not finite"):
        cache.store(tmp_path, DEVICE, record(replace(entry(64), time_ms=float("nan"))))


INJECTED = "A 1\n#define main evil\n//"


TABLE = {"dtype": "int32", "sizes": [{"n": 64}, {"n": 128}], "configs": [dict(DEFAULT)], "left_out": []}


def edited(change) -> str:
    data = json.loads(record_text(record(entry(64))))
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "damaged: Expecting value"),
        (record_text(record(entry(64)))[:-40], "damaged: "),
        ("[]", "the file: expected an object"),
        (edited(lambda data: data.pop("default")), "default: expected a value"),
        (edited(lambda data: data.update(extra=1)), "extra: expected no such key, found '1'"),
        (
            edited(lambda data: data["entries"][0].update(time_ms="fast")),
            r"entries\[0\]\.time_ms: expected a finite",
        ),
        (
            edited(lambda data: data["entries"][0].update(time_ms=float("nan"))),
            r"time_ms: expected a finite number",
        ),
        (
            edited(lambda data: data["entries"][0].update(interval_ms=[1.0])),
            "interval_ms: expected a list of 2",
        ),
        (
            edited(lambda data: data["entries"][0]["sizes"].update(n=1.5)),
            r"sizes\.n: expected a whole number",
        ),
        (
            edited(lambda data: data["entries"][0]["sizes"].update(n=True)),
            r"sizes\.n: expected a whole number",
        ),
        (
            edited(lambda data: data["entries"][0]["config"].update(BLOCK=[1])),
            r"config\.BLOCK: expected a number",
        ),
        (edited(lambda data: data["derived"].append({"name": "X"})), r"derived\[2\]: expected a name and"),
        (
            edited(lambda data: data["entries"][0]["sizes"].update(n=0)),
            r"sizes\.n: .* of at least 1, found '0'",
        ),
        (
            edited(lambda data: data["entries"][0].update(time_ms=10**400)),
            "time_ms: expected a finite number",
        ),
        (
            edited(lambda data: data.update(dtypes=[])),
            "dtypes: expected at least one element type",
        ),
        (
            edited(lambda data: data.update(dtypes=["int32", "float8"])),
            r"dtypes\[1\]: .* one of int8, .*, found 'float8'",
        ),
        (
            edited(lambda data: data["arguments"][0].update(dtype="text")),
            r"arguments\[0\]\.dtype: .*, found 'text'",
        ),
        (
            edited(lambda data: data["entries"][0].update(measured=[[{"BLOCK": 3}]])),
            r"entries\[0\]\.measured\[0\]: expected a list of 2",
        ),
        (edited(lambda data: data.update(launch={})), "launch: expected a list"),
        (edited(lambda data: data["entries"][0].update(provenance=3)), "provenance: expected an object"),
        (
            edited(lambda data: data["entries"].append(data["entries"][0])),
            r"entries\[1\]: expected a problem of its own, found 'int32 n=64'",
        ),
        (
            edited(lambda data: data["parameters"][1].update(name=INJECTED)),
            r"parameters\[1\]\.name: expected a name",
        ),
        (
            edited(lambda data: data["parameters"][0].update(values=["tree", INJECTED])),
            r"parameters\[0\]\.values\[1\]: expected a number, a truth value, or a word",
        ),
        (
            edited(lambda data: data["parameters"][1].update(values=[32, "tree"])),
            r"parameters\[1\]\.values: expected only words or only numbers",
        ),
        (edited(lambda data: data["parameters"].append(data["parameters"][0])), "parameters: .* once"),
        (edited(lambda data: data["entries"][0]["config"].update({INJECTED: 1})), "config: expected a name"),
        (
            edited(lambda data: data["entries"][0]["config"].update({"1A": 1})),
            "config: expected a name",
        ),
        (
            edited(lambda data: data["entries"][0]["config"].update(ALGORITHM=INJECTED)),
            r"config\.ALGORITHM: expected a number, a truth value, or a word",
        ),
        (edited(lambda data: data["entries"][0]["sizes"].update({"../n": 1})), "sizes: expected a name"),
        (edited(lambda data: data["entries"][0]["sizes"].update(n=2**63)), r"sizes\.n: expected a whole"),
        (edited(lambda data: data["entries"][0].update(dtype=INJECTED)), r"dtype: expected one of int8"),
        (edited(lambda data: data["derived"].append({"name": "a b", "expression": "1"})), "a name of"),
        (edited(lambda data: data.update(kernel="../reduce")), "kernel: expected a name"),
        (
            edited(lambda data: data["launch"][0].update(grid=["1"] * 4)),
            r"\.grid: expected at most three dim",
        ),
        (edited(lambda data: data["launch"][0].update(entry="main();")), r"entry: expected a kernel's name"),
        (edited(lambda data: data["launch"][0].update(arguments=["x", "y z"])), "expected a name"),
        (edited(lambda data: data["arguments"][0].update(role="input")), "role: expected one of in, out"),
        (edited(lambda data: data["arguments"][3].update(value=None)), "value: expected an expression"),
        (
            edited(lambda data: data["compiler_options"]["cuda"].update({"-include /tmp/a.h": "True"})),
            r"compiler_options\.cuda: expected an option",
        ),
        (edited(lambda data: data["entries"][0].update(time_ms=-1.0)), "time_ms: .* at least 0"),
        *(
            (
                edited(lambda data, row=row: data.update(variants=[TABLE | {"halfway": [row]}])),
                r"variants\[0\]\.halfway\[0\]: expected",
            )
            for row in ([{"n": 90}, [1.0, 1.0]], [{"m": 90}, [1.0]], [{"n": 90}])
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_file_is_named_with_the_place_and_the_way_out(tmp_path, text, complaint):
    file = tmp_path / "reduce.json"
    file.write_text(text)
    with pytest.raises(CacheError, match=complaint) as caught:
        cache.read_record(str(file))
    assert str(caught.value).startswith(f"{file}: damaged: ")
    assert "tune again" in str(caught.value)


@pytest.mark.parametrize("schema", [2, None, "1"])
def test_another_schema_is_refused_with_the_way_out(tmp_path, schema):
    file = tmp_path / "reduce.json"
    file.write_text(edited(lambda data: data.update(schema=schema)))
    with pytest.raises(
        CacheError, match=f"schema {schema!r}, this version of autotune reads schema 1; install"
    ):
        cache.read_record(str(file))


def test_a_file_that_is_no_text_or_not_there_is_named(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CacheError, match=r"binary\.json: damaged"):
        cache.read_record(f"{tmp_path}/binary.json")
    with pytest.raises(CacheError, match=r"missing\.json: cannot be read: No such file"):
        cache.read_device(f"{tmp_path}/missing.json")


def test_storing_never_overwrites_a_damaged_file(tmp_path):
    path = cache.store(tmp_path, DEVICE, record(entry(64)))
    path.write_text("{")
    for refused in (
        lambda: cache.store(tmp_path, DEVICE, record(entry(128))),
        lambda: cache.check_writable(tmp_path, DEVICE, "reduce"),
    ):
        with pytest.raises(CacheError, match=r"reduce\.json: damaged"):
            refused()
    assert path.read_text() == "{"


def test_results_are_written_to_the_argument_else_the_variable_else_the_current_folder(monkeypatch):
    assert cache.writable_root() == Path("cache")
    monkeypatch.setenv(cache.VARIABLE, "from/variable")
    assert cache.writable_root() == Path("from/variable")
    assert cache.writable_root("given") == Path("given")


def test_the_installed_package_is_not_written_to():
    with pytest.raises(InputError, match="belongs to the installed package"):
        cache.writable_root(Path(cache.__file__).parent / "data" / "cache")


def test_results_are_read_from_the_argument_else_the_variable_else_two_places(monkeypatch):
    own, shipped = cache.read_roots()
    assert own == "cache"
    assert Path(shipped).name == "cache"
    assert Path(shipped).is_absolute()
    monkeypatch.setenv(cache.VARIABLE, "from/variable")
    assert cache.read_roots() == ("from/variable",)
    assert cache.read_roots(Path("given")) == ("given",)


def test_results_stored_one_by_one_make_the_file_that_all_at_once_make(tmp_path):
    entries = [entry(n, BLOCK=block) for n, block in ((3000, 128), (1000, 256), (2000, 64))]
    for one in entries:
        path = cache.store(tmp_path / "one", DEVICE, record(one))
        text = path.read_text()
        assert cache.read_record(str(path)) == parse_record(text, "")  # what was stored is not read again
    assert text == record_text(parse_record(text, ""))
    assert text == cache.store(tmp_path / "all", DEVICE, record(*entries)).read_text()


def test_a_writable_place_is_left_as_it_was(tmp_path):
    cache.check_writable("cache", DEVICE, "reduce")
    cache.check_writable("deep/er/cache")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("root", ["file", "file/cache", "/proc/nothing/cache"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, root):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        WriteError, match=f"^{root}: the cache cannot be written: .*--cache or AUTOTUNE_CACHE"
    ):
        cache.check_writable(root)
    with pytest.raises(CacheError, match="cannot be written"):
        cache.store(root, DEVICE, record(entry(64)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(WriteError, match="cannot be written"):
        cache.check_writable(tmp_path / "cache")


def test_kernels_and_folders_are_listed(tmp_path):
    assert cache.folders("nowhere") == []
    for device, kernel in ((DEVICE, "scan"), (OTHER, "reduce"), (DEVICE, "reduce")):
        cache.store(tmp_path, device, record(entry(64), kernel=kernel))
    assert cache.folders(str(tmp_path)) == ["example-gpu-100", "other-gpu"]
    assert cache.kernels(str(tmp_path)) == ["reduce", "scan"]


def test_every_field_of_the_records_is_in_the_file():
    later = {"measured": ((DEFAULT, 1.0),), "registers": 32, "front": ((DEFAULT, 1.0, 0.5),)}
    later |= {"work_bytes": 256.0, "work_flops": 64.0, "noise": 0.5, "uncompared": ("y",)}
    later |= {"arguments": record().arguments, "rivals": (entry(64),), "data": "banded", "data_sha256": "ab"}
    words = {"objective": "time_ms", "workload_sha256": "cd", "checks": "data zeros"}
    words |= {"cache_state": "warm", "launch_mode": "graph", "checked": {"many runs": "no time was left"}}
    later |= {"provenance": replace(PROVENANCE, **words)}
    between = (({"n": 90}, (1.0,)), ({"n": 100}, (None,)))
    table = VariantTable("int32", ({"n": 64},), (DEFAULT,), (1.5,), "banded", between)
    whole = replace(
        record(replace(entry(64), **later)), compiler="nvcc", source="../axpy.cu", variants=(table,)
    )
    whole = replace(whole, call=CallSpec(("x",), ("out",), {"part": "x"}, {"part": 0}))
    data = json.loads(record_text(whole))
    assert parse_record(record_text(whole), "") == whole
    assert data.keys() == {"schema", *(item.name for item in fields(KernelRecord))}
    assert data["variants"][0].keys() == {item.name for item in fields(VariantTable)}
    assert data["entries"][0].keys() == {item.name for item in fields(Entry)}
    assert data["entries"][0]["provenance"].keys() == {item.name for item in fields(Provenance)}
    assert parse_device(device_text(DEVICE), "here") == DEVICE


def test_arguments_of_an_entry_are_those_that_the_record_declares():
    own = replace(entry(64), arguments=record().arguments[1:])
    with pytest.raises(CacheError, match=r"entries\[0\].arguments: expected the arguments x, part, out, n"):
        parse_record(record_text(record(own)), "here")


def test_a_device_whose_slug_leads_out_of_the_cache_is_damaged(tmp_path):
    file = tmp_path / "device.json"
    file.write_text(device_text(replace(DEVICE, slug="../elsewhere")))
    with pytest.raises(CacheError, match="slug: expected a device's slug"):
        cache.read_device(str(file))


@pytest.mark.parametrize(("value", "listed"), [(True, 1), (1.0, 1), (1, True)])
def test_a_value_is_listed_only_as_the_type_that_it_has(tmp_path, value, listed):
    domain = Parameter("VECTOR", (listed, 2))
    changed = record(entry(64, VECTOR=value), default=Config({**DEFAULT, "VECTOR": 2}))
    parameters = tuple(domain if one.name == "VECTOR" else one for one in changed.parameters)
    cache.store(tmp_path, DEVICE, replace(changed, parameters=parameters))
    found = best_config("reduce", DEVICE, n=64, cache=tmp_path)
    assert (found["VECTOR"], found.match.tier) == (2, Tier.DEFAULT)


@pytest.mark.parametrize("name", [".lock", ".reduce.json.tmp", "reduce.json", "device.json"])
def test_a_link_in_a_cache_is_never_written_through(tmp_path, name):
    folder, outside = tmp_path / "cache" / DEVICE.slug, tmp_path / "outside"
    cache.store(tmp_path / "cache", DEVICE, record(entry(64)))
    outside.write_text(text := (folder / "reduce.json").read_text().replace("64", "32"))
    if name == "device.json":
        outside.write_text(text := (folder / name).read_text())
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    with suppress(CacheError):
        cache.store(tmp_path / "cache", DEVICE, record(entry(1024)))
    assert outside.read_text() == text and outside.stat().st_nlink == 1


def test_what_is_no_file_and_may_never_end_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(CacheError, match=f"{name}.json: cannot be read: not a file"):
            cache.read_record(f"{tmp_path}/{name}.json")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda data: data["launch"][0]["arguments"].append("y"), r"launch\[0\]\.arguments"),
        (lambda data: data["launch"][1].update(swap=["part", "y"]), r"launch\[1\]\.swap"),
        (lambda data: data["arguments"][0].update(of="y"), r"arguments\[0\]\.of"),
        (lambda data: data.update(call={"inputs": ["x"], "returns": ["y"]}), "call"),
        (lambda data: data.update(call={"inputs": [], "returns": [], "copies": {"x": "y"}}), "call"),
        (lambda data: data.update(call={"inputs": [], "returns": [], "kept": {"y": 1}}), "call"),
    ],
)
def test_a_record_names_only_arguments_that_it_declares(tmp_path, change, place):
    path = cache.store(tmp_path, DEVICE, record(entry(64)))
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(
        CacheError, match=f"damaged: {place}: expected names of the arguments n, out, part, x"
    ):
        cache.read_record(str(path))


def test_a_constant_of_triton_that_nothing_gives_is_an_error_in_words(tmp_path):
    step = replace(record().launch[0], constants=("BLOCK", "ptx_options"))
    cache.store(tmp_path, DEVICE, replace(record(entry(64)), launch=(step,)))
    best = best_config("reduce", DEVICE, n=64, cache=tmp_path)
    with pytest.raises(InputError, match=r"launch\[0\]: constants: nothing gives ptx_options a value"):
        best.launch(n=64)
