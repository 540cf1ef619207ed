"""What AOTriton's tuning data says about attention forward.

Its kernel is another one than ours: what it found best is a hint. Names drift between its releases.

- `STAGE` (0.4) is 1 without a mask, 3 with a causal one; `CAUSAL` (0.6) is a bool; `CAUSAL_TYPE` (today) is 0
  without a mask and 3 for a window, of which a causal mask is one.
- `BLOCK_DMODEL` is the head dim, rounded up if `PADDED_HEAD` is set.
- Only 0.4 says the batch size: elsewhere the key `heads` (batch x heads) stays unknown.
- `PRE_LOAD_V`, `PERSISTENT_TYPE` and `GRID_CU_MULTIP` tune their kernel and have no counterpart in ours.
"""

from __future__ import annotations

from precast.database.imports import ImportMapping, Lacks, column, first, product

__all__ = ["IMPORTS"]

SQ = column("inputs$seqlen_q", "inputs$max_seqlen_q", "inputs$Max_seqlen_q")
SK = column("inputs$seqlen_k", "inputs$max_seqlen_k", "inputs$Max_seqlen_k")
BATCH, HEADS = column("inputs$Q.shape", index=0), column("inputs$Q.shape", index=1)

attention_forward = ImportMapping(
    kernels=("attn_fwd",),
    operator="attention_forward",
    plan="pointers",
    types={
        "T": column("inputs$Q_dtype", "inputs$Q.dtype", values={"torch.float16": "fp16", "torch.bfloat16": "bf16"})
    },
    features={
        "MASK": first(
            column("inputs$STAGE", values={1: "none", 3: "causal_top_left"}),
            column("inputs$CAUSAL", values={0: "none", 1: "causal_top_left"}),
            column(
                "inputs$CAUSAL_TYPE",
                values={0: "none", 3: "causal_top_left"},
                caveat="tuned with a window, taken as causal",
            ),
        ),
        "HEAD_DIM": column("inputs$BLOCK_DMODEL", values={64: 64, 128: 128}),
    },
    key={"Sq": SQ, "Sk": SK, "heads": product(BATCH, HEADS)},
    problem={"B": BATCH, "H": first(HEADS, column("inputs$N_HEADS")), "Sq": SQ, "Sk": SK,
             "D": column("inputs$D_HEAD", "inputs$BLOCK_DMODEL")},
    parameters={"BLOCK_M": column("tuned_kernel$BLOCK_M"), "BLOCK_N": column("tuned_kernel$BLOCK_N")},
    options={
        "num_warps": column("compiler_options$num_warps"),
        "num_stages": column("compiler_options$num_stages"),
        "waves_per_eu": column("compiler_options$waves_per_eu", "tuned_kernel$waves_per_eu"),
    },
    lacks={
        "inputs$ENABLE_DROPOUT": Lacks("dropout"),
        "inputs$BIAS_TYPE": Lacks("bias"),
        "inputs$USE_ALIBI": Lacks("ALiBi"),
        "inputs$INT8": Lacks("int8"),
        "inputs$INT8_KV": Lacks("int8 keys and values"),
        "inputs$USE_P_SCALE": Lacks("scaled weights"),
        "inputs$RETURN_ENCODED_SOFTMAX": Lacks("returning the weights"),
        "inputs$PADDED_HEAD": Lacks("a padded head dim"),
    },
    unused=("id",),
    noted=(
        "tuned_kernel$pre_load_v",
        "tuned_kernel$PRE_LOAD_V",
        "tuned_kernel$PERSISTENT_TYPE",
        "tuned_kernel$GRID_CU_MULTIP",
    ),
)  # fmt: skip

IMPORTS = (attention_forward,)
