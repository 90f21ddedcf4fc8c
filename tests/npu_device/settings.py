"""The environment of the tests beside this file: two devices whose memory shows what was not written."""

from __future__ import annotations

SIMULATOR = {"MINDTORCH_NPU": "sim", "MINDTORCH_NPU_SIM_DEVICES": "2", "MINDTORCH_NPU_SIM_POISON": "1",
             "MINDTORCH_NPU_SIM_TAIL": "1"}
