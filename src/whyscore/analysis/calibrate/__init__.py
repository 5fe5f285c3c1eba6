"""How to boost a metric, learnt from human judgements, and whether it helps.

`whyscore.calibrate` is the analysis; the names here are its parts, for studies that choose and judge in other ways.
"""

from whyscore.analysis.calibrate.calibrate import calibrate_explained, calibration_of, judged_settings
from whyscore.analysis.calibrate.file import Calibration, input_digest
from whyscore.analysis.calibrate.judgement import (
    CONTROLS,
    LENGTH,
    RANDOM,
    Question,
    Source,
    gain_p,
    outcome,
    sources_of,
    with_test,
)
from whyscore.analysis.calibrate.material import (
    Explained,
    Material,
    Setting,
    columns_of,
    groups_of,
    human_of,
    join_datasets,
    material_from,
    possible_settings,
    sort_entries,
)
from whyscore.analysis.calibrate.rules import RULES, Choice, Rule
from whyscore.analysis.calibrate.settings import (
    AgreementSettings,
    ChoosingSettings,
    JudgingSettings,
    Search,
    TestedSettings,
)

__all__ = [
    "CONTROLS",
    "LENGTH",
    "RANDOM",
    "RULES",
    "AgreementSettings",
    "Calibration",
    "Choice",
    "ChoosingSettings",
    "Explained",
    "JudgingSettings",
    "Material",
    "Question",
    "Rule",
    "Search",
    "Setting",
    "Source",
    "TestedSettings",
    "calibrate_explained",
    "calibration_of",
    "columns_of",
    "gain_p",
    "groups_of",
    "human_of",
    "input_digest",
    "join_datasets",
    "judged_settings",
    "material_from",
    "outcome",
    "possible_settings",
    "sort_entries",
    "sources_of",
    "with_test",
]
