"""One block that makes the memory peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures import percent_text, share_text, size_text
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

SHARE = 0.25  # of the peak, held by a single block: activations of a model are many, of similar size
LEAST_BYTES = 16 << 20


def look(analysis: Analysis) -> Result:
    """The largest single block alive at the peak that was made for a step."""
    peaks = analysis.memory_peaks
    if not peaks:
        return Unknown("memory was not recorded (profile_memory=True)")
    peak = peaks[0]
    lasting = {holder.name: holder.bytes for holder in peak.by_category}
    kept = lasting.get("parameter", 0) + lasting.get("optimizer_state", 0)
    made = [block for block in peak.largest if block.step >= 0]
    if not made:
        return Clean(f"the memory alive at the peak of {size_text(peak.peak_bytes)} on {peak.device} was made before "
                     "the steps")
    top = made[0]
    share = top.bytes / peak.peak_bytes
    if share < SHARE or top.bytes < LEAST_BYTES or top.bytes <= kept / 2:
        return Clean(f"the largest block at the peak of {size_text(peak.peak_bytes)} on {peak.device} is "
                     f"{share_text(share)} of it")
    where = f" in {top.module}" if top.module else ""
    return Finding("memory-peak",
                   f"One block of {size_text(top.bytes)} from {top.op}{where} is {percent_text(share)} of the memory "
                   f"peak.",
                   [Figure("peak", peak.peak_bytes, "bytes"), Figure("this block", top.bytes, "bytes"),
                    Figure("share of the peak", share, "share"), Figure("between steps", peak.low_bytes, "bytes"),
                    Figure("device", peak.device, "text")],
                   "Make it in pieces (loop over chunks, use an op that does not need the intermediate, such as "
                   "`scaled_dot_product_attention` or `cdist`), in place, in a smaller dtype, or recompute it in the "
                   "backward (`torch.utils.checkpoint`).",
                   top.place, saves_bytes=top.bytes, page="memory", query=top.op)
