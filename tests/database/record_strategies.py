"""Any record that can be, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from precast.database.records import EVIDENCE_STATUSES, STATUSES, Evidence, Measurement, Origin, Subject

identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
visible = st.characters(blacklist_categories=("Cs", "Cc"))
text = st.text(visible, min_size=1, max_size=12)
any_text = st.text(max_size=20)
integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)
dates = st.datetimes().map(lambda d: d.replace(year=max(d.year, 1000)).strftime("%Y-%m-%dT%H:%M:%SZ"))


def mappings(values):
    return st.dictionaries(text, values, max_size=4)


subjects = st.builds(
    Subject,
    family=st.sampled_from(["flash", "Flash", "matmul"]),
    operator=st.sampled_from(["forward", "FORWARD", "backward"]),
    target=st.sampled_from(["sm_90", "gfx942"]),
    device=text,
    types=mappings(text),
    features=mappings(st.one_of(integers, text, st.booleans())),
    plan=text,
    config=st.text(visible, max_size=12),
)
plain = st.text(visible, max_size=12)
origins = st.builds(Origin, source=plain, triton=plain, driver=plain, date=dates, run=plain, importer=plain)
times = st.lists(st.floats(1e-3, 1e9), min_size=5, max_size=5).map(lambda t: tuple(sorted(t)))
counts = st.integers(-1, 1000)
problems = mappings(st.one_of(integers, text, st.booleans(), numbers))


def _measurements(timed: bool):
    statuses = [s for s in STATUSES if s != ("untimed" if timed else "ok")]
    return st.builds(
        Measurement, subject=subjects, origin=origins, key=mappings(integers), problem=problems,
        status=st.sampled_from(statuses), reason=any_text, times=times if timed else st.just(()),
        repeats=st.integers(0, 1000), registers=counts, spills=counts, shared=counts, clock_mhz=st.integers(0, 3000),
        notes=any_text,
    )  # fmt: skip


errors = st.one_of(st.just(-1.0), st.floats(0, allow_nan=False, allow_infinity=False))
records = st.one_of(
    _measurements(True),
    _measurements(False),
    st.builds(
        Evidence,
        subject=subjects,
        origin=origins,
        problem=problems,
        layout=plain,
        status=st.sampled_from(EVIDENCE_STATUSES),
        error=errors,
        allowed=errors,
        runs=st.integers(0, 9),
        reason=any_text,
    ),
)
