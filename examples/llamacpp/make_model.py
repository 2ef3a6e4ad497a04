#!/usr/bin/env python3
"""Write two small language models with random weights, for trying out llama-server.

    make_model.py DIRECTORY [--seed N] [--tail-gain G]

writes DIRECTORY/target.gguf (25.6 million parameters, 51 MB) and
DIRECTORY/draft.gguf (3.4 million parameters, 7 MB). Both are complete models
of the llama architecture that an unmodified llama.cpp loads. They have learned
nothing: what they say is noise. What they are good for is speed: a launch, a
prefill, a decode step and a round of speculative decoding do the same work as
with trained weights of the same shape.

Three properties of a trained model matter to a speed measurement, and are built
in by construction rather than learned:

Readable output.
    The vocabulary is one token for each byte, so any prompt can be tokenised.
    The models only ever answer with printable ASCII and newlines, which keeps
    every streamed chunk valid UTF-8. See `output_head`.

Output that does not fall into a loop.
    A random transformer whose attention is flat is nearly a function of the
    last token alone, and greedy decoding then repeats a short cycle. Sharp
    attention (`ATTENTION_SHARPNESS`) makes the next token depend on the whole
    context.

A draft model that is right some of the time.
    The draft is the first layer of the target together with the target's
    embedding and output head. The target's further layers add to the same
    residual stream with a small gain (`--tail-gain`), so they change the most
    likely token at some positions and leave it at others. A gain of 0 would
    make the draft always right, a gain near 1 right by chance only. Every
    drafted token therefore has a fair chance to be rejected, and drafting more
    tokens has diminishing returns, as with a real pair of models.

The files are a function of the arguments alone: the weights come from the raw
64-bit output of PCG64, whose stream NumPy guarantees never to change, and the
header holds no time stamp.
"""

import argparse
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

# The vocabulary: three special tokens, the 256 bytes, and the space.
# llama.cpp's SentencePiece tokenizer writes a space as U+2581; without a token
# of its own every space of a prompt would be spelled out as three bytes.
UNKNOWN, BEGIN_OF_TEXT, END_OF_TEXT = 0, 1, 2
FIRST_BYTE = 3
SPACE = FIRST_BYTE + 256
VOCABULARY_SIZE = SPACE + 1

CONTEXT_LENGTH = 8192
RMS_EPSILON = 1e-5

# Standard deviation of the attention scores before the softmax. 1 is what an
# untrained transformer starts with and is nearly flat; at 8 a few positions
# carry most of the weight.
ATTENTION_SHARPNESS = 8.0

# Share of the attention in what a layer adds, relative to its feed-forward part.
ATTENTION_GAIN = 2.0

# Standard deviation of the output logits. 6 gives probabilities about as
# concentrated as a trained model's, so that sampling at a temperature and
# --spec-draft-p-min are meaningful too.
LOGIT_SCALE = 6.0

# One coordinate of the residual stream carries a constant instead of data: every
# embedding holds BIAS_VALUE there and no layer writes to it. The output head
# reads it with weight 0 for the tokens that may be answered and BIAS_WEIGHT for
# the others, which is how a model without bias terms gets one.
BIAS_COORDINATE = 0
BIAS_VALUE = 4.0
BIAS_WEIGHT = -20.0


@dataclass(frozen=True)
class Shape:
    """Dimensions of the target; the draft has the same with fewer layers."""

    layers: int = 8
    draft_layers: int = 1
    width: int = 512
    feed_forward: int = 1376
    heads: int = 8


class Weights:
    """Random matrices, each a function of the seed and its own name only.

    Drawing by name makes the draft's layers identical to the target's first
    layers without keeping either in memory.
    """

    def __init__(self, seed: int):
        self._seed = seed

    def draw(self, name: str, rows: int, columns: int, deviation: float) -> np.ndarray:
        """A rows by columns matrix, uniform around 0 with this standard deviation."""
        digest = hashlib.sha256(f"{self._seed}/{name}".encode()).digest()
        raw = np.random.PCG64(int.from_bytes(digest, "little")).random_raw(rows * columns)
        unit = (raw >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
        return (unit * np.float32(deviation * 3**0.5)).reshape(rows, columns)


def embedding(weights: Weights, shape: Shape) -> np.ndarray:
    matrix = weights.draw("embedding", VOCABULARY_SIZE, shape.width, 1.0)
    matrix[:, BIAS_COORDINATE] = BIAS_VALUE
    return matrix


def output_head(weights: Weights, shape: Shape) -> np.ndarray:
    """The output matrix, which rules out all tokens that are not plain text.

    The end-of-text token stays possible at about the frequency of any character.
    A request therefore stops early unless it sets ignore_eos.
    """
    possible = np.zeros(VOCABULARY_SIZE, dtype=bool)
    possible[[END_OF_TEXT, SPACE, FIRST_BYTE + ord("\n")]] = True
    possible[FIRST_BYTE + ord("!") : FIRST_BYTE + ord("~") + 1] = True

    matrix = weights.draw("output", VOCABULARY_SIZE, shape.width, LOGIT_SCALE * shape.width**-0.5)
    matrix[:, BIAS_COORDINATE] = np.where(possible, 0.0, BIAS_WEIGHT)
    return matrix


def layer(weights: Weights, shape: Shape, index: int, gain: float) -> dict[str, np.ndarray]:
    """Tensors of one transformer block that adds to the residual stream with this gain."""
    width, hidden = shape.width, shape.feed_forward
    prefix = f"blk.{index}."

    def draw(name: str, rows: int, columns: int, deviation: float) -> np.ndarray:
        return weights.draw(prefix + name, rows, columns, deviation)

    # A score is the product of a query and a key divided by the square root of
    # the head's size; with both drawn this wide its deviation is the sharpness.
    score_deviation = (ATTENTION_SHARPNESS / width) ** 0.5
    keep_variance = width**-0.5
    tensors = {
        "attn_norm": np.ones(width, dtype=np.float32),
        "attn_q": draw("attn_q", width, width, score_deviation),
        "attn_k": draw("attn_k", width, width, score_deviation),
        "attn_v": draw("attn_v", width, width, keep_variance),
        "attn_output": draw("attn_output", width, width, gain * ATTENTION_GAIN * keep_variance),
        "ffn_norm": np.ones(width, dtype=np.float32),
        "ffn_gate": draw("ffn_gate", hidden, width, keep_variance),
        "ffn_up": draw("ffn_up", hidden, width, keep_variance),
        # silu(gate) * up of two unit normal values has a mean square of about 0.3.
        "ffn_down": draw("ffn_down", width, hidden, gain * (0.3 * hidden) ** -0.5),
    }
    tensors["attn_output"][BIAS_COORDINATE] = 0
    tensors["ffn_down"][BIAS_COORDINATE] = 0
    return {f"{prefix}{name}.weight": tensor for name, tensor in tensors.items()}


def add_metadata(writer: gguf.GGUFWriter, shape: Shape, layers: int, name: str) -> None:
    writer.add_name(name)
    writer.add_description("random weights; made for measuring speed, knows nothing")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_layer_norm_rms_eps(RMS_EPSILON)

    special = ["<unk>", "<s>", "</s>"]
    special_types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    writer.add_vocab_size(VOCABULARY_SIZE)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(special + [f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581"])
    writer.add_token_types(special_types + [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL])
    writer.add_token_scores([0.0] * VOCABULARY_SIZE)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_bos_token_id(BEGIN_OF_TEXT)
    writer.add_eos_token_id(END_OF_TEXT)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)


def write_model(
    path: Path, name: str, shape: Shape, layers: int, weights: Weights, tail_gain: float
) -> None:
    """Write the model of the first layers; path holds either all of it or what it held before."""
    partial = path.with_name(path.name + ".partial")
    writer = gguf.GGUFWriter(partial, "llama")
    add_metadata(writer, shape, layers, name)

    # llama.cpp wants norms in 32 bits; everything large is stored in 16.
    writer.add_tensor("token_embd.weight", embedding(weights, shape).astype(np.float16))
    for index in range(layers):
        gain = 1.0 if index < shape.draft_layers else tail_gain
        for tensor_name, tensor in layer(weights, shape, index, gain).items():
            writer.add_tensor(tensor_name, tensor.astype(np.float16) if tensor.ndim == 2 else tensor)
    writer.add_tensor("output_norm.weight", np.ones(shape.width, dtype=np.float32))
    writer.add_tensor("output.weight", output_head(weights, shape).astype(np.float16))

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write a target and a draft model with random weights.",
        epilog="The docstring at the top of this file explains how the models are made.",
    )
    parser.add_argument("directory", type=Path, help="where target.gguf and draft.gguf go")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other weights (default: 1)")
    parser.add_argument(
        "--tail-gain",
        type=float,
        default=0.03,
        help="weight of the layers that the draft lacks: smaller makes it right more often (default: 0.03)",
    )
    arguments = parser.parse_args()
    if not 0 <= arguments.tail_gain <= 1:
        parser.error(f"--tail-gain is {arguments.tail_gain}, expected a number from 0 to 1")

    arguments.directory.mkdir(parents=True, exist_ok=True)
    shape, weights = Shape(), Weights(arguments.seed)
    for name, layers in ("target", shape.layers), ("draft", shape.draft_layers):
        path = arguments.directory / f"{name}.gguf"
        write_model(path, f"nocturne-example-{name}", shape, layers, weights, arguments.tail_gain)
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path)


if __name__ == "__main__":
    main()
