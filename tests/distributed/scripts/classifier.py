"""An image classifier: sampler, epochs, metrics over all ranks, a checkpoint that rank 0 writes and all read."""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Shapes(Dataset):
    """Pictures of noise with a bright quarter, which is the class."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, 4, (count,), generator=generator)
        self.images = torch.randn(count, 1, 8, 8, generator=generator)
        for image, label in zip(self.images, self.labels.tolist()):
            row, column = divmod(label, 2)
            image[0, 4 * row:4 * row + 4, 4 * column:4 * column + 4] += 1.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 4, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(torch.flatten(x, 1))


def evaluate(model, loader):
    model.eval()
    counts = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for images, labels in loader:
            counts[0] += (model(images).argmax(1) == labels).sum()
            counts[1] += len(labels)
    dist.all_reduce(counts, op=dist.ReduceOp.SUM)
    return (counts[0] / counts[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(42)
    train = Shapes(104)
    sampler = DistributedSampler(train, num_replicas=world, rank=rank, shuffle=True, seed=3)
    loader = DataLoader(train, batch_size=8, sampler=sampler, drop_last=False)
    test = DataLoader(Shapes(32), batch_size=8, sampler=DistributedSampler(Shapes(32), shuffle=False))
    model = DistributedDataParallel(Net())
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for batch, (images, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} batch {batch} loss {loss.item():.5f}")
        scheduler.step()
        print(f"epoch {epoch} accuracy {evaluate(model, test):.4f}")
    path = os.path.join(tempfile.gettempdir(), f"classifier-{os.environ.get('MASTER_PORT')}-{world}.pt")
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    again = DistributedDataParallel(Net())
    again.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    print(f"loaded accuracy {evaluate(again, test):.4f}")
    dist.barrier()
    if rank == 0:
        os.unlink(path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
