"""The sizes and the design of a model, and the presets that `--preset` names."""

from dataclasses import dataclass

from training.errors import InputError

EPS = 1e-5
BASE = 10_000.0


@dataclass(frozen=True)
class Sizes:
    """V tokens, ctx places, width d, L blocks, H heads (on G key-value heads), inner width F."""

    vocab: int = 4096
    ctx: int = 128
    width: int = 128
    blocks: int = 4
    heads: int = 4
    ff: int = 512
    kv_heads: int | None = None

    def __post_init__(self) -> None:
        """Raises InputError if the heads cannot share the width, or keys and values, evenly."""
        if self.width % self.heads:
            raise InputError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        if self.heads % self.groups:
            raise InputError(f"{self.heads} heads cannot share {self.groups} key-value heads")

    @property
    def groups(self) -> int:
        """G, the heads that have keys and values: H unless fewer are asked for."""
        return self.kv_heads or self.heads

    @property
    def head_width(self) -> int:
        """d_h = d / H."""
        return self.width // self.heads


@dataclass(frozen=True)
class Design:
    """The choices besides the sizes.

    `spread` is of fresh weights, `causal` hides later tokens, and with `shared` heads may have keys
    and values in common (Ainslie et al. 2023).
    """

    family: str
    spread: float
    norm: str = "layer"
    positions: str = "learned"
    activation: str = "gelu_new"
    gated: bool = False
    bias: bool = True
    shared: bool = False
    causal: bool = True

    def check(self, sizes: Sizes) -> None:
        """Raises InputError for sizes that this design has no place for."""
        if self.positions == "rotary" and sizes.head_width % 2:
            raise InputError(f"a head of width {sizes.head_width} cannot be turned in pairs")
        if not self.shared and sizes.groups != sizes.heads:
            raise InputError(
                f"{self.family} has {sizes.heads} key-value heads for its {sizes.heads} heads, "
                f"not {sizes.groups}"
            )


@dataclass(frozen=True)
class Preset:
    """A design with the sizes of the model that is shipped."""

    design: Design
    sizes: Sizes


GPT2 = Design("gpt2", spread=0.02)
TOY = Design("toy", spread=8**-0.5, positions="sinusoidal", activation="gelu")
LLAMA = Design(
    "llama",
    spread=0.02,
    norm="rms",
    positions="rotary",
    activation="silu",
    gated=True,
    bias=False,
    shared=True,
)
PRESETS = {"gpt2": Preset(GPT2, Sizes()), "llama": Preset(LLAMA, Sizes(ff=344, kv_heads=2))}
