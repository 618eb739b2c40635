"""Planning a difference from a store's own variances, by simulation with known ones."""

from dataclasses import replace

import numpy as np
import pytest

from farm.observations import Seen
from jobs.power import main, spread
from tests.tracking.report.rows import rows


def simulated(
    checkpoints: int, repeats: int, unit_sd: float, repeat_sd: float, units: int = 400
) -> list[Seen]:
    generator = np.random.default_rng(4)
    base = generator.normal(size=units)
    found = []
    for n in range(checkpoints):
        own = base + (generator.normal(scale=unit_sd, size=units) if n else 0)
        for k in range(repeats):
            values = {f"u{u}": float(own[u] + generator.normal(scale=repeat_sd)) for u in range(units)}
            found += [replace(r, repeat=k) for r in rows("judge/c4", values, checkpoint=f"c{n}")]
    return found


def test_the_spread_is_what_it_was_drawn_with() -> None:
    found, known = spread(simulated(2, 3, 0.25, 0.4))
    assert known
    assert found.repeat == pytest.approx(0.4, rel=0.1)
    assert found.unit == pytest.approx(0.25, rel=0.25)


def test_one_checkpoint_tells_nothing_of_the_units() -> None:
    found, known = spread(simulated(1, 3, 0.0, 0.4))
    assert not known and found.unit == 0 and found.repeat == pytest.approx(0.4, rel=0.1)


def test_wrong_settings_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    assert main(["difference=0", f"store={tmp_path}"]) == 2
    assert main(["metrics=x"]) == 2
    assert "settings are store=..." in capsys.readouterr().err
