"""Read parameters files as SAM CLI does, for test_parameters.py; runs in SAM's environment.

Reads the files' names from the command line and writes their parameters, as JSON.
"""

from __future__ import annotations

import json
import sys

from samcli.cli.types import CfnParameterOverridesType

json.dump(
    [CfnParameterOverridesType().convert((each,), None, None) for each in sys.argv[1:]], sys.stdout
)
