"""Public reports of page-safety bugs in serving engines that faults are modeled on, by row id.

Of the reports about translation and compaction, about work in flight, about the host tier and its
staging, about network transfers, and about answers to capacity questions, those that nothing can
show yet are in `WAITING`.

The reports were read, not reproduced.  A fault copies the mechanism, not the code.
"""

from __future__ import annotations

from collections.abc import Mapping

INCIDENTS: Mapping[str, str] = {
    "B01": "https://github.com/sgl-project/sglang/pull/37560",
    "B03": "https://github.com/sgl-project/sglang/pull/37416",
    "B05": "https://github.com/sgl-project/sglang/pull/39982",
    "B07": "https://github.com/sgl-project/sglang/pull/38836",
    "B09": "https://github.com/sgl-project/sglang/pull/37496",
    "B11": "https://github.com/sgl-project/sglang/pull/36403",
    "B15": "https://github.com/vllm-project/vllm/pull/47728",
    "B17": "https://github.com/vllm-project/tpu-inference/pull/3449",
    "B19": "https://github.com/sgl-project/sglang/pull/26380",
    "B21": "https://github.com/sgl-project/sglang/pull/27967",
    "B23": "https://github.com/sgl-project/sglang/pull/18803",
    "B25": "https://github.com/sgl-project/sglang/pull/24954",
    "B27": "https://github.com/vllm-project/vllm/pull/49620",
    "B29": "https://github.com/NVIDIA/TensorRT-LLM/pull/15546",
    "B31": "https://github.com/vllm-project/vllm/pull/47644",
    "B33": "https://github.com/vllm-project/vllm/pull/46278",
    "B35": "https://github.com/NVIDIA/TensorRT-LLM/pull/9056",
    "B37": "https://github.com/LMCache/LMCache/pull/4830",
    "B39": "https://github.com/sgl-project/sglang/pull/35769",
    "B41": "https://github.com/sgl-project/sglang/pull/30899",
    "B43": "https://github.com/sgl-project/sglang/pull/23346",
    "B45": "https://github.com/sgl-project/sglang/issues/38866",
    "B47": "https://github.com/sgl-project/sglang/issues/13483",
    "B49": "https://github.com/sgl-project/sglang/pull/9874",
    "B51": "https://github.com/LMCache/LMCache/pull/3130",
    "B53": "https://github.com/LMCache/LMCache/pull/4467",
    "B55": "https://github.com/sgl-project/sglang/pull/38961",
    "B57": "https://github.com/sgl-project/sglang/issues/22716",
    "B59": "https://github.com/sgl-project/sglang/issues/30233",
    "B61": "https://github.com/vllm-project/vllm/pull/46289",
    "B63": "https://github.com/vllm-project/vllm/issues/44238",
    "B65": "https://github.com/NVIDIA/TensorRT-LLM/issues/12542",
    "B67": "https://github.com/NVIDIA/TensorRT-LLM/pull/13713",
    "B69": "https://github.com/ai-dynamo/dynamo/pull/4171",
    "B71": "https://github.com/sgl-project/sglang/pull/38519",
    "B73": "https://github.com/sgl-project/sglang/pull/27731",
    "B75": "https://github.com/sgl-project/sglang/pull/22273",
    "B77": "https://github.com/sgl-project/sglang/pull/12224",
    "B79": "https://github.com/sgl-project/sglang/pull/16067",
    "B81": "https://github.com/sgl-project/sglang/pull/27038",
    "B83": "https://github.com/vllm-project/vllm/issues/42571",
    "B85": "https://github.com/sgl-project/mini-sglang/pull/142",
    "B89": "https://github.com/sgl-project/sglang-jax/pull/971",
    "B91": "https://github.com/sgl-project/sglang/pull/29860",
    "B93": "https://github.com/sgl-project/sglang/issues/8649",
    "B95": "https://github.com/NVIDIA/TensorRT-LLM/pull/16280",
    "B97": "https://github.com/sgl-project/sglang/pull/36713",
    "B103": "https://github.com/sgl-project/sglang/pull/23174",
    "B107": "https://github.com/sgl-project/sglang/pull/7434",
    "B123": "https://github.com/sgl-project/sglang/issues/28429",
    "B125": "https://github.com/sgl-project/sglang/issues/30760",
    "B127": "https://github.com/sgl-project/sglang/pull/22759",
    "B131": "https://github.com/NVIDIA/TensorRT-LLM/pull/17380",
    "B133": "https://github.com/vllm-project/vllm/pull/47574",
    "B135": "https://github.com/sgl-project/sglang/pull/17404",
    "B137": "https://github.com/lightseekorg/tokenspeed/pull/667",
    "B139": "https://github.com/vllm-project/vllm/issues/43810",
    "B141": "https://github.com/vllm-project/vllm/pull/34587",
    "B143": "https://github.com/wtdcode/vllm-backport/pull/63",
}

WAITING: Mapping[str, str] = {
    "B13": "a device with real dtypes: values that are cast instead of viewed",
    "B99": "eviction by demand: a walk that goes on after the bytes suffice",
    "B101": "demands per band: window rows of a whole prompt instead of its tail",
    "B105": "eviction by demand: a request for full pages that never visits window rows",
    "B109": "pipeline stages: state sized by all layers instead of a stage's own",
}
"""Reports without a fault, by row id, and what has to exist first."""
