import pytest

from gptscope.errors import ModelError
from gptscope.model.config import Config
from gptscope.model.families.experts import refuse


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
        {"model_type": "qwen2_moe", "num_experts": 60, "shared_expert_intermediate_size": 5632},
        {"model_type": "qwen3_moe", "num_experts": 128},
        {"model_type": "olmoe", "num_experts": 64},
        {"model_type": "granitemoe", "num_local_experts": 40},
        {"model_type": "deepseek_v3", "n_routed_experts": 256, "n_shared_experts": 1},
        {"model_type": "gpt_oss", "num_local_experts": 32},
        {"model_type": "ernie4_5_moe", "moe_num_experts": 64},
    ],
    ids=lambda config: config["model_type"],
)
def test_a_mixture_of_experts_is_refused_in_one_sentence(config):
    why = r"^config\.json: \w+ speaks of a mixture of experts, which is not supported$"
    with pytest.raises(ModelError, match=why):
        refuse(Config(config, "config.json"), ())


def test_tensors_tell_it_too():
    name = "model.layers.0.block_sparse_moe.experts.0.w1.weight"
    with pytest.raises(ModelError, match=r"experts\.0\.w1\.weight speaks of a mixture of experts"):
        refuse(Config({}, "config.json"), ["lm_head.weight", name])


@pytest.mark.parametrize("n", [None, 0, 1])
def test_no_expert_or_one_is_no_mixture(n):
    refuse(Config({"num_local_experts": n}, "config.json"), ["model.layers.0.mlp.up_proj.weight"])
