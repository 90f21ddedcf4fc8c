"""Diffusers: small random U-Nets, autoencoders and transformers, schedulers, a whole pipeline."""

from __future__ import annotations

import diffusers
import numpy as np
import torch

from ..harness import Figures, case, learn, summary


def noise(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape).astype(np.float32))


@case("diffusers", "unet2d", quick=True)
def unet2d() -> Figures:
    torch.manual_seed(0)
    model = diffusers.UNet2DModel(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1,
                                  block_out_channels=(16, 32), norm_num_groups=8,
                                  down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                  up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    schedule = diffusers.DDPMScheduler(num_train_timesteps=100)
    clean, added, steps = noise(2, 3, 16, 16), noise(2, 3, 16, 16).flip(0), torch.tensor([3, 70])

    def run(m: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        out = m(schedule.add_noise(clean, added, steps), steps).sample
        return out, torch.nn.functional.mse_loss(out, added)

    return learn(model, run)


@case("diffusers", "unet_conditional")
def unet_conditional() -> Figures:
    torch.manual_seed(0)
    model = diffusers.UNet2DConditionModel(sample_size=8, in_channels=4, out_channels=4, layers_per_block=1,
                                           block_out_channels=(16, 32), norm_num_groups=8, cross_attention_dim=24,
                                           attention_head_dim=4,
                                           down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                           up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    latent, text = noise(2, 4, 8, 8), noise(2, 7, 24)

    def run(m: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        out = m(latent, torch.tensor([5, 9]), encoder_hidden_states=text).sample
        return out, out.square().mean()

    return learn(model, run)


@case("diffusers", "autoencoder")
def autoencoder() -> Figures:
    torch.manual_seed(0)
    model = diffusers.AutoencoderKL(in_channels=3, out_channels=3, block_out_channels=(16, 32), latent_channels=4,
                                    norm_num_groups=8, down_block_types=("DownEncoderBlock2D",) * 2,
                                    up_block_types=("UpDecoderBlock2D",) * 2)
    picture = noise(1, 3, 16, 16)

    def run(m: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        posterior = m.encode(picture).latent_dist
        out = m.decode(posterior.sample(generator=torch.Generator().manual_seed(3))).sample
        return out, (out - picture).square().mean() + 1e-3 * posterior.kl().mean()

    return learn(model, run)


@case("diffusers", "transformer")
def transformer() -> Figures:
    torch.manual_seed(0)
    model = diffusers.DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=4,
                                            num_layers=2, sample_size=8, patch_size=2, num_embeds_ada_norm=10)
    latent = noise(2, 4, 8, 8)

    def run(m: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        out = m(latent, timestep=torch.tensor([3, 7]), class_labels=torch.tensor([1, 2])).sample
        return out, out.square().mean()

    return learn(model, run)


@case("diffusers", "schedulers")
def schedulers() -> Figures:
    figures = {}
    for name in ("DDPMScheduler", "DDIMScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler",
                 "DPMSolverMultistepScheduler", "PNDMScheduler", "LMSDiscreteScheduler", "HeunDiscreteScheduler",
                 "UniPCMultistepScheduler", "FlowMatchEulerDiscreteScheduler"):
        schedule = getattr(diffusers, name)()
        schedule.set_timesteps(5)
        sample = noise(1, 2, 4, 4)
        drawn = torch.Generator().manual_seed(0)
        takes = "generator" in schedule.step.__code__.co_varnames
        for step in schedule.timesteps:
            options = {"generator": drawn} if takes else {}
            sample = schedule.step(torch.tanh(sample), step, sample, **options).prev_sample
        figures[name] = summary(sample)
    return figures


@case("diffusers", "pipeline")
def pipeline() -> Figures:
    torch.manual_seed(0)
    model = diffusers.UNet2DModel(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1,
                                  block_out_channels=(16, 16), norm_num_groups=8,
                                  down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2)
    made = diffusers.DDPMPipeline(model, diffusers.DDPMScheduler(num_train_timesteps=20))
    made.set_progress_bar_config(disable=True)
    picture = made(generator=torch.Generator().manual_seed(1), num_inference_steps=4, output_type="np").images
    return {"picture": [float(picture.mean()), float(picture.std()), float(picture[0, 0, 0, 0])]}
