"""The 56 subjects of VoxEval, by group.

Those of MMLU (Hendrycks et al., arXiv 2009.03300) but high school computer science, whose questions hold code that
nobody can read out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Group = Literal["STEM", "humanities", "social sciences", "other"]

_BY_GROUP: Mapping[Group, str] = {
    "STEM": """abstract_algebra astronomy college_biology college_chemistry college_computer_science
        college_mathematics college_physics computer_security conceptual_physics electrical_engineering
        elementary_mathematics high_school_biology high_school_chemistry high_school_mathematics high_school_physics
        high_school_statistics machine_learning""",
    "humanities": """formal_logic high_school_european_history high_school_us_history high_school_world_history
        international_law jurisprudence logical_fallacies moral_disputes moral_scenarios philosophy prehistory
        professional_law world_religions""",
    "social sciences": """econometrics high_school_geography high_school_government_and_politics
        high_school_macroeconomics high_school_microeconomics high_school_psychology human_sexuality
        professional_psychology public_relations security_studies sociology us_foreign_policy""",
    "other": """anatomy business_ethics clinical_knowledge college_medicine global_facts human_aging management
        marketing medical_genetics miscellaneous nutrition professional_accounting professional_medicine virology""",
}

SUBJECTS: Mapping[str, Group] = MappingProxyType(
    {subject: group for group, names in _BY_GROUP.items() for subject in names.split()}
)
"""Subject -> its group, as MMLU's authors sorted them."""
MATHEMATICS = ("elementary_mathematics", "high_school_mathematics", "college_mathematics")
"""The subjects that are also asked with chain of thought."""
